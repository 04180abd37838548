package reconcile

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// foreignRule takes bits of the mark by which packets are steered.
var foreignRule = []string{"pref", "100", "fwmark", "0x40/0x40", "lookup", "5"}

func (n *tableNode) ipRule(verb string) {
	n.Helper()
	version := map[kernel.Family]string{kernel.IPv4: "-4", kernel.IPv6: "-6"}[n.family]
	if _, err := n.lab.Node().Run(n.Context(), "ip", append([]string{version, "rule", verb}, foreignRule...)...); err != nil {
		n.Fatal(err)
	}
}

// breakWays keeps packets from being carried to other nodes, and mendWays ends that.
func (n *tableNode) breakWays() { n.Helper(); n.ipRule("add") }
func (n *tableNode) mendWays()  { n.Helper(); n.ipRule("del") }

// TestSteered_TableGoneDuringAFault: a retry of the ways does not look at the table, so a look has to see that it has gone.
func TestSteered_TableGoneDuringAFault(t *testing.T) {
	onTableNodes(t, func(n *tableNode) {
		n.breakWays()
		config := n.config()
		config.Backend = IPTables
		made, _ := newDriver(config)
		driver := made.(*steeredDriver)
		driver.driver = &memory{untampered: true}
		n.inside(func() error {
			_, _, err := driver.write(t.Context(), n.desired(n.self, n.binding(0)), nil)
			return err
		})
		untouched := func(want bool) {
			n.Helper()
			n.inside(func() error {
				same, err := driver.untouched(t.Context())
				if same != want {
					n.Errorf("untouched: %v, want %v", same, want)
				}
				return err
			})
		}
		if driver.fault() == nil {
			n.Error("somebody else's rule has bits of the mark, and that is no fault")
		}
		untouched(true)
		n.nft("delete table %s %s", n.head, steering.Table)
		untouched(false)
	})
}

// TestSteered_RulesUnread: if the rules cannot be read, packets go to the nodes that hold their egress IPs all the same, also after a restart.
// What is removed stays on record until the flows can be judged, also if it came meanwhile.
func TestSteered_RulesUnread(t *testing.T) {
	onTableNodes(t, func(n *tableNode) {
		stays, goes, passes := n.binding(0), n.binding(1), n.binding(1)
		passes.Protocol = kernel.TCP
		other := n.lab.Outside().V4
		if n.family == kernel.IPv6 {
			other = n.lab.Outside().V6
		}
		sent := func(bindings ...kernel.Binding) kernel.Desired {
			d := n.desired(n.self, bindings...)
			d.Steering.Nodes = []netip.Addr{other}
			d.Steering.Ways = map[netip.Addr]kernel.Way{stays.EgressIP: {Kind: kernel.ToNode, Node: other}}
			return d
		}
		rules := &memory{}
		process := func() *process {
			p := n.processWith(IPTables)
			p.driver.(*steeredDriver).driver = rules
			return p
		}
		p := process()
		p.want(n.desired(n.self, stays, goes))
		rules.unseen = errors.New("the table is incompatible")
		for _, step := range []struct {
			what    string
			restart bool
			want    kernel.Desired
			removed []kernel.Binding
		}{
			{"one goes to another node, and one is gone", false, sent(stays), []kernel.Binding{goes}},
			{"one comes", false, sent(stays, passes), []kernel.Binding{goes}},
			{"and is gone", false, sent(stays), kernel.Sorted([]kernel.Binding{goes, passes})},
			{"another process", true, sent(stays), kernel.Sorted([]kernel.Binding{goes, passes})},
			{"the egress IP comes back", false, n.desired(n.self, stays), kernel.Sorted([]kernel.Binding{goes, passes})},
		} {
			if step.restart {
				p = process()
			}
			p.ProxierSynced() // ends the wait for the next try
			if result := p.sync(step.want); !errors.Is(result.Err, rules.unseen) || result.Wake.IsZero() || p.Status().SteeringFault != nil {
				n.Errorf("%s: %+v, fault %v; want the failure of the rules alone, and another try", step.what, result, p.Status().SteeringFault)
			}
			if result := p.sync(step.want); !result.Waiting {
				n.Errorf("%s: %+v in the backoff", step.what, result)
			}
			s := n.standing()
			if diff := cmp.Diff(step.want.Bindings, s.Given, compareNetip); diff != "" {
				n.Errorf("%s: what gives egress IPs (-want +got):\n%s", step.what, diff)
			}
			if diff := cmp.Diff(step.removed, s.Removed, compareNetip); diff != "" {
				n.Errorf("%s: what is on record (-want +got):\n%s", step.what, diff)
			}
			if got, want := s.Ways[stays], step.want.Steering.Ways[stays.EgressIP].Node; got != want {
				n.Errorf("%s: packets go to %s, want %s", step.what, got, want)
			}
		}
		rules.unseen = nil
		p.ProxierSynced()
		p.want(n.desired(n.self, stays))
		if s := n.standing(); len(s.Removed) > 0 || !slices.Equal(rules.bindings, []kernel.Binding{stays}) {
			n.Errorf("the rules can be read again: %v are on record, the rules have %v", s.Removed, rules.bindings)
		}
	})
}

