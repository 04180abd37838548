package pool

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/openshift/origin-node/pkg/egress/holders"
)

// TestRunner_SaysWhyItIsAbsent: it has no key, or somebody has its port. It goes on when that is over.
func TestRunner_SaysWhyItIsAbsent(t *testing.T) {
	at := netip.AddrPortFrom(onLoopback(3), loopbackPort)
	for name, take := range map[string]func() (interface{ Close() error }, error){
		"UDP": func() (interface{ Close() error }, error) { return net.ListenUDP("udp", net.UDPAddrFromAddrPort(at)) },
		"TCP": func() (interface{ Close() error }, error) { return net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at)) },
	} {
		t.Run(name, func(t *testing.T) {
			port, err := take()
			if err != nil {
				t.Fatal(err)
			}
			var key atomic.Bool
			var told atomic.Int32
			r, _ := newFakeRunner()
			r.config.Port = loopbackPort
			r.config.Changed = func() { told.Add(1) }
			r.config.Keys = func() holders.Keys {
				if key.Load() {
					return testKeys()
				}
				return nil
			}
			r.SetNodes(map[string]netip.Addr{"a": at.Addr()}, []string{"a"}, nil)
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { r.Run(ctx) })
			defer running.Wait()
			defer cancel()
			owner := fmt.Sprintf("by process %d (", os.Getpid())
			awaitAbsence(t, r, func(err error) bool {
				return errors.Is(err, syscall.EADDRINUSE) && strings.Contains(err.Error(), owner) && strings.Contains(err.Error(), "egress-snat-assign-port")
			})
			_ = port.Close()
			awaitAbsence(t, r, func(err error) bool { return errors.Is(err, ErrNoKey) })
			key.Store(true)
			awaitAbsence(t, r, func(err error) bool { return err == nil && told.Load() >= 3 })
		})
	}
}

func awaitAbsence(t *testing.T, r *Runner, is func(error) bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		err := r.Absence()
		if is(err) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("absent because of %v, or that was not told", err)
		}
	}
}
