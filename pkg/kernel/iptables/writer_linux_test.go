package iptables

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
)

// onNode runs test in a namespace of its own for every back end and IP family.
func onNode(t *testing.T, test func(t *testing.T, n *node)) { withPods(t, 0, test) }

// withPods is onNode with pods on the node and a host outside.
func withPods(t *testing.T, pods int, test func(t *testing.T, n *node)) {
	for _, backend := range lab.Backends() {
		for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
			t.Run(fmt.Sprintf("%s/%s", backend, family), func(t *testing.T) {
				l := lab.ForTest(t, lab.Config{Pods: pods, IPv6: true, Backend: backend})
				t.Setenv("PATH", l.Path())
				// Labs share /run; nobody else's lock is waited for.
				t.Setenv("XTABLES_LOCKFILE", filepath.Join(t.TempDir(), "lock"))
				n := &node{T: t, lab: l, family: family, cidr: clusterV4, writer: NewWriter(family)}
				if family == kernel.IPv6 {
					n.cidr = clusterV6
				}
				// Do runs its function on a thread in the namespace, from which
				// commands are started, but a test must end on its own goroutine.
				n.run = func(f func() error) {
					t.Helper()
					if err := l.Node().Do(f); err != nil {
						t.Fatal(err)
					}
				}
				test(t, n)
			})
		}
	}
}

type node struct {
	*testing.T
	lab    *lab.Lab
	family kernel.Family
	cidr   netip.Prefix
	writer *Writer
	run    func(func() error)
}

// write writes p and tells whether the kernel was changed.
func (n *node) write(p kernel.Desired) (changed bool) {
	n.Helper()
	n.run(func() (err error) {
		changed, err = n.writer.Write(n.Context(), Render(p))
		return err
	})
	return changed
}

func (n *node) read() (k Kernel, missing []string) {
	n.Helper()
	n.run(func() (err error) {
		k, missing, err = n.writer.Read(n.Context())
		return err
	})
	return k, missing
}

// exec runs iptables or ip6tables on the nat table.
func (n *node) exec(args ...string) (output string) {
	n.Helper()
	n.run(func() (err error) {
		output, err = run(n.Context(), nil, n.writer.commands.version, append([]string{"-w", "-t", "nat"}, args...)...)
		return err
	})
	return output
}

// holds fails the test unless the kernel holds exactly p.
func (n *node) holds(p kernel.Desired) {
	n.Helper()
	have := n.look()
	if diff := cmp.Diff(Render(p), have.Chains, cmpopts.EquateEmpty()); diff != "" {
		n.Fatalf("the kernel does not hold the plan (-want +got):\n%s", diff)
	}
	if len(wrongJumps(Render(p), have)) > 0 {
		n.Fatalf("the jump is wrong: %v", have.hooks)
	}
	if differences := Differences(Render(p), have); len(differences) > 0 {
		n.Fatalf("there is no difference, but %v", differences)
	}
	if want := min(len(Render(p)), 1); len(have.marks) != want {
		n.Fatalf("the write has left %v, want %d mark", have.marks, want)
	}
}

func (n *node) look() (have Kernel) {
	n.Helper()
	n.run(func() (err error) {
		have, err = Look(n.Context(), n.family)
		return err
	})
	return have
}

func TestWriter_FollowsThePlan(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		r := rand.New(rand.NewPCG(7, 7))
		for _, size := range []int{0, 1, 64, 65, 400, 399, 80, 3, 0, 200} {
			p := withNodes(r, randomPlan(r, n.cidr, size), size*5%331)
			n.write(p)
			n.holds(p)
			if n.write(p) {
				t.Fatal("writing the same plan again changed the kernel")
			}
		}
	})
}

