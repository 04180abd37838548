package pool

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/pool/neighbor"
	"github.com/openshift/origin-node/pkg/wake"
)

// A node of the pool in these tests is a process in a network namespace: this test binary.
func TestMain(m *testing.M) {
	if text := os.Getenv(nodeVariable); text != "" {
		if err := runNode(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

const nodeVariable = "POOL_TEST_NODE"

// nodeConfig is what the process of a node is told.
type nodeConfig struct {
	Name   string
	Nodes  map[string]netip.Addr
	Wanted []netip.Addr
	Key    []byte
}

var poolNetworks = []netip.Prefix{netip.MustParsePrefix("192.0.2.96/27"), netip.MustParsePrefix("2001:db8:0:2::100/120")}

// runNode runs a node until SIGTERM. It prints its moves; on SIGUSR1 it is drained.
func runNode(text string) error {
	var c nodeConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
	defer stop()
	config := Config{
		NodeName: c.Name, Port: 7947, Networks: poolNetworks, Ignored: "steer0", Wake: wake.New(),
		Moved: func(moves []Move) {
			for _, m := range moves {
				_ = json.NewEncoder(os.Stdout).Encode(m)
			}
		},
	}
	config.Keys = func() holders.Keys { return holders.Keys{c.Key} }
	r := NewRunner(config, NewMember(holders.NewDirectory(holders.Config{NodeName: c.Name}), NewRun(), false))
	var names []string
	for name := range c.Nodes {
		names = append(names, name)
	}
	r.SetNodes(c.Nodes, names, nil)
	r.Tell(Wanted{Addresses: c.Wanted})
	drain := make(chan os.Signal, 1)
	signal.Notify(drain, unix.SIGUSR1)
	go func() {
		for range drain {
			r.Tell(Drain{true})
		}
	}()
	go printSeen(ctx, r)
	r.Run(klog.NewContext(ctx, klog.Background()))
	return nil
}

// seen is what a node sees: how many nodes are alive, and how many of its claims other hosts have.
type seen struct{ Votes, InUse int }

// printSeen prints what a node sees, when that changes.
func printSeen(ctx context.Context, r *Runner) {
	for before := (seen{}); ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		status := r.Status()
		now := seen{Votes: status.Votes}
		if len(status.Members) > 0 {
			for _, mac := range status.Members[0].Claims {
				if mac != "" {
					now.InUse++
				}
			}
		}
		if now != before {
			before = now
			_ = json.NewEncoder(os.Stdout).Encode(now)
		}
	}
}

// testPool is a pool of nodes in network namespaces.
type testPool struct {
	*testing.T
	*lab.Lab
	config nodeConfig
	nodes  []*testNode

	mu sync.Mutex
	// moves are those by which a node takes an address.
	moves []testMove
}

type testNode struct {
	host *lab.Host
	name string
	cmd  *exec.Cmd
	seen
}

type testMove struct {
	Move
	node *testNode
}

func newTestPool(t *testing.T, nodes, addresses int) *testPool {
	t.Helper()
	p := &testPool{T: t, Lab: lab.ForTest(t, lab.Config{Nodes: nodes, IPv6: true}), config: nodeConfig{Nodes: map[string]netip.Addr{}, Key: make([]byte, 32)}}
	for i := range addresses {
		p.config.Wanted = append(p.config.Wanted, netip.MustParseAddr(fmt.Sprintf("192.0.2.%d", 100+i)), netip.MustParseAddr(fmt.Sprintf("2001:db8:0:2::1%02x", i)))
	}
	for i, host := range p.Nodes() {
		n := &testNode{host: host, name: fmt.Sprintf("node-%d", i+1)}
		p.nodes = append(p.nodes, n)
		p.config.Nodes[n.name] = host.V4
	}
	return p
}

// startAll starts the processes, and waits until they know each other, and have the addresses.
func (p *testPool) startAll() {
	p.Helper()
	for _, n := range p.nodes {
		p.start(n)
	}
	p.complete()
	// Two may take one address if they hear of each other late; it is over when nothing has moved for a while.
	const quiet = 2 * time.Second
	moves, since := 0, time.Now()
	p.eventually(func() string {
		if now := p.count(); now != moves {
			moves, since = now, time.Now()
		}
		if moves < len(p.config.Wanted) || time.Since(since) < quiet {
			return fmt.Sprintf("there were %d moves, the last one %v ago; want at least %d, and none for %v", moves, time.Since(since), len(p.config.Wanted), quiet)
		}
		return ""
	})
	p.placed(20*time.Second, p.nodes...)
}

// start starts the process of a node.
func (p *testPool) start(n *testNode) {
	p.Helper()
	config := p.config
	config.Name = n.name
	text, err := json.Marshal(config)
	p.must(err)
	binary, err := os.Executable()
	p.must(err)
	n.cmd = n.host.Command(context.Background(), binary)
	n.cmd.Env = append(n.cmd.Environ(), nodeVariable+"="+string(text))
	out, err := n.cmd.StdoutPipe()
	p.must(err)
	n.cmd.Stderr = os.Stderr
	p.must(n.cmd.Start())
	cmd, read := n.cmd, make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.mu.Lock()
			var m Move
			if err := json.Unmarshal(lines.Bytes(), &m); err == nil && m.Address.IsValid() {
				if m.Taken {
					p.moves = append(p.moves, testMove{m, n})
				}
			} else {
				_ = json.Unmarshal(lines.Bytes(), &n.seen)
			}
			p.mu.Unlock()
		}
	}()
	p.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-read
		_ = cmd.Wait()
	})
}

