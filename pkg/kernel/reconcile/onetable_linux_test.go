package reconcile

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// tableNode is a node with two pods, whose rules are in nftables tables.
type tableNode struct {
	*testing.T
	lab       *lab.Lab
	family    kernel.Family
	udp, head string
	self      netip.Addr
	outside   netip.AddrPort
	// egressIPs are those of the first pod and of the second.
	egressIPs [2]netip.Addr
	networks  kernel.Networks
}

func onTableNodes(t *testing.T, test func(n *tableNode)) {
	for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
		t.Run(string(family), func(t *testing.T) {
			l := lab.ForTest(t, lab.Config{Pods: 2, IPv6: true, Masquerade: true})
			t.Setenv("PATH", l.Path())
			n := &tableNode{
				T: t, lab: l, family: family, udp: "udp4", head: "ip", self: l.Node().V4, outside: netip.AddrPortFrom(l.Outside().V4, 8080),
				egressIPs: [2]netip.Addr{first.EgressIP, second.EgressIP}, networks: kernel.Networks{ClusterCIDRs: []netip.Prefix{lab.ClusterV4}},
			}
			if family == kernel.IPv6 {
				n.udp, n.head, n.self, n.outside = "udp6", "ip6", l.Node().V6, netip.AddrPortFrom(l.Outside().V6, 8080)
				n.egressIPs = [2]netip.Addr{netip.MustParseAddr("2001:db8:113::1"), netip.MustParseAddr("2001:db8:113::2")}
				n.networks.ClusterCIDRs = []netip.Prefix{lab.ClusterV6}
			}
			for _, ip := range n.egressIPs {
				if err := l.AddAddr(l.Node(), ip); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := l.Outside().ServeWhoami(n.udp, 8080); err != nil {
				t.Fatal(err)
			}
			test(n)
		})
	}
}

// binding is that of the pod with this index.
func (n *tableNode) binding(pod int) kernel.Binding {
	b := kernel.Binding{Pod: n.lab.Pod(pod + 1).V4, Protocol: kernel.UDP, EgressIP: n.egressIPs[pod]}
	if n.family == kernel.IPv6 {
		b.Pod = n.lab.Pod(pod + 1).V6
	}
	return b
}

func (n *tableNode) desired(self netip.Addr, bindings ...kernel.Binding) kernel.Desired {
	return kernel.Desired{Networks: n.networks, Bindings: kernel.Sorted(bindings), Steering: kernel.Steering{Self: self}}
}

func (n *tableNode) inside(f func() error) {
	n.Helper()
	if err := n.lab.Node().Do(f); err != nil {
		n.Fatal(err)
	}
}

func (n *tableNode) nft(command string, args ...any) string {
	n.Helper()
	out, err := n.lab.Node().Run(n.Context(), "nft", strings.Fields(fmt.Sprintf(command, args...))...)
	if err != nil {
		n.Fatal(err)
	}
	return out
}

// tables are those that give flows their egress IPs.
func (n *tableNode) tables() (names []string) {
	n.Helper()
	for _, found := range regexp.MustCompile(`table (\w+) (openshift-egress(?:-steering)?)\n`).FindAllStringSubmatch(n.nft("list tables"), -1) {
		if found[1] == n.head {
			names = append(names, found[2])
		}
	}
	slices.Sort(names)
	return names
}

func (n *tableNode) config() Config {
	return Config{
		Family: n.family, Backend: NFTables, Proxier: NFTables, SyncPeriod: time.Hour, RepairProxier: func() {},
		Steering: &steering.Config{Transport: steering.VXLAN, Port: lab.TunnelPort, MarkMask: 0x7e},
	}
}

// flow begins one of the pod with this index, which is seen as an address.
func (n *tableNode) flow(pod int, want netip.Addr) *lab.Flow {
	n.Helper()
	flow, err := n.lab.Pod(pod+1).Dial(n.Context(), n.udp, n.outside, 0)
	if err != nil {
		n.Fatal(err)
	}
	n.seen(flow, want)
	return flow
}

func (n *tableNode) seen(flow *lab.Flow, want netip.Addr) {
	n.Helper()
	if got, err := flow.Ask(n.Context()); err != nil || got != want {
		n.Errorf("a flow is seen as %s, %v; want %s", got, err, want)
	}
}

// allWanted is what a Reconciler is to write.
type allWanted struct{ desired kernel.Desired }

func (w allWanted) Desired(map[netip.Addr]bool) kernel.Desired { return w.desired }

// process is a process that has begun to write.
type process struct {
	n *tableNode
	*Reconciler
	last kernel.Desired
}