// TestWriter_RandomChanges: whatever the sequence of plans, the kernel holds the last.
func TestWriter_RandomChanges(t *testing.T) {
	onNode(t, func(_ *testing.T, n *node) {
		r := rand.New(rand.NewPCG(8, 8))
		p := randomPlan(r, n.cidr, 150)
		for i := range 25 {
			if i%5 == 0 {
				p = withNodes(r, p, 60+r.IntN(10))
			}
			p.Bindings = append([]kernel.Binding(nil), p.Bindings...)
			for range 1 + r.IntN(5) {
				i := r.IntN(len(p.Bindings))
				switch r.IntN(3) {
				case 0:
					p.Bindings[i].EgressIP = egressIP(n.cidr, r.IntN(250))
				case 1:
					p.Bindings = append(p.Bindings[:i], p.Bindings[i+1:]...)
				case 2:
					p = merge(p, randomPlan(r, n.cidr, 2))
				}
			}
			n.write(p)
			n.holds(p)
		}
	})
}

// merge returns p with the bindings of both, of those that collide only one.
func merge(p, q kernel.Desired) kernel.Desired {
	p.Bindings = boundOnce(slices.Concat(p.Bindings, q.Bindings))
	return p
}

// TestWriter_Protocols: every protocol by itself and all of them, in the words of the
// real tools.
func TestWriter_Protocols(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		for _, protocol := range everyProtocol {
			p := podPlan(n.cidr, n.cidr.Addr().Next().String())
			p.Bindings[0].Protocol = protocol
			n.run(func() error { return n.writer.Check(n.Context(), Payload(p, nil)) })
			n.write(p)
			n.holds(p)
			if diff := cmp.Diff(kernel.Sorted(p.Bindings), n.look().Bindings(), addresses); diff != "" {
				t.Errorf("%s (-want +got):\n%s", protocol, diff)
			}
		}
	})
}

// TestWriter_UnusualAddresses: what iptables-save prints in another way than one might think
// is not taken for somebody's change.
func TestWriter_UnusualAddresses(t *testing.T) {
	onNode(t, func(_ *testing.T, n *node) {
		p := podPlan(n.cidr, n.cidr.Addr().Next().String())
		p.Exclusions = []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("192.0.2.0/25"), netip.MustParsePrefix("0.0.0.0/0")}
		if n.family == kernel.IPv6 {
			p.Bindings[0].EgressIP = netip.MustParseAddr("::1.2.3.4")
			p.Exclusions = []netip.Prefix{
				netip.MustParsePrefix("::102:0/112"), netip.MustParsePrefix("::102:305/128"), netip.MustParsePrefix("::ffff:0:0/96"),
				netip.MustParsePrefix("2001:db8:0:1:1:1:1:1/128"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("::/0"),
			}
		}
		n.write(p)
		n.holds(p)
	})
}

// TestWriter_DeepTrees: addresses that somebody has chosen to be hard do not make writing fail.
func TestWriter_DeepTrees(t *testing.T) {
	onNode(t, func(_ *testing.T, n *node) {
		p := skewedPlan(n.cidr)
		n.write(p)
		n.holds(p)
	})
}

// TestWriter_Journal: the bindings that a write takes away stay on record until the next one, for
// whoever starts in between.
func TestWriter_Journal(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		p := podPlan(n.cidr, n.cidr.Addr().Next().String(), n.cidr.Addr().Next().Next().String())
		n.write(p)
		for _, left := range []int{1, 0} {
			q := p
			q.Bindings = p.Bindings[:left]
			rules := Render(q)
			rules.Record(p.Bindings[left:])
			n.run(func() error { _, err := n.writer.Write(n.Context(), rules); return err })
			have := n.look()
			if diff := cmp.Diff(rules, have.Chains); diff != "" || !recorded(have) || len(wrongJumps(rules, have)) > 0 {
				t.Errorf("recorded: %v, jumps: %v (-want +got):\n%s", recorded(have), have.hooks, diff)
			}
			if diff := cmp.Diff(kernel.Sorted(p.Bindings), have.Bindings(), addresses); diff != "" {
				t.Errorf("a fresh start sees other bindings (-want +got):\n%s", diff)
			}
			if differences := Differences(Render(q), have); len(differences) > 0 {
				t.Errorf("the journal is no difference, but %v", differences)
			}
			n.write(q)
			n.holds(q)
		}
	})
}

