package shutdown

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/godbus/dbus/v5"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/failure"
)

const (
	service = "org.freedesktop.login1"
	object  = dbus.ObjectPath("/org/freedesktop/login1")
	manager = "org.freedesktop.login1.Manager"
	// owners tells who has the names of services.
	owners = "org.freedesktop.DBus"

	// askAgain is when logind is asked again that is not there.
	askAgain = time.Minute
	// margin is what is left of logind's delay when the preparation has to end: the lock is to be released, not lost.
	margin = 500 * time.Millisecond
	// usualDelay is logind's if it does not tell.
	usualDelay = 5 * time.Second
)

// Delay has each shutdown wait until prepare has returned, whose context ends when the shutdown waits no longer. A
// shutdown that does not take place after all is told to cancelled, also one that logind has forgotten because it was restarted meanwhile.
// Delay returns when ctx ends. Failures are logged and tried again.
func Delay(ctx context.Context, prepare func(context.Context), cancelled func()) {
	d := delay{prepare: prepare, cancelled: cancelled}
	var failed failure.Streak
	for ctx.Err() == nil {
		err := d.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if failed.Turns(err) {
			klog.FromContext(ctx).Info("Cannot have a shutdown of this system wait until egress IPs are on other nodes; will retry, further failures are not logged. "+
				"Without systemd-logind, 'openshift egress drain' before a shutdown does it", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(askAgain):
		}
	}
}

// delay is what Delay has to do, and whether a shutdown was prepared that goes on as far as is known.
type delay struct {
	prepare   func(context.Context)
	cancelled func()
	goingDown bool
}

// follow does what signals of logind ask for, until that fails.
func (d *delay) follow(ctx context.Context) error {
	bus, err := dbus.ConnectSystemBus(dbus.WithContext(ctx))
	if err != nil {
		return fmt.Errorf("connect to the system bus: %w", err)
	}
	defer func() { _ = bus.Close() }() // nothing is left to say on it
	// Subscribed first: a shutdown that begins in between is seen.
	if err := bus.AddMatchSignalContext(ctx, dbus.WithMatchSender(service), dbus.WithMatchInterface(manager), dbus.WithMatchMember("PrepareForShutdown"), dbus.WithMatchObjectPath(object)); err != nil {
		return fmt.Errorf("subscribe to shutdowns: %w", err)
	}
	if err := bus.AddMatchSignalContext(ctx, dbus.WithMatchInterface(owners), dbus.WithMatchMember("NameOwnerChanged"), dbus.WithMatchArg(0, service)); err != nil {
		return fmt.Errorf("subscribe to restarts of systemd-logind: %w", err)
	}
	signals := make(chan *dbus.Signal, 8)
	bus.Signal(signals)
	lock, err := d.begin(ctx, bus)
	for ; err == nil; lock, err = d.next(ctx, bus, signals, lock) {
	}
	_ = lock.Close() // it may be closed
	return err
}

// next does what the next signal asks for, and returns the lock that there is then.
func (d *delay) next(ctx context.Context, bus *dbus.Conn, signals <-chan *dbus.Signal, lock *os.File) (*os.File, error) {
	select {
	case <-ctx.Done():
		return lock, ctx.Err()
	case signal, open := <-signals:
		if !open {
			return lock, errors.New("the system bus has closed the connection")
		}
		now, said := goesDown(signal)
		switch {
		case said && now:
			d.goingDown = true
			prepareWithin(ctx, mostDelay(bus), d.prepare)
			_ = lock.Close() // the shutdown goes on
		case said || begins(signal):
			_ = lock.Close() // it is of another logind, or closed
			return d.begin(ctx, bus)
		}
		return lock, nil
	}
}

// begin takes a lock, unless a shutdown goes on that was prepared. If that does not, it was cancelled.
func (d *delay) begin(ctx context.Context, bus *dbus.Conn) (*os.File, error) {
	if d.goingDown {
		value, err := bus.Object(service, object).GetProperty(manager + ".PreparingForShutdown")
		if err != nil {
			return nil, fmt.Errorf("ask systemd-logind whether the shutdown goes on: %w", err)
		}
		if goesOn, isBool := value.Value().(bool); goesOn || !isBool {
			return nil, nil
		}
		d.goingDown = false
		d.cancelled()
	}
	return inhibit(ctx, bus)
}

func prepareWithin(ctx context.Context, most time.Duration, prepare func(context.Context)) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	prepare(ctx)
}

// goesDown says what a signal tells: that the system goes down, or that it does not after all.
func goesDown(signal *dbus.Signal) (now, ok bool) {
	if len(signal.Body) != 1 || signal.Name != manager+".PrepareForShutdown" {
		return false, false
	}
	now, ok = signal.Body[0].(bool)
	return now, ok
}

// begins tells whether a signal says that a logind has started.
func begins(signal *dbus.Signal) bool {
	return signal.Name == owners+".NameOwnerChanged" && len(signal.Body) == 3 && signal.Body[2] != ""
}

// inhibit takes a lock that delays shutdowns until it is closed.
func inhibit(ctx context.Context, bus *dbus.Conn) (*os.File, error) {
	var fd dbus.UnixFD
	call := bus.Object(service, object).CallWithContext(ctx, manager+".Inhibit", 0, "shutdown", "origin-node", "Egress IPs are given to other nodes", "delay")
	if err := call.Store(&fd); err != nil {
		return nil, fmt.Errorf("ask systemd-logind to delay shutdowns: %w", err)
	}
	return os.NewFile(uintptr(fd), "shutdown lock"), nil
}

// mostDelay is for how long a shutdown waits.
func mostDelay(bus *dbus.Conn) time.Duration {
	delay := usualDelay
	if value, err := bus.Object(service, object).GetProperty(manager + ".InhibitDelayMaxUSec"); err == nil {
		if microseconds, ok := value.Value().(uint64); ok {
			delay = time.Duration(microseconds) * time.Microsecond
		}
	}
	return max(delay-margin, delay/2)
}
