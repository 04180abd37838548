package reconcile

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
)

// TestFingerprint_ShowsChanges of anybody in any table, in every back end and IP family; a look shows
// none, for it makes no table and changes nothing.
func TestFingerprint_ShowsChanges(t *testing.T) {
	for _, backend := range lab.Backends() {
		for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
			for _, means := range []Backend{IPTables, NFTables} {
				t.Run(fmt.Sprintf("%s/%s/%s", backend, family, means), func(t *testing.T) {
					l := lab.ForTest(t, lab.Config{IPv6: true, Backend: backend})
					t.Setenv("PATH", l.Path())
					// Labs share /run; nobody else's lock is waited for.
					t.Setenv("XTABLES_LOCKFILE", filepath.Join(t.TempDir(), "lock"))
					if err := l.Node().Do(func() error { return testFingerprint(t, family, means) }); err != nil {
						t.Fatal(err)
					}
				})
			}
		}
	}
}

func testFingerprint(t *testing.T, family kernel.Family, means Backend) error {
	program, b, other := "iptables", bind("10.128.0.1", "203.0.113.1"), bind("10.128.0.2", "203.0.113.2")
	if family == kernel.IPv6 {
		program = "ip6tables"
		b.Pod, b.EgressIP = netip.MustParseAddr("fd00:10::1"), netip.MustParseAddr("2001:db8::1")
		other.Pod, other.EgressIP = netip.MustParseAddr("fd00:10::2"), netip.MustParseAddr("2001:db8::2")
	}
	d, _ := newDriver(Config{Family: family, Backend: means, Proxier: IPTables})
	run := func(args ...string) func() error {
		return func() error {
			out, err := exec.Command(program, args...).CombinedOutput()
			if err != nil {
				return fmt.Errorf("%s %v: %w: %s", program, args, err, out)
			}
			return nil
		}
	}
	write := func(bindings ...kernel.Binding) func() error {
		return func() error {
			_, _, err := d.write(t.Context(), kernel.Desired{Bindings: kernel.Sorted(bindings)}, nil)
			return err
		}
	}
	look := func() error {
		_, err := d.observe(t.Context())
		return err
	}
	last, err := d.fingerprint(t.Context())
	if err != nil {
		return err
	}
	for _, step := range []struct {
		what  string
		do    func() error
		moves bool
	}{
		{"nothing", func() error { return nil }, false},
		{"a look at a kernel that holds nothing", look, false},
		{"a write", write(b), true},
		{"a look", look, false},
		{"another binding", write(b, other), true},
		{"a rule of somebody else in another table", run("-w", "-t", "mangle", "-A", "FORWARD", "-j", "ACCEPT"), true},
		{"rules of somebody else in the same table", func() error {
			return errors.Join(run("-w", "-t", "nat", "-I", "POSTROUTING", "-j", "RETURN")(), run("-w", "-t", "nat", "-A", "POSTROUTING", "-j", "ACCEPT")())
		}, true},
		{"a look at that", look, false},
		{"one moves to the end", func() error {
			return errors.Join(run("-w", "-t", "nat", "-D", "POSTROUTING", "-j", "RETURN")(), run("-w", "-t", "nat", "-A", "POSTROUTING", "-j", "RETURN")())
		}, true},
		{"another rule of the same size", run("-w", "-t", "nat", "-R", "POSTROUTING", "1", "-p", "tcp", "-j", "ACCEPT"), true},
		{"packets", run("-w", "-t", "nat", "-L", "-n"), false},
		{"a flushed table", run("-w", "-t", "nat", "-F"), true},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
		now, err := d.fingerprint(t.Context())
		if err != nil {
			return fmt.Errorf("after %s: %w", step.what, err)
		}
		if moved := now != last; moved != step.moves {
			t.Errorf("after %s the fingerprint has moved: %v, want %v; now\n%s", step.what, moved, step.moves, now)
		}
		last = now
	}
	return nil
}

// TestDriver_SteeringAloneWritesNothing: no driver of rules has anything to do with the ways that packets take, so a
// change of these alone runs no program and changes no table, whether or not there are bindings.
func TestDriver_SteeringAloneWritesNothing(t *testing.T) {
	for _, backend := range lab.Backends() {
		for _, means := range []Backend{IPTables, NFTables} {
			t.Run(fmt.Sprintf("%s/%s", backend, means), func(t *testing.T) {
				l := lab.ForTest(t, lab.Config{Backend: backend})
				t.Setenv("PATH", l.Path())
				t.Setenv("XTABLES_LOCKFILE", filepath.Join(t.TempDir(), "lock"))
				for _, bindings := range [][]kernel.Binding{nil, {first, second}} {
					if err := l.Node().Do(func() error {
						d, _ := newDriver(Config{Family: kernel.IPv4, Backend: means, Proxier: IPTables})
						return testSteeringAlone(t, d, bindings)
					}); err != nil {
						t.Errorf("%d bindings: %v", len(bindings), err)
					}
				}
			})
		}
	}
}

func testSteeringAlone(t *testing.T, d driver, bindings []kernel.Binding) error {
	desired := kernel.Desired{Networks: kernel.Networks{ClusterCIDRs: []netip.Prefix{lab.ClusterV4}}, Bindings: bindings}
	if _, _, err := d.write(t.Context(), desired, nil); err != nil {
		return err
	}
	before, err := d.fingerprint(t.Context())
	if err != nil {
		return err
	}
	defer func(path string) { t.Setenv("PATH", path) }(os.Getenv("PATH"))
	t.Setenv("PATH", t.TempDir()) // where no program is
	way := kernel.Way{Kind: kernel.ToNode, Node: secondNode}
	for _, ways := range []map[netip.Addr]kernel.Way{{first.EgressIP: way}, nil} {
		change := kernel.Change{Networks: desired.Networks, Steering: kernel.Steering{Ways: ways}, SteeringChanged: true}
		if changed, _, err := d.update(t.Context(), change, nil); err != nil || changed {
			return fmt.Errorf("changed %v, error %w", changed, err)
		}
	}
	if after, err := d.fingerprint(t.Context()); err != nil || after != before {
		return fmt.Errorf("error %w; the tables went from\n%s\nto\n%s", err, before, after)
	}
	return nil
}