func (p *testPool) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// held are the pool's addresses in the kernel of a node.
func (p *testPool) held(n *testNode) (list []netip.Addr) {
	p.Helper()
	all, err := n.host.Held()
	p.must(err)
	for _, ip := range all {
		if slices.Contains(p.config.Wanted, ip) {
			list = append(list, ip)
		}
	}
	return list
}

// placed waits until each address is on exactly one of these nodes. How many each of them gets depends on which it finds alive at that moment;
// the simulation judges that.
func (p *testPool) placed(within time.Duration, over ...*testNode) {
	p.Helper()
	deadline := time.Now().Add(within)
	for {
		counts, seen := map[string]int{}, map[netip.Addr]int{}
		for _, n := range over {
			for _, ip := range p.held(n) {
				counts[n.name]++
				seen[ip]++
			}
		}
		once := len(seen) == len(p.config.Wanted)
		for _, times := range seen {
			once = once && times == 1
		}
		if once {
			return
		}
		if time.Now().After(deadline) {
			p.Fatalf("the nodes have %v, %d addresses in all; want each of %d on one node", counts, len(seen), len(p.config.Wanted))
		}
		time.Sleep(5 * time.Millisecond) // a poll
	}
}

// count is how many addresses were taken.
func (p *testPool) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.moves)
}

// eventually waits until nothing is wrong.
func (p *testPool) eventually(wrong func() string) {
	p.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		text := wrong()
		if text == "" {
			return
		}
		if time.Now().After(deadline) {
			p.Fatal(text)
		}
	}
}

// complete waits until all nodes find each other alive.
func (p *testPool) complete() {
	p.Helper()
	p.eventually(func() string {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, n := range p.nodes {
			if n.Votes != len(p.nodes) {
				return fmt.Sprintf("%s finds %d nodes alive, want %d", n.name, n.Votes, len(p.nodes))
			}
		}
		return ""
	})
}

// others are the nodes but one.
func (p *testPool) others(than *testNode) []*testNode {
	return slices.DeleteFunc(slices.Clone(p.nodes), func(n *testNode) bool { return n == than })
}

