package conntrack

import (
	order "cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
)

// crowd are some pods, more than few.
func (n network) crowd() (pods []netip.Addr) {
	pod := addr(n.pod)
	for range fewPods + 4 {
		pods = append(pods, pod)
		pod = pod.Next()
	}
	return pods
}

// someEntries returns entries of chance by name, with those that have to do with each other.
func (n network) someEntries(r *rand.Rand, number int) map[string]entry {
	some := func(list ...string) string { return list[r.IntN(len(list))] }
	entries := map[string]entry{}
	for i := range number {
		pod := n.crowd()[r.IntN(fewPods+4)].String()
		f := Flow{
			Protocol: []uint8{tcp, udp, sctp, icmp, esp}[r.IntN(5)],
			Source:   addr(some(pod, pod, pod, n.unbound, n.outside)),
			SeenAs:   addr(some(pod, n.node, n.egressIP, n.otherEgressIP)),
			Zone:     uint16(max(0, r.IntN(10)-7)),
		}
		to := addr(some(n.outside, n.outside, n.outside, n.excluded, n.secondNode, n.node))
		if f.Protocol == esp {
			// Without ports no two may have the same addresses.
			for range i {
				to = to.Next()
			}
		}
		f.Destination = netip.AddrPortFrom(to, uint16(1+r.IntN(3)))
		if f.Protocol == icmp || f.Protocol == esp {
			f.Destination = netip.AddrPortFrom(to, 0)
		}
		entries[fmt.Sprint("entry ", i)] = entry{Flow: f}
	}
	return entries
}

// someScope returns what changed for so many of the crowd.
func (n network) someScope(r *rand.Rand, number int) (kernel.Desired, Scope) {
	scope := Scope{Pods: map[netip.Addr]bool{}}
	var bindings []kernel.Binding
	crowd := n.crowd()
	for _, i := range r.Perm(len(crowd))[:number] {
		b := kernel.Binding{Pod: crowd[i], Protocol: []kernel.Protocol{kernel.TCP, kernel.UDP, kernel.SCTP, kernel.All}[r.IntN(4)], EgressIP: addr(n.egressIP)}
		if r.IntN(3) > 0 {
			bindings, scope.Pods[b.Pod] = append(bindings, b), true
		}
		if b.EgressIP = addr(n.otherEgressIP); !scope.Pods[b.Pod] || r.IntN(2) == 0 {
			scope.Removed = append(scope.Removed, b)
		}
	}
	slices.SortFunc(bindings, func(a, b kernel.Binding) int { return a.Pod.Compare(b.Pod) })
	return n.plan(bindings...), scope
}

func compareFlows(a, b Flow) int {
	return order.Or(order.Compare(a.Protocol, b.Protocol), a.Source.Compare(b.Source), a.Destination.Compare(b.Destination), a.SeenAs.Compare(b.SeenAs), order.Compare(a.Zone, b.Zone))
}

// flows returns those that a look of either kind calls its function for.
func (n *node) flows(look func(k *handle, see func(*tracked)) error) (flows []Flow) {
	n.Helper()
	err := n.host.Do(func() error {
		k, err := open(n.family)
		if err != nil {
			return err
		}
		defer k.close()
		return look(k, func(t *tracked) { flows = append(flows, t.Flow) })
	})
	if err != nil {
		n.Fatal(err)
	}
	slices.SortFunc(flows, compareFlows)
	return flows
}

// TestLook_SelectedByTheKernelOrNot: with flows, plans and scopes of chance, whether the kernel
// selects or not.
func TestLook_SelectedByTheKernelOrNot(t *testing.T) {
	onNode(t, func(n *node) {
		r := rand.New(rand.NewPCG(5, 5))
		entries := n.network.someEntries(r, 400)
		n.holds(entries)
		var want []Flow
		for _, e := range entries {
			if e.Protocol == icmp && n.family == kernel.IPv6 {
				e.Protocol = icmpv6
			}
			e.To = e.Destination
			e.KeepsPort, e.Answered = true, true // as holds makes them
			want = append(want, e.Flow)
		}
		slices.SortFunc(want, compareFlows)
		whole := func(k *handle, see func(*tracked)) error { return k.lookAt(n.Context(), everyone, see) }
		if diff := cmp.Diff(want, n.flows(whole), compareNetip); diff != "" {
			n.Fatalf("what the kernel tells (-want +got):\n%s", diff)
		}
		deleted := 0
		for round := range 3 * (fewPods + 4) {
			number := 1 + round%(fewPods+4)
			after, scope := n.network.someScope(r, number)
			selector := NewSelector(after, scope, n.network.local())
			selected := func(flows []Flow) []Flow {
				return slices.DeleteFunc(flows, func(f Flow) bool { return selector.Judge(f) == Stays })
			}
			want := selected(n.flows(whole))
			size := tableSize{buckets: 1, flows: 100_000}
			if round%2 == 0 {
				size = tableSize{buckets: 100_000, flows: 1}
			}
			told := n.flows(func(k *handle, see func(*tracked)) error {
				k.size = size
				return k.look(n.Context(), selector, see)
			})
			alone := number <= fewPods && size.cheaperAlone(number)
			if i := slices.IndexFunc(told, func(f Flow) bool { return !slices.Contains(n.network.crowd(), f.Source) }); (i < 0) != alone && n.family == kernel.IPv4 {
				n.Errorf("%d pods, table of size %+v: the kernel selected: %t, want %t", number, size, i < 0, alone)
			}
			if diff := cmp.Diff(want, selected(told), compareNetip); diff != "" {
				n.Errorf("%d pods (-want +got):\n%s", number, diff)
			}
			if got, err := n.delete(n.Context(), after, scope); got != len(want) || err != nil {
				n.Errorf("%d pods: deleted %d, error %v; want %d", number, got, err, len(want))
			}
			if left := selected(n.flows(whole)); len(left) > 0 {
				n.Errorf("%d pods: left: %+v", number, left)
			}
			deleted += len(want)
			// Those are not the same the next time.
			if round%(fewPods+4) == fewPods+3 {
				n.flush()
				n.holds(n.network.someEntries(r, 400))
			}
		}
		if deleted < 100 {
			n.Errorf("only %d flows were wrong, which proves little", deleted)
		}
	})
}