func (n *tableNode) process() *process { return n.processWith(NFTables) }

func (n *tableNode) processWith(backend Backend) *process {
	config := n.config()
	config.Backend, config.Proxier = backend, backend
	r := New(klog.Background(), config)
	r.ProxierSynced()
	return &process{n: n, Reconciler: r}
}

func (p *process) want(d kernel.Desired) Result {
	p.n.Helper()
	result := p.sync(d)
	if result.Err != nil {
		p.n.Fatal(result.Err)
	}
	return result
}

// sync is want of what may fail.
func (p *process) sync(d kernel.Desired) (result Result) {
	p.n.Helper()
	change := kernel.Change{
		Networks: d.Networks, NetworksChanged: !d.Networks.Equal(p.last.Networks), Steering: d.Steering, SteeringChanged: !d.Steering.Equal(p.last.Steering),
	}
	change.Added, change.Removed = kernel.Diff(p.last.Bindings, d.Bindings)
	p.last = d
	p.n.inside(func() error {
		result = p.Sync(p.n.Context(), allWanted{d}, change, p.n.self)
		return nil
	})
	return result
}

// standing is what the table of the steering has.
func (n *tableNode) standing() (s steering.Standing) {
	n.Helper()
	n.inside(func() (err error) {
		s, err = steering.Stands(n.Context(), n.family)
		return err
	})
	return s
}

func (n *tableNode) hasTables(when string, want ...string) {
	n.Helper()
	if got := n.tables(); !slices.Equal(got, want) {
		n.Errorf("%s: the tables are %v, want %v", when, got, want)
	}
}

// TestOneTable_AfterAnEarlierVersion: where a version before has written two tables, and died before it judged the flows of a binding
// that it removed, the flows of the other one go on, those are ended, and one table is left, which has nobody's address in vain.
func TestOneTable_AfterAnEarlierVersion(t *testing.T) {
	onTableNodes(t, func(n *tableNode) {
		stays, goes := n.binding(0), n.binding(1)
		former := steering.NewLocalWriter(n.family)
		t.Cleanup(former.Close)
		n.inside(func() error {
			_, err := former.Write(t.Context(), n.desired(n.self, stays, goes), nil)
			return err
		})
		lives, ends := n.flow(0, stays.EgressIP), n.flow(1, goes.EgressIP)
		n.inside(func() error {
			config := *n.config().Steering
			config.Family, config.NodeIP = n.family, n.self
			earlier := steering.NewWriter(config)
			defer earlier.Close()
			_, err := earlier.Write(t.Context(), n.desired(n.self, stays), []kernel.Binding{goes})
			_, formerErr := former.Write(t.Context(), n.desired(n.self, stays), []kernel.Binding{goes})
			return errors.Join(err, formerErr)
		})
		// What that version did not have, and what it had besides.
		n.nft("delete set %s %s removed", n.head, steering.Table)
		n.nft("add map %s %s bindings { type %s . inet_proto : %[3]s; }", n.head, steering.LocalTable, map[kernel.Family]string{kernel.IPv4: "ipv4_addr", kernel.IPv6: "ipv6_addr"}[n.family])
		n.hasTables("before", steering.LocalTable, steering.Table)

		p := n.process()
		result := p.want(n.desired(n.self, stays))
		n.hasTables("afterwards", steering.Table)
		if result.FlowsDeleted == 0 || p.Status().SteeringFault != nil {
			n.Errorf("%d flows were ended, fault %v", result.FlowsDeleted, p.Status().SteeringFault)
		}
		n.seen(lives, stays.EgressIP)
		n.seen(ends, n.self)
		if s := n.standing(); !slices.Equal(s.Given, []kernel.Binding{stays}) || len(s.Removed) > 0 {
			n.Errorf("%v give egress IPs, and %v are on record", s.Given, s.Removed)
		}
		if result := p.want(n.desired(n.self, stays)); !result.Idle {
			n.Errorf("without a change: %+v", result)
		}
	})
}

