package shutdown

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/openshift/origin-node/hack/lab"
)

// soon bounds what takes a moment on an idle machine.
const soon = 30 * time.Second

// login is a systemd-logind on a bus of its own.
type login struct {
	*testing.T
	bus *dbus.Conn
	// released are told when the holder of a lock has closed it.
	released chan struct{}

	mu        sync.Mutex
	asked     []string
	locks     []*os.File
	goingDown bool
	// asker is who asked for a lock last.
	asker string
	// looked is told when somebody has asked whether a shutdown goes on.
	looked chan struct{}
}

func newLogin(t *testing.T) *login {
	t.Helper()
	daemon, err := exec.LookPath("dbus-daemon")
	if err != nil {
		lab.Lacks(t, "dbus-daemon is missing: install the package dbus-daemon, or dbus")
	}
	dir := t.TempDir()
	socket, config := filepath.Join(dir, "bus"), filepath.Join(dir, "bus.conf")
	text := fmt.Sprintf(`<busconfig><type>system</type><listen>unix:path=%s</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_type="*"/><allow receive_type="*"/><allow send_destination="*"/></policy></busconfig>`, socket)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	process := exec.CommandContext(t.Context(), daemon, "--nofork", "--nopidfile", "--nosyslog", "--config-file="+config)
	process.Stderr = os.Stderr
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Wait() }) // the test's context has ended it
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+socket)
	l := &login{T: t, released: make(chan struct{}, 10), looked: make(chan struct{}, 10)}
	for deadline := time.Now().Add(soon); ; time.Sleep(10 * time.Millisecond) {
		if l.bus, err = dbus.ConnectSystemBus(); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = l.bus.Close() })
	for iface, methods := range map[string]map[string]any{
		manager:                           {"Inhibit": l.inhibit},
		"org.freedesktop.DBus.Properties": {"Get": l.property},
	} {
		if err := l.bus.ExportMethodTable(methods, object, iface); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.bus.RequestName(service, 0); err != nil {
		t.Fatal(err)
	}
	return l
}

// inhibit gives away one end of a pipe. At the other it is seen when that is closed.
func (l *login) inhibit(sender dbus.Sender, what, _, _, mode string) (dbus.UnixFD, *dbus.Error) {
	r, w, err := os.Pipe()
	if err != nil {
		return 0, dbus.MakeFailedError(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asker = string(sender)
	l.asked, l.locks = append(l.asked, what+" "+mode), append(l.locks, w)
	go func() {
		_, _ = io.Copy(io.Discard, r)
		_ = r.Close()
		l.released <- struct{}{}
	}()
	return dbus.UnixFD(w.Fd()), nil
}

func (l *login) property(_, name string) (dbus.Variant, *dbus.Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if name == "PreparingForShutdown" {
		l.looked <- struct{}{}
		return dbus.MakeVariant(l.goingDown), nil
	}
	return dbus.MakeVariant(uint64(700_000)), nil // microseconds
}

// given waits until it has given away so many locks, and closes its copies.
func (l *login) given(count int) {
	l.Helper()
	for deadline := time.Now().Add(soon); ; time.Sleep(5 * time.Millisecond) {
		l.mu.Lock()
		enough := len(l.asked) == count
		l.mu.Unlock()
		if enough {
			return
		}
		if time.Now().After(deadline) {
			l.Fatalf("locks were asked for %d times, want %d", len(l.asked), count)
		}
	}
}

// prepares tells all that the system goes down, or does not.
func (l *login) prepares(now bool) {
	l.Helper()
	l.mu.Lock()
	l.goingDown = now
	l.mu.Unlock()
	if err := l.bus.Emit(object, manager+".PrepareForShutdown", now); err != nil {
		l.Fatal(err)
	}
}

// restart has another logind begin, which knows of no shutdown unless it goes on.
func (l *login) restart(goesOn bool) {
	l.Helper()
	if _, err := l.bus.ReleaseName(service); err != nil {
		l.Fatal(err)
	}
	l.mu.Lock()
	l.goingDown = goesOn
	l.mu.Unlock()
	if _, err := l.bus.RequestName(service, 0); err != nil {
		l.Fatal(err)
	}
}

// close closes its own ends of all locks: what is open then is their holders'.
func (l *login) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, lock := range l.locks {
		_ = lock.Close()
	}
	l.locks = nil
}

func TestDelay_ShutdownWaitsForPreparation(t *testing.T) {
	l := newLogin(t)
	began, finish, cancelled := make(chan time.Time), make(chan struct{}), make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		Delay(ctx, func(ctx context.Context) {
			until, _ := ctx.Deadline()
			began <- until
			<-finish
		}, func() { cancelled <- struct{}{} })
	}()
	within := func(what string, happened <-chan struct{}) {
		t.Helper()
		select {
		case <-happened:
		case <-time.After(soon):
			t.Fatal("not " + what)
		}
	}
	for round := 1; round <= 2; round++ {
		l.given(round)
		l.prepares(true)
		if left := time.Until(<-began); left > 400*time.Millisecond {
			t.Errorf("the preparation may take %v, but logind waits for 700ms", left)
		}
		l.close()
		select {
		case <-l.released:
			t.Fatal("the shutdown goes on before it is prepared")
		case <-time.After(100 * time.Millisecond): // in which nothing must happen
		}
		finish <- struct{}{}
		within("released: the shutdown hangs", l.released)
		if round == 1 {
			l.prepares(false)
			within("told that the shutdown was cancelled", cancelled)
		}
	}
	if l.asked[0] != "shutdown delay" {
		t.Errorf("asked for a lock of %q", l.asked[0])
	}
	stop()
	within("over", ended)
}

