package egress

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"

	"github.com/openshift/origin-node/hack/clustertest"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/attach"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/extension"
)

// familyTest is an Extension that runs, with programs in iptables' place that keep what they restore.
// What the real ones do is tested in hack/netns.
type familyTest struct {
	*testing.T
	*Extension
	host *extension.Host
	dir  string
}

const (
	// keeps is a restore that keeps its input, as far as this package reads it, and counts. It begins
	// with the chains that are there anew, so it is for a kernel with one binding.
	keeps = `tee -a $0.writes | { echo '*nat'; grep -e '^:' -e '^-A'; echo '-A POSTROUTING -m comment --comment "OpenShift egress SNAT" -j OPENSHIFT-EGRESS-SNAT'; echo COMMIT; } >$0.held`
	hangs = `touch $0.hangs; exec sleep 600`
	fails = `echo 'the lock is held' >&2; exit 4`
)

// newFamilyTest runs an Extension beside a proxier that serves these IP families, until the test ends.
// It knows of one Service, with a pod of each family; no kind of objects is known in full.
func newFamilyTest(t *testing.T, served ...v1.IPFamily) *familyTest {
	return newAttachingTest(t, "", served...)
}

// newAttachingTest is newFamilyTest for a node that answers the CNI plugin on a socket.
func newAttachingTest(t *testing.T, socket string, served ...v1.IPFamily) *familyTest {
	config := nodeConfig
	config.Attaching = attach.Config{Socket: socket, WatchPods: true}
	config.MinSyncPeriod, config.SyncPeriod = 50*time.Millisecond, time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	f := &familyTest{T: t, Extension: New(ctx, config), dir: t.TempDir()}
	f.host = extension.NewHost(ctx, f.Extension)
	for _, program := range []string{"iptables", "ip6tables"} {
		f.program(program, "echo '"+program+" v1.8.9 (nf_tables)'")
		f.program(program+"-save", "cat ${0%-save}-restore.held 2>/dev/null; true")
		f.program(program+"-restore", keeps)
	}
	t.Setenv("PATH", f.dir+":/usr/bin:/bin") // without the other back end's programs
	f.host.Wrap(&idle{}, served...)
	f.setEgressIP("203.0.113.1")
	f.host.OnEndpointSliceAdd(clustertest.NewSlice("web-1", "web", "10.128.0.5"))
	v6 := clustertest.NewSlice("web-2", "web", "fd00:10::5")
	v6.AddressType = discovery.AddressTypeIPv6
	f.host.OnEndpointSliceAdd(v6)
	f.host.SyncLoop()
	t.Cleanup(func() {
		cancel()
		f.host.Wait()
	})
	return f
}

// program puts a shell script in iptables' place, in one step.
func (f *familyTest) program(name, script string) {
	f.Helper()
	file := filepath.Join(f.dir, name)
	if err := os.WriteFile(file+"~", []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		f.Fatal(err)
	}
	if err := os.Rename(file+"~", file); err != nil {
		f.Fatal(err)
	}
}

// setEgressIP gives the Service this external IP, and 2001:db8::1.
func (f *familyTest) setEgressIP(ip string) {
	f.host.OnServiceAdd(clustertest.NewService("web", func(s *v1.Service) { s.Spec.ExternalIPs = []string{ip, "2001:db8::1"} }))
}

// allKnown tells that all objects are known.
func (f *familyTest) allKnown() {
	for _, kind := range f.gate.Missing() {
		f.known(kind)
	}
}

