package pool

import (
	"context"
	"errors"
	"math"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/wake"
)

// fakeKernel is a kernel that fails when it is told to. Its interface does not exist, so nothing is advertised.
type fakeKernel struct {
	held   map[netip.Addr]int
	unread bool
	// unreads are the errors of the next reads.
	unreads  []error
	unputs   []netip.Addr
	unremove bool
	// subnets are those of its interfaces, instead of the one.
	subnets []subnetOn
	// age is how old what it has is when it has been read. changed is called before an address is put, if there is one.
	age     time.Duration
	changed func()
	// joined are the addresses that were waited for, unjoined those that were in vain.
	joined, unjoined []netip.Addr
	// reads counts how often it was read.
	reads int
}

var errFake = errors.New("the kernel does not do it")

func (k *fakeKernel) read() (*links, error) {
	k.reads++
	if k.unread {
		return nil, errFake
	}
	if len(k.unreads) > 0 {
		err := k.unreads[0]
		k.unreads = k.unreads[1:]
		return nil, err
	}
	l := &links{
		at: time.Now().Add(-k.age), ours: map[netip.Addr]int{}, subnets: []subnetOn{{subnet, math.MaxInt32}}, up: map[int]bool{},
		byIndex: map[int]*net.Interface{math.MaxInt32: {Index: math.MaxInt32, Name: "none", HardwareAddr: make(net.HardwareAddr, 6)}},
	}
	for _, s := range k.subnets {
		l.byIndex[s.index] = &net.Interface{Index: s.index}
		l.subnets = k.subnets
	}
	for _, s := range l.subnets {
		l.up[s.index] = s.Up
	}
	l.networks = networksOf(l.subnets)
	for ip, index := range k.held {
		l.ours[ip] = index
	}
	return l, nil
}

func (k *fakeKernel) put(ip netip.Addr, index int) error {
	if slices.Contains(k.unputs, ip) {
		return errFake
	}
	if k.changed != nil {
		k.changed()
	}
	k.held[ip] = index
	return nil
}

func (k *fakeKernel) join(put []netip.Addr) ([]netip.Addr, error) {
	k.joined = append(k.joined, put...)
	return k.unjoined, nil
}

func (k *fakeKernel) remove(ip netip.Addr, _ int) error {
	if k.unremove {
		return errFake
	}
	delete(k.held, ip)
	return nil
}

// newFakeRunner returns the Runner of member a with such a kernel. It is not run.
func newFakeRunner() (*Runner, *fakeKernel) {
	k := &fakeKernel{held: map[netip.Addr]int{}}
	r := NewRunner(Config{NodeName: "a", Keys: testKeys, Wake: wake.New()}, newMember("a"))
	r.kernel = k
	return r, k
}

func take(ip netip.Addr) Take { return Take{Address: ip, Epoch: 2, Until: time.Now().Add(time.Minute)} }

func (r *Runner) doNow(actions ...Action) Event {
	return r.do(context.Background(), klog.Background(), actions)
}

// failed are the addresses that could not be taken, by what the member is to hear next.
func failed(e Event) []netip.Addr {
	f, _ := e.(TakeFailed)
	return slices.Concat(f.Addresses, f.Late)
}

func TestRunner_KernelThatCannotBeReadFailsTheWholeBatch(t *testing.T) {
	r, k := newFakeRunner()
	k.unread = true
	if got := failed(r.doNow(take(ip1), take(ip2))); !slices.Equal(got, []netip.Addr{ip1, ip2}) {
		t.Errorf("failed to take %v, want both", got)
	}
	r.doNow(Release{Address: ip1}, Release{Address: ip2})
}

func TestRunner_RemovesAgainWhatCouldNotBeRemoved(t *testing.T) {
	for name, fail := range map[string]func(*fakeKernel, bool){
		"not read":    func(k *fakeKernel, now bool) { k.unread = now },
		"not removed": func(k *fakeKernel, now bool) { k.unremove = now },
	} {
		r, k := newFakeRunner()
		k.held[ip1], k.held[ip2] = 1, 1
		fail(k, true)
		r.doNow(Release{Address: ip1}, Release{Address: ip2})
		if len(k.held) != 2 {
			t.Fatalf("%s: the kernel has %v, want both addresses", name, k.held)
		}
		if pause := r.pause(); pause > removeAgain {
			t.Errorf("%s: the next look is in %v, want at most %v", name, pause, removeAgain)
		}
		fail(k, false)
		r.doNow(take(ip2))
		r.again = r.again.Add(-removeAgain)
		r.remove(klog.Background())
		if _, has := k.held[ip2]; len(k.held) != 1 || !has {
			t.Errorf("%s: the kernel has %v, want %v, which was taken again", name, k.held, ip2)
		}
	}
}

