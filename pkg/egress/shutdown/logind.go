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
	"github.com/openshift/origin-node/pkg/wake"
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
	// answers is for how long logind is waited for that is asked something: what it delays is waiting, too.
	answers = time.Second
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
			klog.FromContext(ctx).Info("Cannot delay shutdowns of this system until its egress IPs are on other nodes; will retry, further failures are not logged. "+
				"If systemd-logind does not run here, run 'openshift egress drain' before a shutdown", "err", err)
		}
		wake.Sleep(ctx.Done(), askAgain)
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
	if err := bus.AddMatchSignalContext(ctx, dbus.WithMatchSender(owners), dbus.WithMatchInterface(owners), dbus.WithMatchMember("NameOwnerChanged"), dbus.WithMatchArg(0, service)); err != nil {
		return fmt.Errorf("subscribe to restarts of systemd-logind: %w", err)
	}
	signals := make(chan *dbus.Signal, 8)
	bus.Signal(signals)
	lock, err := d.begin(ctx, bus)
	for err == nil {
		lock, err = d.next(ctx, bus, signals, lock)
	}
	_ = lock.Close() // it may be closed
	return err
}

// next does what the next signal asks for, and returns the lock that there is then. The old one is closed when there is a new one.
func (d *delay) next(ctx context.Context, bus *dbus.Conn, signals <-chan *dbus.Signal, lock *os.File) (*os.File, error) {
	var signal *dbus.Signal
	select {
	case <-ctx.Done():
		return lock, ctx.Err()
	case s, open := <-signals:
		if !open {
			return lock, errors.New("the system bus has closed the connection")
		}
		signal = s
	}
	now, said := goesDown(signal)
	switch {
	case said && !isLogind(ctx, bus, signal.Sender):
		return lock, nil // anybody may send a signal
	case said && now:
		d.goingDown = true
		prepareWithin(ctx, mostDelay(ctx, bus), d.prepare)
		_ = lock.Close() // the shutdown goes on
		return lock, nil
	case said:
		d.wasCancelled()
	case !begins(signal):
		return lock, nil
	}
	next, err := d.begin(ctx, bus)
	if err != nil {
		return lock, err
	}
	_ = lock.Close() // it may be closed
	return next, nil
}

// wasCancelled tells of a shutdown that was prepared and does not take place.
func (d *delay) wasCancelled() {
	d.goingDown = false
	d.cancelled()
}

// begin takes a lock, unless a shutdown goes on that was prepared. One of which this logind knows nothing was cancelled.
func (d *delay) begin(ctx context.Context, bus *dbus.Conn) (*os.File, error) {
	if d.goingDown {
		goesOn, err := property[bool](ctx, bus, "PreparingForShutdown")
		if err != nil {
			return nil, fmt.Errorf("ask systemd-logind whether the shutdown goes on: %w", err)
		}
		if goesOn {
			return nil, nil
		}
		d.wasCancelled()
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
	return signal.Sender == owners && signal.Name == owners+".NameOwnerChanged" && len(signal.Body) == 3 && signal.Body[2] != ""
}

// isLogind tells whether logind has this connection to the bus. If the bus does not say so, it has not.
func isLogind(ctx context.Context, bus *dbus.Conn, sender string) bool {
	var owner string
	err := bus.BusObject().CallWithContext(ctx, owners+".GetNameOwner", 0, service).Store(&owner)
	return err == nil && sender == owner
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
func mostDelay(ctx context.Context, bus *dbus.Conn) time.Duration {
	delay := usualDelay
	if microseconds, err := property[uint64](ctx, bus, "InhibitDelayMaxUSec"); err == nil {
		delay = durationOf(microseconds)
	}
	return max(delay-margin, delay/2)
}

// durationOf returns microseconds as a duration, an hour for more, as for infinity (UINT64_MAX).
func durationOf(microseconds uint64) time.Duration {
	return time.Duration(min(microseconds, uint64(time.Hour/time.Microsecond))) * time.Microsecond
}

// property returns one of logind's, if that has an answer in time.
func property[T any](ctx context.Context, bus *dbus.Conn, name string) (value T, err error) {
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	err = bus.Object(service, object).CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, manager, name).Store(&value)
	return value, err
}