// TestSteered_LeavesDuringAFault: what is removed is to leave the table, and has left it when it is judged, although there are more holders than
// a node can send to. It does not matter whether it is removed by a change alone or by writing everything.
func TestSteered_LeavesDuringAFault(t *testing.T) {
	onTableNodes(t, func(n *tableNode) {
		at := func(ip netip.Addr, i int) netip.Addr {
			bytes := ip.AsSlice()
			bytes[len(bytes)-1] = byte(100 + i)
			sibling, _ := netip.AddrFromSlice(bytes)
			return sibling
		}
		desired := n.desired(n.self)
		desired.Steering.Ways = map[netip.Addr]kernel.Way{}
		for i := range 65 {
			b := n.binding(0)
			b.Pod, b.EgressIP = at(b.Pod, i), at(b.EgressIP, i)
			desired.Bindings = append(desired.Bindings, b)
			desired.Steering.Ways[b.EgressIP] = kernel.Way{Kind: kernel.ToNode, Node: at(n.self, i)}
		}
		desired.Bindings = kernel.Sorted(desired.Bindings)
		config := n.config()
		config.Backend = IPTables
		made, _ := newDriver(config)
		d := made.(*steeredDriver)
		leaves := func(how string, want []kernel.Binding) error {
			n.Helper()
			if diff := cmp.Diff(want, d.leaving, compareNetip); diff != "" {
				n.Errorf("%s: what is to leave (-want +got):\n%s", how, diff)
			}
			if err := d.judged(t.Context()); err != nil {
				return err
			}
			if len(d.leaving) > 0 {
				n.Errorf("%s: %v is still to leave", how, d.leaving)
			}
			return nil
		}
		n.inside(func() error {
			if _, _, err := d.write(t.Context(), desired, nil); err != nil {
				return err
			}
			if d.fault() == nil {
				n.Error("65 holders are no fault")
			}
			gone := desired.Bindings[:1]
			desired.Bindings = desired.Bindings[1:]
			if _, _, err := d.update(t.Context(), kernel.Change{Removed: gone, Networks: desired.Networks, Steering: desired.Steering}, gone); err != nil {
				return err
			}
			if err := leaves("a change alone", gone); err != nil {
				return err
			}
			gone, desired.Bindings = desired.Bindings[:1], desired.Bindings[1:]
			if _, _, err := d.write(t.Context(), desired, gone); err != nil {
				return err
			}
			return leaves("everything is written", gone)
		})
	})
}

// TestSteered_CIDRsComeLater: cluster CIDRs that come after the first write have everything written at once, with the settings of
// interfaces that they ask for. That is neither a failure nor a fault.
func TestSteered_CIDRsComeLater(t *testing.T) {
	onTableNodes(t, func(n *tableNode) {
		for _, command := range []string{"sysctl -q -w net.ipv4.conf.eth0.rp_filter=1", "ip route add 10.128.64.0/18 dev eth0 via " + n.lab.Outside().V4.String()} {
			words := strings.Fields(command)
			if _, err := n.lab.Node().Run(t.Context(), words[0], words[1:]...); err != nil {
				t.Fatal(err)
			}
		}
		p, d := n.process(), n.desired(n.self, n.binding(0))
		without := d
		without.ClusterCIDRs = nil
		p.want(without)
		p.want(d)
		var differences []string
		n.inside(func() (err error) {
			differences, err = p.CompareSteering(t.Context(), d)
			return err
		})
		if status := p.Status(); len(differences) > 0 || status.Failure != nil || status.SteeringFault != nil {
			n.Errorf("the differences are %q; failure %v, fault %v", differences, status.Failure, status.SteeringFault)
		}
		if result := p.want(d); !result.Idle {
			n.Errorf("without a change: %+v", result)
		}
	})
}