// TestRunner_AwaitsTheGroupsOfWhatItTakes before it says that the addresses are here, which it says even if it has waited in vain.
func TestRunner_AwaitsTheGroupsOfWhatItTakes(t *testing.T) {
	r, k := newFakeRunner()
	k.unjoined = []netip.Addr{ip2}
	var moved []netip.Addr
	r.config.Moved = func(moves []Move) {
		for _, m := range moves {
			moved = append(moved, m.Address)
		}
		if want := []netip.Addr{ip1, ip2}; !slices.Equal(k.joined, want) {
			t.Errorf("waited for %v, want %v", k.joined, want)
		}
	}
	if got := failed(r.doNow(take(ip1), take(ip2))); len(got) > 0 || len(moved) != 2 {
		t.Errorf("failed to take %v, and took %v, want both taken", got, moved)
	}
}

// TestRunner_RemovesWhatItCouldNotTakeAgain: a take that fails does not end the removal of what was released before.
func TestRunner_RemovesWhatItCouldNotTakeAgain(t *testing.T) {
	r, k := newFakeRunner()
	k.held[ip1], k.unremove, k.unputs = 1, true, []netip.Addr{ip1}
	r.doNow(Release{Address: ip1})
	r.doNow(take(ip1))
	k.unremove, r.again = false, time.Time{}
	r.remove(klog.Background())
	if len(k.held) > 0 {
		t.Errorf("the kernel still has %v", k.held)
	}
}

// TestRunner_DoesNotTellOfAddressesThatItCouldNotTake: the drained node would release them.
func TestRunner_DoesNotTellOfAddressesThatItCouldNotTake(t *testing.T) {
	r, k := newFakeRunner()
	r.members = &members{}
	k.unputs = []netip.Addr{ip1}
	r.doNow(take(ip1), Publish{State{Name: "a", Held: map[netip.Addr]uint64{ip1: 2}}})
	if r.members.state != nil {
		t.Errorf("others are told %s, want nothing", r.members.state)
	}
	r.doNow(Publish{State{Name: "a"}})
	if r.members.state == nil {
		t.Error("others are told nothing afterwards")
	}
}

// TestRunner_TellsTheNodesBeforeTheNetwork of what is handed over: its former holder serves it meanwhile. What nobody serves is
// advertised at once.
func TestRunner_TellsTheNodesBeforeTheNetwork(t *testing.T) {
	for why, want := range map[Reason]bool{Drained: false, Dead: true} {
		r, _ := newFakeRunner()
		advertised := false
		one := take(ip1)
		one.Why, one.PassOn = why, why == Drained
		r.config.Moved = func(moves []Move) {
			advertised = len(r.repeats) > 0
			if moves[0].PassOn != one.PassOn {
				t.Errorf("%s: told %+v", why, moves[0])
			}
		}
		r.doNow(one)
		if advertised != want || len(r.repeats) != len(repeats) {
			t.Errorf("%s: advertised before the nodes are told: %v, want %v; and %d times afterwards, want %d", why, advertised, want, len(r.repeats), len(repeats))
		}
	}
}

// TestRunner_TellsOfWhatItReleases before it removes it, and whether its connections go on.
func TestRunner_TellsOfWhatItReleases(t *testing.T) {
	for _, goOn := range []bool{true, false} {
		r, k := newFakeRunner()
		k.held[ip1] = 1
		var told []Move
		r.config.Moved = func(moves []Move) {
			if told = append(told, moves...); len(k.held) == 0 {
				t.Error("it is removed before it is told of")
			}
		}
		r.doNow(Release{Address: ip1, Why: HandedOver, To: "b", GoOn: goOn})
		if len(k.held) > 0 || len(told) != 1 || told[0].GoOn != goOn || told[0].Other != "b" {
			t.Errorf("told %+v, want one move to b that goes on: %v; the kernel has %v", told, goOn, k.held)
		}
	}
}