// TestOneTable_RecordsWhatItRemoves: the write that removes a binding records it, in one transaction; a process that dies then leaves the
// next one to know of it.
func TestOneTable_RecordsWhatItRemoves(t *testing.T) {
	onTableNodes(t, func(n *tableNode) {
		stays, goes := n.binding(0), n.binding(1)
		driver, _ := newDriver(n.config())
		both, one := n.desired(n.self, stays, goes), n.desired(n.self, stays)
		n.inside(func() error {
			_, _, err := driver.write(t.Context(), both, nil)
			return err
		})
		lives, ends := n.flow(0, stays.EgressIP), n.flow(1, goes.EgressIP)
		generation := func() (text string) {
			n.inside(func() (err error) {
				text, err = driver.fingerprint(t.Context())
				return err
			})
			text, _, _ = strings.Cut(text, "\n")
			return text
		}
		var before, after uint32
		if _, err := fmt.Sscanf(generation(), "nftables generation %d", &before); err != nil {
			t.Fatal(err)
		}
		n.inside(func() error {
			change := kernel.Change{Removed: []kernel.Binding{goes}, Networks: one.Networks, Steering: one.Steering}
			_, _, err := driver.update(t.Context(), change, []kernel.Binding{goes})
			return err
		})
		if _, err := fmt.Sscanf(generation(), "nftables generation %d", &after); err != nil || after != before+1 {
			n.Errorf("%d transactions, %v; want one", after-before, err)
		}
		if s := n.standing(); !slices.Equal(s.Removed, []kernel.Binding{goes}) || !slices.Equal(s.Given, []kernel.Binding{stays}) {
			n.Errorf("%v give egress IPs, and %v are on record", s.Given, s.Removed)
		}
		if result := n.process().want(one); result.FlowsDeleted == 0 {
			n.Error("the next process has ended no flow")
		}
		if s := n.standing(); len(s.Removed) > 0 {
			n.Errorf("%v are on record, whose flows have been judged", s.Removed)
		}
		n.seen(lives, stays.EgressIP)
		n.seen(ends, n.self)
	})
}

// TestOneTable_WhileTheAddressIsUnknown: bindings are in a table without steering until the node's address is known, and in that of the
// steering from then on. Flows go on, and new ones leave from the egress IP throughout.
func TestOneTable_WhileTheAddressIsUnknown(t *testing.T) {
	onTableNodes(t, func(n *tableNode) {
		b := n.binding(0)
		p := n.process()
		p.want(n.desired(netip.Addr{}, b))
		n.hasTables("unknown", steering.LocalTable)
		if p.Status().SteeringFault == nil {
			n.Error("it is no fault that the address is not known")
		}
		agrees := func(when string, d kernel.Desired) {
			n.Helper()
			n.inside(func() error {
				rules, err := p.Compare(t.Context(), d)
				path, pathErr := p.CompareSteering(t.Context(), d)
				if len(rules)+len(path) > 0 {
					n.Errorf("%s: it differs: %v %v", when, rules, path)
				}
				return errors.Join(err, pathErr)
			})
		}
		agrees("unknown", p.last)
		flow := n.flow(0, b.EgressIP)
		traffic := lab.StartTraffic(lab.TrafficConfig{To: []netip.AddrPort{n.outside}, Protocols: []string{"udp"}, Check: func(q lab.Question) error {
			if q.Err == nil && q.Seen != b.EgressIP {
				return fmt.Errorf("want %s", b.EgressIP)
			}
			return nil
		}}, n.lab.Pod(1))
		p.want(n.desired(n.self, b))
		n.hasTables("known", steering.Table)
		agrees("known", p.last)
		n.seen(flow, b.EgressIP)
		p = n.process()
		p.want(n.desired(netip.Addr{}, b))
		n.hasTables("another process, which does not know it", steering.LocalTable, steering.Table)
		n.inside(func() error {
			differences, err := p.Compare(t.Context(), p.last)
			if want := "the table openshift-egress-steering of an earlier run gives flows"; len(differences) != 1 || !strings.Contains(differences[0], want) {
				n.Errorf("the differences are %v, want one: %s …", differences, want)
			}
			return err
		})
		n.seen(flow, b.EgressIP)
		n.process().want(n.desired(n.self, b))
		n.hasTables("yet another, which does", steering.Table)
		n.seen(flow, b.EgressIP)
		ctx, cancel := context.WithTimeout(t.Context(), lab.Stretch(time.Minute))
		defer cancel()
		if err := traffic.Round(ctx); err != nil {
			t.Fatal(err)
		}
		if sum := traffic.Stop(); sum.Wrong+sum.Unanswered > 0 {
			t.Error(sum)
		}
	})
}