// TestWriter_KernelGoesThroughTheTrees: real packets leave as Trace says, whether a verdict comes in
// the root chain or at the end of either tree.
func TestWriter_KernelGoesThroughTheTrees(t *testing.T) {
	withPods(t, 2, func(t *testing.T, n *node) {
		if _, err := n.lab.Outside().ServeWhoami(n.udp(), 8080); err != nil {
			t.Fatal(err)
		}
		pod, outside := n.address(n.lab.Pod(1)), n.address(n.lab.Outside())
		bound := podPlan(n.cidr, pod.String())
		bound.Bindings[0].Protocol = kernel.All
		r := rand.New(rand.NewPCG(15, 15))
		many := bound
		many.Bindings = append(randomPlan(r, n.cidr, 300).Bindings, bound.Bindings...)
		many.Bindings = slices.DeleteFunc(many.Bindings, func(b kernel.Binding) bool {
			return b.Pod == pod && b != bound.Bindings[0] || b.Pod == n.address(n.lab.Pod(2))
		})
		slices.SortFunc(many.Bindings, func(a, b kernel.Binding) int { return a.Pod.Compare(b.Pod) })
		plans := map[string]kernel.Desired{
			"one chain":   bound,
			"source tree": many,
			"both trees":  withNodes(r, many, 300),
			"to a node":   excluding(withNodes(r, many, 300), outside),
		}
		n.seenAsTraced(plans, outside)
		// A host that has the egress IP drops what comes from there.
		own := bound.Bindings[0].EgressIP
		if err := n.lab.AddAddr(n.lab.Outside(), own); err != nil {
			t.Fatal(err)
		}
		n.seenAsTraced(plans, own)
	})
}

// seenAsTraced has every pod ask destination under each of the plans.
func (n *node) seenAsTraced(plans map[string]kernel.Desired, destination netip.Addr) {
	n.Helper()
	for name, p := range plans {
		n.write(p)
		for _, from := range []*lab.Host{n.lab.Pod(1), n.lab.Pod(2)} {
			source := n.address(from)
			_, want := Render(p).Trace(Packet{source, destination, kernel.UDP})
			if !want.IsValid() {
				want = source
			}
			got, err := from.Ask(n.Context(), n.udp(), netip.AddrPortFrom(destination, 8080), lab.FreshPort())
			if err != nil || got != want {
				n.Errorf("%s: %s is seen at %s as %s, want %s (%v)", name, source, destination, got, want, err)
			}
		}
	}
}

// address returns the host's address of the node's IP family.
func (n *node) address(h *lab.Host) netip.Addr {
	if n.family == kernel.IPv6 {
		return h.V6
	}
	return h.V4
}

func (n *node) udp() string {
	if n.family == kernel.IPv6 {
		return "udp6"
	}
	return "udp4"
}

func excluding(p kernel.Desired, ip netip.Addr) kernel.Desired {
	p.Exclusions = append(slices.Clone(p.Exclusions), host(ip))
	slices.SortFunc(p.Exclusions, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
	return p
}

// TestLook_ChangesNothing: not even a table comes into being.
func TestLook_ChangesNothing(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		if k := n.look(); len(k.Chains) > 0 {
			t.Errorf("got %v from an empty kernel", k)
		}
		n.run(func() error {
			save, err := run(n.Context(), nil, n.writer.commands.save)
			if strings.Contains(save, "*nat") {
				t.Errorf("there is a table now:\n%s", save)
			}
			return err
		})
	})
}