func TestRunner_TakesNothingTooLate(t *testing.T) {
	r, k := newFakeRunner()
	if got := failed(r.doNow(Take{Address: ip1, Until: time.Now().Add(-time.Nanosecond)}, take(ip2))); !slices.Equal(got, []netip.Addr{ip1}) || len(k.held) != 1 {
		t.Errorf("failed to take %v, and the kernel has %v; want %v failed, as it is late", got, k.held, ip1)
	}
}

// TestRunner_RenewsOnlyWhatIsThere: also if the process was stopped after it had read what is.
func TestRunner_RenewsOnlyWhatIsThere(t *testing.T) {
	r, k := newFakeRunner()
	k.held[ip1], k.held[ip2] = 1, 1
	k.age = rereadAfter + 1
	k.changed = func() { delete(k.held, ip2) }
	r.doNow(Renew{[]netip.Addr{ip1, ip2}})
	if _, has := k.held[ip2]; has || len(k.held) != 1 {
		t.Errorf("the kernel has %v, want %v", k.held, ip1)
	}
	if events := r.dequeue(); !cmp.Equal(events, []Event{Removed{[]netip.Addr{ip2}}}, compare) {
		t.Errorf("told of %v, want that %v is gone", events, ip2)
	}
}

func TestRunner_AdvertisesAgainWhatCameBack(t *testing.T) {
	r, _ := newFakeRunner()
	r.doNow(Advertise{[]netip.Addr{ip1}})
	if len(r.repeats) != len(repeats) {
		t.Errorf("it is advertised %d times again, want %d", len(r.repeats), len(repeats))
	}
}

// TestRunner_AdvertisesNothingThatItHasNotAskedFor: another node may have taken over what an earlier process has left here.
func TestRunner_AdvertisesNothingThatItHasNotAskedFor(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, k := newFakeRunner()
	k.held[ip1] = 1
	cancel()
	r.Run(ctx)
	r.member.Next(Found{[]netip.Addr{ip1}}, time.Now())
	before := k.reads
	if r.advertiseAgain(klog.Background()); k.reads > before {
		t.Error("it is advertised at once")
	}
	r.advertise = time.Now()
	if r.advertiseAgain(klog.Background()); k.reads == before {
		t.Error("it is never advertised again")
	}
}

// TestRunner_NoticesWhatGoesWhileItStarts: between the first look at the kernel and the watch.
func TestRunner_NoticesWhatGoesWhileItStarts(t *testing.T) {
	r, k := newFakeRunner()
	k.held[ip1], k.held[ip2] = math.MaxInt32, math.MaxInt32
	found := r.findAddresses(t.Context())
	delete(k.held, ip1)
	r.dequeue()
	if _, err := r.tellChanges(found); err != nil {
		t.Fatal(err)
	}
	events := r.dequeue()
	if len(events) != 2 || !cmp.Equal(events[1], Removed{[]netip.Addr{ip1}}, compare) {
		t.Errorf("told of %v, want that %v is gone", events, ip1)
	}
}

// TestRunner_ReadsAgainAfterAFailure: a change that could not be read is told later, although nothing changes any more.
func TestRunner_ReadsAgainAfterAFailure(t *testing.T) {
	r, k := newFakeRunner()
	k.unreads = []error{errFake, netlink.ErrDumpInterrupted}
	if _, err := r.tellChanges(nil); !errors.Is(err, errFake) {
		t.Errorf("it hides that it could not read: %v", err)
	}
	if _, err := r.tellChanges(nil); err != nil {
		t.Errorf("it does not wait for the change that has interrupted it: %v", err)
	}
	k.unreads = []error{errFake}
	var watching sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	watching.Go(func() { r.watchKernel(ctx, nil) })
	defer watching.Wait()
	defer stop()
	for deadline := time.Now().Add(10 * time.Second); len(r.dequeue()) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the member is not told of this node's subnets")
		}
	}
}