// moved lets a node lose its addresses, and waits until the others have taken them: those and no more, each on one node. Two
// may take the same one if they hear of each other late; one of them gives way then.
func (p *testPool) moved(what string, n *testNode, lose func()) {
	p.Helper()
	lost := p.held(n)
	before, began := p.count(), time.Now()
	lose()
	p.eventually(func() string {
		on := map[netip.Addr]int{}
		for _, other := range p.others(n) {
			for _, ip := range p.held(other) {
				on[ip]++
			}
		}
		if i := slices.IndexFunc(lost, func(ip netip.Addr) bool { return on[ip] != 1 }); i >= 0 {
			return fmt.Sprintf("%s: %v is on %d other nodes, want one", what, lost[i], on[lost[i]])
		}
		if p.count()-before < len(lost) {
			return "not all moves are printed"
		}
		return ""
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	times := map[netip.Addr]time.Duration{}
	for _, m := range p.moves[before:] {
		times[m.Address] = m.At.Sub(began).Round(time.Millisecond)
		if !slices.Contains(lost, m.Address) {
			p.Errorf("%s: %s has taken %s from %s because %s, which %s did not have", what, m.node.name, m.Address, m.Other, m.Why.Because(), n.name)
		}
	}
	if len(times) != len(lost) || len(lost) == 0 {
		p.Fatalf("%s: %d addresses were taken, want %d, and some", what, len(times), len(lost))
	}
	after := slices.Sorted(maps.Values(times))
	p.Logf("%s: %d addresses were taken after %v to %v, %d of them by two", what, len(lost), after[0], after[len(after)-1], len(p.moves)-before-len(lost))
}

// gone waits until a node has none of the pool's addresses.
func (p *testPool) gone(n *testNode) {
	p.Helper()
	p.eventually(func() string {
		if held := p.held(n); len(held) > 0 {
			return fmt.Sprintf("%s still has %v", n.name, held)
		}
		return ""
	})
}

func TestRunner_PoolOfFive(t *testing.T) {
	p := newTestPool(t, 5, 10)
	p.startAll()

	n := p.nodes[1]
	p.moved("link cut", n, func() { p.must(p.SetLink(n.host, false)) })
	p.gone(n)
	p.must(p.SetLink(n.host, true))
	p.complete()

	n = p.nodes[2]
	p.moved("switch silent", n, func() { p.must(p.SetForwarding(n.host, false)) })
	p.gone(n)
	p.must(p.SetForwarding(n.host, true))
	p.complete()

	n = p.nodes[3]
	p.moved("drained", n, func() { p.must(n.cmd.Process.Signal(unix.SIGUSR1)) })
	p.gone(n)

	n = p.nodes[0]
	before := p.count()
	p.must(n.cmd.Process.Kill())
	p.eventually(func() string {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.nodes[4].Votes != 4 {
			return "a dead process is found alive"
		}
		return ""
	})
	p.start(n)
	p.complete()
	if p.count() > before {
		t.Errorf("a dead process, and its restart, moved %d addresses", p.count()-before)
	}
}

// decided is a Decider that has decided.
type decided struct {
	Decider
	state  State
	status Status
}

func (d decided) State() State   { return d.state }
func (d decided) Status() Status { return d.status }

// TestRunner_ForgetsMoves of addresses that are neither here nor wanted any more, after a while, whoever has them.
func TestRunner_ForgetsMoves(t *testing.T) {
	held, wanted, gone, lately := netip.MustParseAddr("192.0.2.100"), netip.MustParseAddr("192.0.2.101"), netip.MustParseAddr("192.0.2.102"), netip.MustParseAddr("192.0.2.103")
	r := NewRunner(Config{}, decided{state: State{Held: map[netip.Addr]uint64{held: 1}}, status: Status{Wanted: map[netip.Addr]bool{wanted: true}}})
	long := time.Now().Add(-2 * remembered)
	r.moved([]Move{{Address: held, Taken: true, At: long}, {Address: wanted, Why: HandedOver, At: long}, {Address: gone, Why: HandedOver, At: long}, {Address: lately, Why: TakenOver, At: time.Now()}})
	r.describe(klog.Background())
	if got := slices.SortedFunc(maps.Keys(r.Status().Moves), netip.Addr.Compare); !slices.Equal(got, []netip.Addr{held, wanted, lately}) {
		t.Errorf("moves of %v are remembered", got)
	}
}

// TestRunner_NodesThatReachEachOtherByIPv6 are a pool as well.
func TestRunner_NodesThatReachEachOtherByIPv6(t *testing.T) {
	p := newTestPool(t, 3, 2)
	for _, n := range p.nodes {
		p.config.Nodes[n.name] = n.host.V6
	}
	p.startAll()
	n := p.nodes[1]
	p.moved("link cut", n, func() { p.must(p.SetLink(n.host, false)) })
}

func TestRunner_AddressesOfOthersAreLeftAlone(t *testing.T) {
	p := newTestPool(t, 2, 1)
	foreign := p.config.Wanted[0]
	p.must(p.nodes[0].host.TakeAddr(foreign))
	p.config.Wanted = p.config.Wanted[1:]
	p.startAll()
	p.config.Wanted = append(p.config.Wanted, foreign)
	for _, n := range p.nodes { // now it is wanted
		p.must(n.cmd.Process.Kill())
		p.start(n)
	}
	p.complete()
	p.eventually(func() string {
		p.mu.Lock()
		defer p.mu.Unlock()
		if inUse := p.nodes[0].InUse + p.nodes[1].InUse; inUse != 1 {
			return fmt.Sprintf("%d nodes say that the address is in use, want one", inUse)
		}
		return ""
	})
	if held := kernelHolds(t, p.nodes[0].host); len(held.foreign) != 1 || slices.Contains(sorted(held.ours), foreign) {
		t.Errorf("an address of other software: ours %v, foreign %v", held.ours, held.foreign)
	}
	p.must(p.nodes[0].host.DropAddr(foreign))
	p.placed(10*time.Second, p.nodes...)
}

func kernelHolds(t *testing.T, host *lab.Host) (l *links) {
	t.Helper()
	err := host.Do(func() (err error) {
		l, err = kernelAddresses{networks: poolNetworks}.read()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestKernelAddresses_PutReadAndRemove(t *testing.T) {
	l := lab.ForTest(t, lab.Config{IPv6: true})
	host := l.Node()
	addresses := []netip.Addr{netip.MustParseAddr("192.0.2.101"), netip.MustParseAddr("2001:db8:0:2::101")}
	k := kernelAddresses{networks: poolNetworks}
	do := func(f func(ip netip.Addr, index int) error) {
		t.Helper()
		err := host.Do(func() error {
			before, err := k.read()
			if err != nil {
				return err
			}
			for _, ip := range addresses {
				link, found := before.link(ip)
				if !found {
					return fmt.Errorf("no interface for %s", ip)
				}
				if err := f(ip, link.Index); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // to put one again is to renew it
		do(k.put)
		if got := sorted(kernelHolds(t, host).ours); !slices.Equal(got, addresses) {
			t.Errorf("the kernel has %v, want %v", got, addresses)
		}
	}
	answered := answersTo(t, l.Outside(), addresses)
	if !slices.Equal(sorted(answered), addresses) {
		t.Errorf("others are answered for %v, want %v", answered, addresses)
	}
	for range 2 {
		do(k.remove)
		if got := sorted(kernelHolds(t, host).ours); len(got) != 0 {
			t.Errorf("the kernel still has %v", got)
		}
	}
}

// TestRunner_OneAddressThatCannotBeAskedFor does not keep the others on its network from being taken.
func TestRunner_OneAddressThatCannotBeAskedFor(t *testing.T) {
	p := newTestPool(t, 2, 2)
	for _, n := range p.nodes {
		link, _ := kernelHolds(t, n.host).link(n.host.V4)
		p.must(refuseQuestions(t, n.host, link.Name, p.config.Wanted[0]))
		p.start(n)
	}
	p.eventually(func() string {
		held := slices.Concat(p.held(p.nodes[0]), p.held(p.nodes[1]))
		slices.SortFunc(held, netip.Addr.Compare)
		if want := slices.SortedFunc(slices.Values(p.config.Wanted[1:]), netip.Addr.Compare); !slices.Equal(slices.Compact(held), want) {
			return fmt.Sprintf("the nodes have %v, want %v", held, want)
		}
		return ""
	})
}

// refuseQuestions has a host's kernel refuse the frames that ask for an address, as if a queue were full.
func refuseQuestions(t *testing.T, host *lab.Host, device string, ip netip.Addr) error {
	for _, rule := range []string{
		"add table netdev test",
		"add chain netdev test egress { type filter hook egress device " + device + " priority 0; }",
		"add rule netdev test egress ether type arp arp daddr ip " + ip.String() + " drop",
	} {
		if _, err := host.Run(t.Context(), "nft", rule); err != nil {
			return err
		}
	}
	return nil
}

// TestKernelAddresses_ServedWithoutASubnet: DHCP may remove the primary address of an interface for a moment, while another one has a larger
// subnet.
func TestKernelAddresses_ServedWithoutASubnet(t *testing.T) {
	l := lab.ForTest(t, lab.Config{})
	host, ip := l.Node(), netip.MustParseAddr("192.0.2.101")
	link, _ := kernelHolds(t, host).link(ip)
	p := testPool{T: t}
	p.must(host.Do(func() error { return kernelAddresses{}.put(ip, link.Index) }))
	for _, args := range []string{
		"link add other type veth peer name others-peer", "link set other up", "link set others-peer up", "addr add 192.0.0.1/16 dev other",
		"addr del " + host.V4.String() + "/24 dev " + link.Name,
	} {
		_, err := host.Run(t.Context(), "ip", strings.Fields(args)...)
		p.must(err)
	}
	after := kernelHolds(t, host)
	other, found := after.link(ip)
	if !found || other.Name != "other" {
		t.Fatalf("the address would be put on %v, want other", other)
	}
	if !after.serves(ip) {
		t.Error("it is not served on the interface that has lost its subnet")
	}
	if own := after.byOwn([]netip.Addr{ip}); len(own) != 1 || !slices.Contains(own[after.byIndex[link.Index]], ip) {
		t.Errorf("it is asked for on %v", own)
	}
	r := &Runner{displaced: map[netip.Addr]time.Time{}}
	for _, step := range []struct {
		after time.Duration
		want  bool
	}{{0, false}, {displacedFor - time.Second, false}, {displacedFor, true}} {
		later := *after
		later.at = after.at.Add(step.after)
		if got := r.isAstray(&later, ip); got != step.want {
			t.Errorf("after %s it is to be elsewhere: %t", step.after, got)
		}
	}
	r.kernel = kernelAddresses{networks: poolNetworks}
	for since, want := range map[time.Duration]int{0: 0, displacedFor: 1} {
		r.displaced[ip] = time.Now().Add(-since)
		var removed Event
		p.must(host.Do(func() error { removed = r.asItIs(Removed{[]netip.Addr{ip}}); return nil }))
		if got := removed.(Removed).Addresses; len(got) != want {
			t.Errorf("after %s the member is told to release %v", since, got)
		}
	}
	if r.isAstray(&links{at: after.at.Add(time.Hour)}, ip) || len(r.displaced) > 0 {
		t.Errorf("remembered of an address that is gone: %v", r.displaced)
	}
}

// TestKernelAddresses_JoinTheirGroups: an IPv6 address that is put here and at once removed does not leave the multicast group of
// another one, the node's own, with the same last 24 bits. What has not joined is told: the
// kernel joins none on loopback.
func TestKernelAddresses_JoinTheirGroups(t *testing.T) {
	l := lab.ForTest(t, lab.Config{IPv6: true})
	p, own, ip := testPool{T: t}, l.Node().V6, netip.MustParseAddr("2001:db8:0:2::100:2")
	k := kernelAddresses{networks: []netip.Prefix{netip.PrefixFrom(ip, 112).Masked()}}
	p.must(l.Node().Do(func() error {
		before, err := k.read()
		if err != nil {
			return err
		}
		link, _ := before.link(ip)
		for range 200 {
			if err := k.put(ip, link.Index); err != nil {
				return err
			}
			if late, err := k.join([]netip.Addr{ip}); err != nil || len(late) > 0 {
				return fmt.Errorf("the groups of %v are not joined: %w", late, err)
			}
			if err := k.remove(ip, link.Index); err != nil {
				return err
			}
		}
		const loopback = 1
		if err := k.put(ip, loopback); err != nil {
			return err
		}
		if late, err := k.join([]netip.Addr{ip}); err != nil || !slices.Equal(late, []netip.Addr{ip}) {
			t.Errorf("not joined are %v, %v, want %s", late, err, ip)
		}
		return k.remove(ip, loopback)
	}))
	if len(answersTo(t, l.Outside(), []netip.Addr{own})) == 0 {
		t.Errorf("nobody answers for %s any more", own)
	}
}

// TestDefaultGateways_OfAllRoutes: also those by link-local addresses, of which the interface matters, and of several next hops.
func TestDefaultGateways_OfAllRoutes(t *testing.T) {
	l := lab.ForTest(t, lab.Config{IPv6: true})
	host := l.Node()
	link, _ := kernelHolds(t, host).link(host.V4)
	for _, args := range [][]string{
		{"-6", "route", "replace", "default", "metric", "7", "nexthop", "via", "fe80::1", "dev", link.Name, "nexthop", "via", "fe80::2", "dev", link.Name},
		{"route", "add", "default", "via", "192.0.2.77", "dev", link.Name, "metric", "77"},
	} {
		if out, err := host.Run(t.Context(), "ip", args...); err != nil {
			t.Fatalf("ip %v: %v: %s", args, err, out)
		}
	}
	err := host.Do(func() error {
		read, err := kernelAddresses{}.read()
		if err != nil {
			return err
		}
		var all []netip.Addr
		for on, gateways := range read.defaultGateways() {
			if on.Name == link.Name {
				all = append(all, gateways...)
			}
		}
		for _, want := range []string{"fe80::1", "fe80::2", "192.0.2.77"} {
			if !slices.Contains(all, netip.MustParseAddr(want)) {
				t.Errorf("the gateways are %v, want %s among them", all, want)
			}
		}
		return nil
	})
	p := testPool{T: t}
	p.must(err)
}

// answersTo asks for addresses from a host.
func answersTo(t *testing.T, host *lab.Host, addresses []netip.Addr) (answers map[netip.Addr]net.HardwareAddr) {
	t.Helper()
	err := host.Do(func() error {
		l, err := kernelAddresses{}.read()
		if err != nil {
			return err
		}
		for link, group := range l.byLink(addresses) {
			if answers, _, err = neighbor.Ask(t.Context(), link, group, nil, nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return answers
}

// lie has a process with the key at a node's address say a state to all other nodes, as often as it can, for a while.
func (p *testPool) lie(n *testNode, state map[string]any, d time.Duration) {
	p.Helper()
	names := map[netip.Addr]string{}
	for name, at := range p.config.Nodes {
		names[at] = name
	}
	version := 0
	p.must(n.host.Do(func() error {
		g := newGuard(n.host.V4, 7947)
		g.nodeAt = func(at netip.Addr) (string, bool) { name, known := names[at]; return name, known }
		g.addressOf = func(name string) (netip.Addr, bool) { at, known := p.config.Nodes[name]; return at, known }
		say := func() []byte {
			version++
			state["run"], state["version"] = 77, version
			text, _ := json.Marshal(state)
			return text
		}
		listens := func() (*transport, error) {
			return listen(klog.Background(), func() holders.Keys { return holders.Keys{p.config.Key} }, g, transportEvents{
				state: say, heard: func(netip.Addr, []byte) {}, stranger: func(netip.Addr) {},
			})
		}
		l, err := listens()
		for deadline := time.Now().Add(5 * time.Second); errors.Is(err, unix.EADDRINUSE) && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			l, err = listens() // the node's own process has been killed
		}
		if err != nil {
			return err
		}
		defer func() { _ = l.Shutdown() }()
		for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			for _, other := range p.others(n) {
				if err := l.sendState(other.host.V4); err != nil {
					return err
				}
				if err := l.send(other.host.V4, stateText, say()); err != nil {
					return err
				}
			}
		}
		return nil
	}))
}

// TestAttack_RunnersWithTheKeyOfANode: what a node that has the key says in another one's name moves nothing of that one. What it says in
// its own, with the highest epochs, is over as soon as it tells the truth.
func TestAttack_RunnersWithTheKeyOfANode(t *testing.T) {
	p := newTestPool(t, 3, 6)
	p.startAll()
	victim, traitor := p.nodes[1], p.nodes[2]
	p.must(traitor.cmd.Process.Kill())
	before, its := p.count(), p.held(victim)
	networks := []Network{{netip.MustParsePrefix("192.0.2.0/24"), true}, {netip.MustParsePrefix("2001:db8:0:2::/64"), true}}
	held := map[netip.Addr]uint64{}
	for _, ip := range its {
		held[ip] = 1
	}
	p.lie(traitor, map[string]any{"name": victim.name, "Name": victim.name, "draining": true, "networks": networks, "held": held}, 2*time.Second)
	if now := p.held(victim); p.count() != before || !slices.Equal(now, its) {
		t.Errorf("%d addresses have moved, and %s has %v, want %v", p.count()-before, victim.name, now, its)
	}
	for _, epoch := range []uint64{holders.MaxEpoch, 1<<62 - 1, 1 << 62} {
		for _, ip := range p.config.Wanted {
			held[ip] = epoch
		}
		p.lie(traitor, map[string]any{"networks": networks, "held": held}, time.Second)
	}
	p.start(traitor)
	p.complete()
	for _, n := range []*testNode{p.nodes[0], victim} {
		p.onOne()
		p.must(n.cmd.Process.Signal(unix.SIGUSR1))
		p.gone(n) // its drain ends
	}
	p.onOne()
}

// onOne waits until each address is on exactly one node.
func (p *testPool) onOne() {
	p.Helper()
	p.eventually(func() string {
		on := map[netip.Addr]int{}
		for _, n := range p.nodes {
			for _, ip := range p.held(n) {
				on[ip]++
			}
		}
		for _, ip := range p.config.Wanted {
			if on[ip] != 1 {
				return fmt.Sprintf("%s is on %d nodes, want one", ip, on[ip])
			}
		}
		return ""
	})
}