// wrote returns what a program was given, up to now.
func (f *familyTest) wrote(program string) string {
	f.Helper()
	text, err := os.ReadFile(filepath.Join(f.dir, program+".writes"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.Fatal(err)
	}
	return string(text)
}

// awaitEgressIP returns when iptables was given rules with this egress IP.
func (f *familyTest) awaitEgressIP(ip string) {
	f.Helper()
	clustertest.Eventually(f.T, "rules are written with "+ip, func() bool { return strings.Contains(f.wrote("iptables-restore"), ip+" ") })
}

// TestFamily_BurstsAreFewWrites: many changes at once are few writes, and the last one counts. All is
// ready when the proxier has synced, too.
func TestFamily_BurstsAreFewWrites(t *testing.T) {
	lab.InNamespace(t, func(t *testing.T) {
		f := newFamilyTest(t, v1.IPv4Protocol)
		f.allKnown()
		f.awaitEgressIP("203.0.113.1")
		before, began := strings.Count(f.wrote("iptables-restore"), "COMMIT"), time.Now()
		const changes = 200
		for i := range changes {
			f.setEgressIP(netip.AddrFrom4([4]byte{203, 0, 113, byte(1 + i)}).String())
		}
		f.awaitEgressIP("203.0.113.200")
		most := 2 + int(time.Since(began)/f.config.MinSyncPeriod)
		if got := strings.Count(f.wrote("iptables-restore"), "COMMIT") - before; got > most {
			t.Errorf("%d changes were %d writes, want %d at most", changes, got, most)
		}
		clustertest.Eventually(t, "nothing is due", func() bool { return f.Summary().DueSince.IsZero() })
		if got := f.Summary(); got.Bindings != 1 || got.Ready {
			t.Errorf("status %+v; want one binding, not ready before the proxier has synced", got)
		}
		f.host.AfterSync(v1.IPv4Protocol, true)
		clustertest.Eventually(t, "ready after the proxier has synced", func() bool { return f.Summary().Ready })
	})
}

// TestFamily_HangingIPv6: IPv4 does not wait for the programs of IPv6, and the node is not ready.
func TestFamily_HangingIPv6(t *testing.T) {
	lab.InNamespace(t, func(t *testing.T) {
		f := newFamilyTest(t, cluster.Families...)
		f.program("ip6tables-restore", hangs)
		f.allKnown()
		clustertest.Eventually(t, "ip6tables hangs", func() bool {
			_, err := os.Stat(filepath.Join(f.dir, "ip6tables-restore.hangs"))
			return err == nil
		})
		for _, family := range cluster.Families {
			f.host.AfterSync(family, true)
		}
		for i := range 3 {
			f.setEgressIP(fmt.Sprintf("203.0.113.%d", 2+i))
			f.awaitEgressIP(fmt.Sprintf("203.0.113.%d", 2+i))
		}
		clustertest.Eventually(t, "nothing is due in IPv4", func() bool { return f.families[v1.IPv4Protocol].loop.DueSince().IsZero() })
		if got := f.Summary(); got.DueSince.IsZero() || got.Ready {
			t.Errorf("status %+v; want IPv6 due, and not ready", got)
		}
		if v4, v6 := f.families[v1.IPv4Protocol].reconciler.Status(), f.families[v1.IPv6Protocol].reconciler.Status(); !v4.Ready || v6.Ready || !v6.LastSuccess.IsZero() {
			t.Errorf("IPv4 %+v, IPv6 %+v; want the one ready, and no success of the other", v4, v6)
		}
	})
}

// TestFamily_NotServed: without a proxier nothing is written. The plan says why, and nobody waits for it.
func TestFamily_NotServed(t *testing.T) {
	lab.InNamespace(t, func(t *testing.T) {
		f := newFamilyTest(t, v1.IPv4Protocol)
		f.allKnown()
		f.host.AfterSync(v1.IPv4Protocol, true)
		clustertest.Eventually(t, "ready", func() bool { return f.Summary().Ready && f.Summary().DueSince.IsZero() })
		for _, family := range f.Snapshot().Families {
			bindings, refusals := 1, 0
			if family.Family == "IPv6" {
				bindings, refusals = 0, 1
			}
			if len(family.Plan.Bindings) != bindings || len(family.Plan.Refusals) != refusals || refusals > 0 && family.Plan.Refusals[0].Reason != plan.NoProxier {
				t.Errorf("%s: bindings %v, refusals %v; want %d and %d", family.Family, family.Plan.Bindings, family.Plan.Refusals, bindings, refusals)
			}
		}
		if text := f.wrote("ip6tables-restore"); text != "" {
			t.Errorf("written:\n%s", text)
		}
	})
}

// TestFamily_FailureShows in the status, with what is due, until a sync succeeds.
func TestFamily_FailureShows(t *testing.T) {
	lab.InNamespace(t, func(t *testing.T) {
		f := newFamilyTest(t, v1.IPv4Protocol)
		f.program("iptables-restore", fails)
		f.allKnown()
		failure := func() string {
			if told := f.Snapshot().Families; len(told) > 0 {
				return told[0].Error
			}
			return ""
		}
		clustertest.Eventually(t, "the status says why", func() bool { return strings.Contains(failure(), "the lock is held") })
		if f.Summary().DueSince.IsZero() {
			t.Error("nothing is due although nothing is written")
		}
		f.program("iptables-restore", keeps)
		f.host.AfterSync(v1.IPv4Protocol, true) // ends the wait for the next try
		f.awaitEgressIP("203.0.113.1")
		clustertest.Eventually(t, "the failure is over", func() bool { return failure() == "" && f.Summary().DueSince.IsZero() })
	})
}

// TestExtension_Verify compares the kernel with the plan, and not with what was written.
func TestExtension_Verify(t *testing.T) {
	lab.InNamespace(t, func(t *testing.T) {
		f := newFamilyTest(t, v1.IPv4Protocol)
		if _, err := f.Verify(t.Context()); err == nil {
			t.Error("no error before there is a plan")
		}
		f.allKnown()
		f.host.AfterSync(v1.IPv4Protocol, true)
		clustertest.Eventually(t, "ready", func() bool { return f.Summary().Ready && f.Summary().DueSince.IsZero() })
		if differences, err := f.Verify(t.Context()); err != nil || len(differences) != 1 || len(differences["IPv4"]) != 0 {
			t.Errorf("differences %q, %v; want none, of IPv4 alone", differences, err)
		}
		clustertest.Eventually(t, "it finds the kernel flushed, once the loop has looked for the last time", func() bool {
			if err := os.WriteFile(filepath.Join(f.dir, "iptables-restore.held"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			differences, err := f.Verify(t.Context())
			return err == nil && len(differences["IPv4"]) > 0
		})
	})
}