// TestRunner_SaysSinceWhenItHangs to the watchdog: an event waits, or what was taken is not dealt with.
func TestRunner_SaysSinceWhenItHangs(t *testing.T) {
	r, _ := newFakeRunner()
	due := func(want bool, when string) {
		t.Helper()
		if got := !r.DueSince().IsZero(); got != want {
			t.Errorf("%s: something is due: %v, want %v", when, got, want)
		}
	}
	due(false, "at first")
	r.Tell(Tick{})
	due(true, "an event waits")
	r.dequeue()
	due(true, "it is being dealt with")
	r.done()
	due(false, "it is dealt with")
	r.dequeue()
	due(true, "only time has passed")
	r.Tell(Tick{})
	r.done()
	due(true, "another event has come meanwhile")
}

// TestRunner_AddressThatWasTakenAgainIsNotGone: the kernel's report that it was removed may be late.
func TestRunner_AddressThatWasTakenAgainIsNotGone(t *testing.T) {
	r, k := newFakeRunner()
	k.held[ip1] = math.MaxInt32
	if got := r.asItIs(Removed{[]netip.Addr{ip1, ip2}}).(Removed); !slices.Equal(got.Addresses, []netip.Addr{ip2}) {
		t.Errorf("removed are %v, want %v", got.Addresses, ip2)
	}
}

// TestRunner_AddressWithoutASubnetIsNotFree: its interface may have lost the subnet since the address was assigned.
func TestRunner_AddressWithoutASubnetIsNotFree(t *testing.T) {
	r, k := newFakeRunner()
	k.subnets = []subnetOn{{Network{Prefix: netip.MustParsePrefix("198.51.100.0/24"), Up: true}, 1}}
	r.probe(t.Context(), klog.Background(), Probe{Addresses: []netip.Addr{ip1}})
	if got := r.dequeue()[0].(Probed).Answers[ip1]; !got.Failed {
		t.Errorf("the answer is %+v, want that it could not be asked for", got)
	}
}

// TestRunner_InterfacesThatOverlap: an address is put on the interface whose subnet has the longest prefix, even if its link is down, and
// another one with the same subnet gets it when that one alone has a link.
func TestRunner_InterfacesThatOverlap(t *testing.T) {
	up, down, larger := subnet, Network{Prefix: subnet.Prefix}, Network{Prefix: netip.MustParsePrefix("192.0.0.0/16"), Up: true}
	for name, test := range map[string]struct {
		subnets []subnetOn
		want    int
		serves  bool
	}{
		"the smaller subnet":            {[]subnetOn{{larger, 1}, {up, 2}}, 2, true},
		"the smaller one, down":         {[]subnetOn{{larger, 1}, {down, 2}}, 2, true},
		"the larger one has it":         {[]subnetOn{{larger, 2}, {up, 3}}, 3, true},
		"two, that with it is up":       {[]subnetOn{{down, 1}, {up, 2}}, 2, true},
		"two, the other one is up":      {[]subnetOn{{up, 1}, {down, 2}}, 1, false},
		"two, both are down":            {[]subnetOn{{down, 1}, {down, 2}}, 1, true},
		"the larger one has it, down":   {[]subnetOn{{Network{Prefix: larger.Prefix}, 2}, {up, 3}}, 3, false},
		"in no subnet, as nobody knows": {[]subnetOn{{Network{Prefix: netip.MustParsePrefix("198.51.100.0/24"), Up: true}, 1}}, 0, true},
	} {
		r, k := newFakeRunner()
		k.held[ip1], k.subnets = 2, test.subnets
		l, _ := k.read()
		got := 0
		if link, found := l.link(ip1); found {
			got = link.Index
		}
		if got != test.want {
			t.Errorf("%s: it is put on interface %d, want %d", name, got, test.want)
		}
		if _, err := r.tellChanges(k.held); err != nil {
			t.Fatal(err)
		}
		var gone []netip.Addr
		for _, e := range r.dequeue() {
			if e, is := r.asItIs(e).(Removed); is {
				gone = e.Addresses
			}
		}
		if (len(gone) == 0) != test.serves {
			t.Errorf("%s: told that it is gone: %v, want %v", name, gone, !test.serves)
		}
		if r.doNow(Release{Address: ip1, Why: Gone}); len(k.held) > 0 {
			t.Errorf("%s: it stays on interface %d", name, k.held[ip1])
		}
	}
}