// TestWriter_ReadKeepsNothing: what a caller does to what Read returns is nothing to the Writer,
// and the other way round.
func TestWriter_ReadKeepsNothing(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		p := podPlan(n.cidr, n.cidr.Addr().Next().String())
		n.write(p)
		k, missing := n.read()
		if all := len(rulesOfProxier) + len(chainsOfProxier); len(missing) != all {
			t.Errorf("missing of the proxier: %q, want all %d", missing, all)
		}
		n.write(kernel.Desired{})
		if diff := cmp.Diff(Render(p), k.Chains); diff != "" || len(k.hooks[postrouting].jumps) != 1 {
			t.Errorf("%d jumps (-want +got):\n%s", len(k.hooks[postrouting].jumps), diff)
		}
		n.write(p)
		k, _ = n.read()
		k.Chains[RootChain][0] = "-j ACCEPT"
		k.Chains.Record(p.Bindings)
		if n.write(p) {
			t.Error("the Writer believes what the caller has made of its answer")
		}
	})
}

func TestWriter_Repairs(t *testing.T) {
	damage := map[string]func(n *node){
		"table flushed":      func(n *node) { n.exec("-F") },
		"root chain flushed": func(n *node) { n.exec("-F", RootChain) },
		"jump deleted":       func(n *node) { n.exec("-D", postrouting, "1") },
		"rule in front":      func(n *node) { n.exec("-I", postrouting, "1", "-j", "ACCEPT") },
		"jump doubled":       func(n *node) { n.exec("-A", postrouting, "-j", RootChain) },
		"foreign rule in our chain": func(n *node) {
			n.exec("-I", RootChain, "1", "-j", "ACCEPT")
		},
		"chain of an earlier run": func(n *node) {
			n.exec("-N", ChainPrefix+"STALE")
			n.exec("-A", ChainPrefix+"STALE", "-j", "ACCEPT")
		},
	}
	onNode(t, func(t *testing.T, n *node) {
		r := rand.New(rand.NewPCG(9, 9))
		p := withNodes(r, randomPlan(r, n.cidr, 100), 100)
		n.write(p)
		for name, harm := range damage {
			harm(n)
			if len(Differences(Render(p), n.look())) == 0 {
				t.Errorf("%s: no difference", name)
			}
			n.read()
			if !n.write(p) {
				t.Errorf("%s: nothing was repaired", name)
			}
			n.holds(p)
		}
	})
}

// TestWriter_RecoversFromAFailedWrite: a change that no longer fits what is in the kernel fails
// as a whole, and the next try succeeds.
func TestWriter_RecoversFromAFailedWrite(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		r := rand.New(rand.NewPCG(10, 10))
		n.write(randomPlan(r, n.cidr, 100))
		n.exec("-F") // unnoticed
		empty := kernel.Desired{}
		failed := false
		n.run(func() error {
			// Deletes a jump that is not there any more.
			_, err := n.writer.Write(n.Context(), Render(empty))
			failed = err != nil
			return nil
		})
		if !failed {
			t.Fatal("deleting a rule that is gone did not fail")
		}
		n.write(empty)
		n.holds(empty)
	})
}

// TestWriter_ChangeOfAnotherState: who has restored what was there before is noticed by the next change, whichever chain
// that is about: flows may have begun by the old rules.
func TestWriter_ChangeOfAnotherState(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		for _, size := range []int{3, 200} {
			r := rand.New(rand.NewPCG(12, uint64(size)))
			before := randomPlan(r, n.cidr, size)
			n.write(before)
			var saved string
			n.run(func() (err error) {
				saved, err = run(n.Context(), nil, n.writer.commands.save)
				return err
			})
			after := before
			after.Bindings = before.Bindings[1:]
			n.write(after)
			change := kernel.Change{Removed: after.Bindings[:1], Networks: after.Networks}
			rendering := NewRendering(after)
			touched := rendering.Follow(change, nil)
			after.Bindings = after.Bindings[1:]
			n.run(func() error {
				if _, err := run(n.Context(), []byte(saved), n.writer.commands.restore); err != nil {
					return err
				}
				if changed, err := n.writer.WriteChains(n.Context(), rendering.Ruleset(), touched); err == nil {
					t.Errorf("changed %v, and nobody notices that another state was restored", changed)
				}
				return nil
			})
			for _, want := range []bool{true, false} {
				if k, _ := n.read(); k.Restored() != want {
					t.Errorf("it is told that another state was restored: %v, want %v", !want, want)
				}
			}
			n.holds(before)
			n.write(after)
			n.holds(after)
		}
		n.write(kernel.Desired{})
		n.holds(kernel.Desired{})
	})
}