// TestLook_FlowsOfTheFarSide: a flow that the far side has begun, to a port of a pod's block, is found and ended when the pod loses its egress IP.
// Its source is not the pod, so the kernel is not asked for the flows of the pod alone, although that would be cheaper.
func TestLook_FlowsOfTheFarSide(t *testing.T) {
	onNode(t, func(n *node) {
		w := n.network
		const port = 32000
		begun := flow(tcp, w.outside, netip.AddrPortFrom(addr(w.pod), port).String(), w.outside)
		n.holds(map[string]entry{"begun outside": {Flow: begun, dialled: netip.AddrPortFrom(addr(w.egressIP), port)}})
		scope := Scope{
			Removed: []kernel.Binding{binding(w.pod, kernel.TCP, w.egressIP)},
			Blocks:  []kernel.Block{{Pod: addr(w.pod), EgressIP: addr(w.egressIP), Ports: kernel.Ports{First: port, Last: port + 511}}},
		}
		found := n.flows(func(k *handle, see func(*tracked)) error {
			k.size = tableSize{buckets: 1, flows: 100_000}
			if !k.size.cheaperAlone(2) {
				n.Fatal("it is not cheaper to ask for the flows of a pod alone")
			}
			return k.look(n.Context(), NewSelector(w.plan(), scope, w.local()), see)
		})
		if !slices.ContainsFunc(found, func(f Flow) bool { return f.Source == begun.Source && f.Destination == begun.Destination }) {
			n.Errorf("found are %+v, without the flow that the far side has begun", found)
		}
		n.deletes(w.plan(), scope, "begun outside")
	})
}

func TestTableSize_CheaperAlone(t *testing.T) {
	for _, test := range []struct {
		buckets, flows, pods int
		want                 bool
	}{
		{buckets: 262_144, flows: 1, pods: 1, want: true},
		{buckets: 262_144, flows: 100_000, pods: 1, want: true},
		{buckets: 262_144, flows: 1, pods: 2, want: false},
		{buckets: 262_144, flows: 7_000, pods: 2, want: false},
		{buckets: 262_144, flows: 9_000, pods: 2, want: true},
		{buckets: 262_144, flows: 200_000, pods: 6, want: true},
		{buckets: 262_144, flows: 100_000, pods: 6, want: false},
		{buckets: 16_384, flows: 7_000, pods: 2, want: true},
		{buckets: 16_384, flows: 1_000_000, pods: fewPods + 1, want: false},
	} {
		size := tableSize{test.buckets, test.flows}
		if got := size.cheaperAlone(test.pods); got != test.want {
			t.Errorf("%+v, %d pods: %t, want %t", size, test.pods, got, test.want)
		}
	}
}

// TestReadSize_OfTheNamespace: the flows are those of the namespace of the thread.
func TestReadSize_OfTheNamespace(t *testing.T) {
	onNode(t, func(n *node) {
		const number = 10
		n.holds(n.numbered(number))
		var size tableSize
		err := n.host.Do(func() error {
			size = readSize()
			return nil
		})
		if err != nil || size.flows < number || size.flows > 100*number || size.buckets < 1024 {
			n.Errorf("size %+v, error %v; want about %d flows, and the buckets", size, err, number)
		}
	})
}

func (n *node) flush() {
	n.Helper()
	if _, err := n.host.Run(n.Context(), "conntrack", "-F"); err != nil {
		n.Fatal(err)
	}
	n.names = map[uint32]string{}
}

// numbered are so many wrong flows.
func (n *node) numbered(number int) map[string]entry {
	entries := map[string]entry{}
	for i := range number {
		entries[fmt.Sprintf("%03d", i)] = entry{Flow: flow(tcp, n.network.pod, netip.AddrPortFrom(addr(n.network.outside), 443).String(), n.network.node)}
	}
	return entries
}