// TestOneTable_ChangesOfOthers are found, those of the table as changes of the rules, those of what carries packets as of the steering.
func TestOneTable_ChangesOfOthers(t *testing.T) {
	onTableNodes(t, func(n *tableNode) {
		d := n.desired(n.self, n.binding(0))
		driver, _ := newDriver(n.config())
		write := func() {
			n.inside(func() error {
				_, _, err := driver.write(t.Context(), d, nil)
				return err
			})
		}
		look := func() (o observation) {
			n.inside(func() (err error) {
				o, err = driver.observe(t.Context())
				return err
			})
			return o
		}
		write()
		if o := look(); o.altered || len(o.differences)+len(o.steering) > 0 {
			n.Fatalf("without a change: %v %v", o.differences, o.steering)
		}
		element := fmt.Sprintf("%s %s sources { %s . udp }", n.head, steering.Table, n.binding(0).Pod)
		for _, damage := range []string{
			"flush ruleset", "delete element " + element, "flush chain " + n.head + " " + steering.Table + " postrouting",
			"insert rule " + n.head + " " + steering.Table + " postrouting accept",
			"add table " + n.head + " " + steering.LocalTable,
		} {
			n.nft("%s", damage)
			if o := look(); !o.altered || len(o.differences) == 0 {
				n.Errorf("%s: altered %v, %v", damage, o.altered, o.differences)
			}
			write()
			n.hasTables(damage, steering.Table)
			if o := look(); o.altered || len(o.differences) > 0 {
				n.Errorf("%s, after a write: %v", damage, o.differences)
			}
		}
		if _, err := n.lab.Node().Run(t.Context(), "ip", "link", "set", steering.Device, "down"); err != nil {
			t.Fatal(err)
		}
		if o := look(); o.altered || len(o.differences) > 0 || len(o.steering) == 0 {
			n.Errorf("the device is down: altered %v, %v, %v", o.altered, o.differences, o.steering)
		}
	})
}

// TestOneTable_KernelRefuses: that the only table cannot be written is a failure, and not a fault of the steering alone.
func TestOneTable_KernelRefuses(t *testing.T) {
	onTableNodes(t, func(n *tableNode) {
		if _, err := n.lab.Node().Run(t.Context(), "nft", "add table ip probe { flags owner ; }"); err != nil { // it goes with this nft
			n.Skip("tables with an owner need Linux 5.12 and nft 0.9.9")
		}
		p, d := n.process(), n.desired(n.self, n.binding(0))
		n.breakWays()
		p.want(d)
		fault := p.Status().SteeringFault
		owner := n.lab.Node().Command(t.Context(), "nft", "-i")
		commands, err := owner.StdinPipe()
		if err != nil {
			n.Fatal(err)
		}
		ended, err := lab.Start(owner)
		if err != nil {
			n.Fatal(err)
		}
		if _, err := fmt.Fprintf(commands, "flush ruleset\nadd table %s %s { flags owner; }\n", n.head, steering.Table); err != nil {
			n.Fatal(err)
		}
		for deadline := time.Now().Add(20 * time.Second); !strings.Contains(n.nft("list ruleset"), "flags owner"); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				n.Fatal(n.nft("list ruleset"))
			}
		}
		p.RequestFullLook()
		var again time.Time
		n.inside(func() error {
			result := p.Sync(t.Context(), allWanted{d}, kernel.Change{Networks: d.Networks, Steering: d.Steering}, n.self)
			if status := p.Status(); result.Err == nil || status.Failure == nil || fault == nil || !errors.Is(status.SteeringFault, fault) {
				n.Errorf("%v; failure %v, fault %v; want a failure, and the fault that was there before, %v", result.Err, status.Failure, status.SteeringFault, fault)
			}
			again = result.Wake
			return nil
		})
		_ = commands.Close() // nft ends then, and its table with it
		<-ended
		n.mendWays()
		time.Sleep(time.Until(again))
		p.want(d)
		n.hasTables("afterwards", steering.Table)
		if status := p.Status(); status.Failure != nil || status.SteeringFault != nil {
			n.Errorf("failure %v, fault %v", status.Failure, status.SteeringFault)
		}
		n.flow(0, n.binding(0).EgressIP)
	})
}

// TestOneTable_AnotherBackEnd: flows go on from one back end to the other and back, and a process that begins with either ends those of a
// binding that was there before it.
func TestOneTable_AnotherBackEnd(t *testing.T) {
	onTableNodes(t, func(n *tableNode) {
		t.Setenv("XTABLES_LOCKFILE", filepath.Join(t.TempDir(), "lock"))
		stays, goes := n.binding(0), n.binding(1)
		n.process().want(n.desired(n.self, stays, goes))
		lives := n.flow(0, stays.EgressIP)
		for _, backend := range []Backend{IPTables, NFTables} {
			ends := n.flow(1, goes.EgressIP)
			p := n.processWith(backend)
			if result := p.want(n.desired(n.self, stays)); result.FlowsDeleted == 0 {
				n.Errorf("%s: no flow was ended", backend)
			}
			n.seen(lives, stays.EgressIP)
			n.seen(ends, n.self)
			n.hasTables(string(backend), steering.Table)
			p.want(n.desired(n.self, stays, goes))
		}
	})
}