// TestWriter_MarkThatOthersUse: a rule of somebody else in the chain that marks a write, or one that leads to it,
// keeps nothing from being written.
func TestWriter_MarkThatOthersUse(t *testing.T) {
	onNode(t, func(_ *testing.T, n *node) {
		p, q := podPlan(n.cidr, n.cidr.Addr().Next().String()), podPlan(n.cidr, n.cidr.Addr().Next().Next().String())
		n.write(p)
		n.exec("-A", n.look().marks[0], "-j", "RETURN")
		n.read()
		n.write(q)
		n.holds(q)
		n.exec("-A", "PREROUTING", "-j", n.look().marks[0])
		n.read()
		n.write(p)
		n.exec("-F", "PREROUTING")
		n.read()
		n.write(q)
		n.holds(q)
		for _, chain := range []string{postrouting, RootChain} {
			n.exec("-A", chain, "-j", n.look().marks[0])
			n.read()
			n.write(q)
			n.holds(q)
		}
	})
}

// TestWriter_RulesWithoutAMark: those of an earlier version get one.
func TestWriter_RulesWithoutAMark(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		p := podPlan(n.cidr, n.cidr.Addr().Next().String())
		n.write(p)
		n.exec("-X", n.look().marks[0])
		n.read()
		if !n.write(p) {
			t.Error("nothing is written")
		}
		n.holds(p)
		if k, _ := n.read(); k.Restored() {
			t.Error("another state was restored")
		}
	})
}

func TestWriter_LeavesOthersAlone(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		n.exec("-N", "SOMEBODY")
		n.exec("-A", "SOMEBODY", "-j", "RETURN")
		n.exec("-A", postrouting, "-j", "SOMEBODY")
		before := n.exec("-S")
		n.write(randomPlan(rand.New(rand.NewPCG(11, 11)), n.cidr, 100))
		n.write(kernel.Desired{})
		if diff := cmp.Diff(before, n.exec("-S")); diff != "" {
			t.Errorf("rules of others changed (-want +got):\n%s", diff)
		}
	})
}

// TestWriter_ChainThatOthersUse: somebody's rule that leads to a chain of ours keeps the chain
// from being deleted, but not the plan from being written.
func TestWriter_ChainThatOthersUse(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		n.write(podPlan(n.cidr, n.cidr.Addr().Next().String()))
		n.exec("-N", "SOMEBODY")
		n.exec("-A", "SOMEBODY", "-j", RootChain)
		n.read()
		n.write(kernel.Desired{})
		if got := strings.Count(n.exec("-S"), RootChain); got != 2 { // -N, and the foreign rule
			t.Errorf("want the chain to stay, empty:\n%s", n.exec("-S"))
		}
		if n.write(kernel.Desired{}) {
			t.Error("the empty chain is written again and again")
		}
		n.exec("-F", "SOMEBODY")
		n.read()
		n.write(kernel.Desired{})
		n.holds(kernel.Desired{})
	})
}