func TestDelete_MoreThanAreSentAtOnce(t *testing.T) {
	onNode(t, func(n *node) {
		for _, number := range []int{deletions - 1, deletions, deletions + 1, 3*deletions + 7} {
			entries := n.numbered(number)
			n.holds(entries)
			if got, err := n.delete(n.Context(), n.bound(), Scope{All: true}); got != number || err != nil {
				n.Errorf("deleted %d, error %v; want %d", got, err, number)
			}
			n.flush()
		}
	})
}

// TestDeleter_FlowReplacedMeanwhile: a flow that took the place of a wrong one after that was seen is
// kept; one that is gone is no error.
func TestDeleter_FlowReplacedMeanwhile(t *testing.T) {
	onNode(t, func(n *node) {
		bystander := map[string]entry{"bystander": {Flow: flow(tcp, n.network.unbound, n.network.outside, n.network.node)}}
		n.holds(bystander)
		const number = 10 // below what is sent at once
		var k *handle
		var d *deleter
		err := n.host.Do(func() (err error) {
			if k, err = open(n.family); err != nil {
				return err
			}
			n.Cleanup(k.close)
			n.holds(n.numbered(number))
			if d, err = k.newDeleter(); err != nil {
				return err
			}
			return k.lookAt(n.Context(), everyone, func(t *tracked) {
				if t.Source == addr(n.network.pod) {
					d.do(t, Ends)
				}
			})
		})
		if err != nil {
			n.Fatal(err)
		}
		defer d.close()
		if len(d.entries) != number {
			n.Fatalf("%d deletions are pending, want %d", len(d.entries), number)
		}
		// Somebody else deletes all of them, and the packets of some come again.
		n.flush()
		n.holds(bystander) // so that the others have the same ports as before
		successors := map[string]entry{}
		for name, e := range n.numbered(number - 4) {
			if len(successors)%2 == 0 {
				e.SeenAs = addr(n.network.egressIP) // decided anew
			} else {
				e.Source = addr(n.network.unbound) // looks the same from outside
			}
			successors[name] = e
		}
		n.holds(successors)
		want := n.left()
		if err := n.host.Do(d.finish); err != nil || d.done.Ended != 0 {
			n.Errorf("deleted %d, error %v; want none", d.done.Ended, err)
		}
		if diff := cmp.Diff(want, n.left()); diff != "" || len(want) != number-4+1 {
			n.Errorf("left (-want +got):\n%s", diff)
		}
	})
}

// TestDeleter_EntryWithoutAName: what cannot be named is not deleted, least of all everything.
func TestDeleter_EntryWithoutAName(t *testing.T) {
	onNode(t, func(n *node) {
		n.holds(n.numbered(5))
		err := n.host.Do(func() error {
			k, err := open(n.family)
			if err != nil {
				return err
			}
			defer k.close()
			d, err := k.newDeleter()
			if err != nil {
				return err
			}
			defer d.close()
			for range 2 * deletions {
				d.do(&tracked{}, Ends)
				d.do(&tracked{id: attr(attrID, []byte{1, 2, 3, 4})}, Ends)
				d.do(&tracked{reply: attr(attrReply), id: attr(attrID, []byte{1, 2, 3, 4})}, Ends)
			}
			return d.finish()
		})
		if err != nil {
			n.Error(err)
		}
		if got := len(n.left()); got != 5 {
			n.Errorf("%d entries are left, want 5", got)
		}
	})
}

// TestDeleter_BrokenSocket: what was sent in vain is not counted.
func TestDeleter_BrokenSocket(t *testing.T) {
	for family, n := range networks {
		d := &deleter{handle: &handle{family: family, deletions: &socket{fd: -1, buffer: make([]byte, received)}}, noBarrier: errNoBarrier}
		wrong := decode(bodyOf(family, wholeParts(n)))
		for range 2 * deletions {
			d.do(&wrong, Ends)
		}
		if err := d.finish(); !errors.Is(err, unix.EBADF) || d.done.Ended != 0 {
			t.Errorf("%s: deleted %d, error %v; want none, EBADF", family, d.done.Ended, err)
		}
	}
}

// TestDeleter_CountsRefusals counts what the kernel answers. A flow that goes on does not count as ended.
func TestDeleter_CountsRefusals(t *testing.T) {
	d := &deleter{handle: &handle{deletions: &socket{sequence: 17}}, entries: slices.Repeat([]doomed{{verdict: Ends}}, 6)}
	d.entries[3].verdict = Moves
	for i, err := range []error{nil, unix.ENOENT, unix.EBUSY, unix.EPERM, unix.EPERM, nil} {
		d.note(uint32(12+i), err)
	}
	d.count()
	d.entries = nil
	if err := d.finish(); d.done.Ended != 2 || d.refused != 3 || !errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ENOENT) {
		t.Errorf("deleted %d, refused %d, error %v; want 2, 3, EBUSY", d.done.Ended, d.refused, err)
	}
}
