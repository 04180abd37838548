package iptables

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
)

// TestAwaitLock_UntilItIsFree: it returns when the lock is free and not before, but for a back end that knows
// no lock.
func TestAwaitLock_UntilItIsFree(t *testing.T) {
	for _, backend := range lab.Backends() {
		t.Run(string(backend), func(t *testing.T) {
			l := lab.ForTest(t, lab.Config{IPv6: true, Backend: backend})
			t.Setenv("PATH", l.Path())
			t.Setenv("XTABLES_LOCKFILE", t.TempDir()+"/lock")
			said := make(chan string, 10)
			ctx := klog.NewContext(t.Context(), funcr.New(func(_, args string) { said <- args }, funcr.Options{}))
			usable := make(chan []kernel.Family, 1)
			await := func() {
				err := l.Node().Do(func() error {
					families, err := AwaitLock(ctx)
					usable <- families
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
			lock, err := os.Create(os.Getenv("XTABLES_LOCKFILE"))
			if err != nil {
				t.Fatal(err)
			}
			defer lock.Close()
			if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
				t.Fatal(err)
			}
			go await()
			if backend == lab.Legacy {
				select {
				case line := <-said:
					if !strings.Contains(line, "waiting") || !strings.Contains(line, "xtables lock") {
						t.Errorf("the log says %q", line)
					}
				case got := <-usable:
					t.Errorf("got %v while the lock was held", got)
				}
				if err := lock.Close(); err != nil {
					t.Fatal(err)
				}
			}
			select {
			case got := <-usable:
				if diff := cmp.Diff([]kernel.Family{kernel.IPv4, kernel.IPv6}, got); diff != "" {
					t.Errorf("usable families (-want +got):\n%s", diff)
				}
			case <-time.After(time.Minute):
				t.Error("it does not return although nothing holds it up")
			}
		})
	}
}