// TestDelay_LogindRestarts: the next logind is asked for a lock, too. If it knows nothing of a shutdown that was prepared, that was cancelled.
func TestDelay_LogindRestarts(t *testing.T) {
	l := newLogin(t)
	prepared, cancelled, ended := make(chan struct{}, 9), make(chan struct{}, 9), make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		defer close(ended)
		Delay(ctx, func(context.Context) { prepared <- struct{}{} }, func() { cancelled <- struct{}{} })
	}()
	l.given(1)
	l.restart(false)
	l.given(2)
	l.prepares(true)
	<-prepared
	l.restart(true)
	<-l.looked
	l.restart(false)
	l.given(3)
	<-cancelled
	stop()
	<-ended
	l.close()
	for range 3 {
		<-l.released
	}
	if len(prepared)+len(cancelled) > 0 {
		t.Error("told more than once")
	}
}

// TestDelay_OthersSignals: what somebody else on the bus says of shutdowns and of restarts counts for nothing.
func TestDelay_OthersSignals(t *testing.T) {
	l := newLogin(t)
	prepared, cancelled := make(chan struct{}, 9), make(chan struct{}, 9)
	go Delay(t.Context(), func(context.Context) { prepared <- struct{}{} }, func() { cancelled <- struct{}{} })
	l.given(1)
	other, err := dbus.ConnectSystemBus()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	l.mu.Lock()
	name := l.asker
	l.mu.Unlock()
	for member, body := range map[string][]any{manager + ".PrepareForShutdown": {true}, owners + ".NameOwnerChanged": {service, "", ":1.1"}} {
		message := &dbus.Message{Type: dbus.TypeSignal, Body: body, Headers: map[dbus.HeaderField]dbus.Variant{
			dbus.FieldDestination: dbus.MakeVariant(name), dbus.FieldPath: dbus.MakeVariant(object), dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf(body...)),
			dbus.FieldInterface: dbus.MakeVariant(member[:strings.LastIndex(member, ".")]), dbus.FieldMember: dbus.MakeVariant(member[strings.LastIndex(member, ".")+1:]),
		}}
		if call := other.Send(message, nil); call.Err != nil {
			t.Fatal(call.Err)
		}
	}
	if err := other.BusObject().Call(owners+".GetId", 0).Err; err != nil { // the bus has passed the signals on
		t.Fatal(err)
	}
	l.prepares(true)
	<-prepared
	l.given(1) // no other lock was taken
	l.prepares(false)
	<-cancelled
	l.given(2)
	if len(prepared)+len(cancelled) > 0 {
		t.Error("told by somebody else")
	}
}

func TestDelay_WithoutBus(t *testing.T) {
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+filepath.Join(t.TempDir(), "none"))
	if err := (&delay{}).follow(t.Context()); err == nil {
		t.Error("want an error without a bus")
	}
}

// TestDurationOf: logind may wait for ever.
func TestDurationOf(t *testing.T) {
	for microseconds, want := range map[uint64]time.Duration{0: 0, 700_000: 700 * time.Millisecond, math.MaxUint64: time.Hour} {
		if got := durationOf(microseconds); got != want {
			t.Errorf("%d microseconds are %v, want %v", microseconds, got, want)
		}
	}
}