func TestCleanup_RemovesAllOfIt(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		p := randomPlan(rand.New(rand.NewPCG(12, 12)), n.cidr, 100)
		n.write(p)
		family := kernel.Family("IPv4")
		if n.cidr.Addr().Is6() {
			family = "IPv6"
		}
		var withdrawn map[kernel.Family][]kernel.Binding
		withdraw := func() (err error) {
			withdrawn, err = Withdraw(n.Context())
			return err
		}
		for range 2 { // the second finds the journal of the first, which died
			n.run(withdraw)
			if got := kernel.Sorted(withdrawn[family]); !slices.Equal(got, kernel.Sorted(p.Bindings)) {
				t.Errorf("withdrew %d bindings, want the %d that were there", len(got), len(p.Bindings))
			}
			if got := n.exec("-S"); strings.Contains(got, RootChain) || !strings.Contains(got, RemovedChain) {
				t.Errorf("want the journal and nothing else:\n%s", got)
			}
		}
		n.run(func() error { return Cleanup(n.Context(), Egress) })
		n.holds(kernel.Desired{})
		n.run(withdraw) // nothing left is no error
		if len(withdrawn[family]) != 0 {
			t.Errorf("withdrew %v from nothing", withdrawn[family])
		}
	})
}

// TestWriter_PruneOtherBackend: rules that the other back end holds would act beside ours.
func TestWriter_PruneOtherBackend(t *testing.T) {
	onNode(t, func(_ *testing.T, n *node) {
		var other *Writer
		n.run(func() error {
			current, err := n.writer.commands.backend(n.Context())
			if err != nil {
				return err
			}
			other = &Writer{owner: Egress, commands: commandsFor(n.family, map[string]string{"legacy": "nft", "nft": "legacy"}[current])}
			return nil
		})
		p := podPlan(n.cidr, n.cidr.Addr().Next().String())
		write := func(w *Writer, p kernel.Desired) {
			n.run(func() error { _, err := w.Write(n.Context(), Render(p)); return err })
		}
		write(other, p)
		n.write(p)
		n.run(func() error { return n.writer.PruneOtherBackend(n.Context()) })
		n.holds(p)
		n.run(func() error { _, _, err := other.Read(n.Context()); return err })
		if !other.known.Empty() {
			n.Errorf("the other back end still holds %v", other.known)
		}
	})
}

// TestPayload_IsAccepted: what Payload returns is input for iptables-restore --test.
func TestPayload_IsAccepted(t *testing.T) {
	onNode(t, func(_ *testing.T, n *node) {
		r := rand.New(rand.NewPCG(13, 13))
		for _, size := range []int{1, 64, 65, 1000} {
			p := withNodes(r, randomPlan(r, n.cidr, size), size)
			n.run(func() error { return n.writer.Check(n.Context(), Payload(p, nil)) })
		}
		for name, family := range map[string]kernel.Family{"one": kernel.IPv4, "tree": kernel.IPv4, "nodes": kernel.IPv4, "ipv6": kernel.IPv6} {
			golden, err := os.ReadFile(filepath.Join("testdata", name+".restore"))
			if err != nil {
				n.Fatal(err)
			}
			if family == n.family {
				n.run(func() error { return n.writer.Check(n.Context(), golden) })
			}
		}
		n.holds(kernel.Desired{})
	})
}

// TestRun_HungCommand: a wrapper script in iptables' place is killed in time, although what it
// has started lives on and holds its output open.
func TestRun_HungCommand(t *testing.T) {
	script := filepath.Join(t.TempDir(), "hangs")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nsleep 60\n:\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := run(ctx, nil, script)
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil {
			t.Error("got no error")
		}
	case <-time.After(30 * time.Second):
		t.Error("it is waited for")
	}
}

// TestApply_ComplaintQuotesTheLine: iptables-restore names a line, which nobody else has.
func TestApply_ComplaintQuotesTheLine(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		n.run(func() error {
			err := n.writer.Check(n.Context(), []byte("*nat\n-A POSTROUTING -j SNAT --to-source NOWHERE\nCOMMIT\n"))
			if err == nil || !strings.Contains(err.Error(), "NOWHERE") {
				t.Errorf("got %v, want the line in it", err)
			}
			return nil
		})
	})
}

func TestWriter_ContextEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := NewWriter(kernel.IPv4).Read(ctx); err == nil {
		t.Error("got no error")
	}
}
