package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/origin-node/hack/lab"
	process "github.com/openshift/origin-node/hack/node"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
)

// TestSteering_PodsLeaveFromTheHolder: pods on all nodes leave from the node that has their egress IP, also while it moves;
// what comes in is answered as ever.
func TestSteering_PodsLeaveFromTheHolder(t *testing.T) {
	for name, way := range map[string]struct {
		settings
		share share
	}{
		"iptables":        {settings{arguments: "egress-snat-protocols: [all]"}, inCI},
		"iptables-legacy": {settings{backend: lab.Legacy}, long},
		"nftables":        {settings{nftables: true, arguments: slowPath}, usual},
		"beside iptables": {settings{beside: true}, long},
		"IPv6 only":       {settings{families: families[1:]}, usual},
		"direct":          {settings{arguments: direct + "\negress-snat-fast-path: [all]"}, inCI},
		"direct beside":   {settings{arguments: direct, beside: true}, long},
	} {
		t.Run(name, func(t *testing.T) {
			belongsTo(t, way.share)
			podsLeaveFromTheHolder(newSteeredWorld(t, way.settings, nil))
		})
	}
}

func podsLeaveFromTheHolder(w *steeredWorld) {
	for _, host := range []*lab.Host{w.Outside(), w.Far()} {
		for _, to := range at(host, port) {
			_, err := host.ServeWhoami(network("sctp", to), port)
			w.must(err)
		}
	}
	w.scenario("packets of all pods leave by the holder, to hosts on its network and behind a router", w.leaveByTheHolder)
	w.scenario("metrics tell the steered flows on both sides", w.countsSteeredFlows)
	w.scenario("clients outside reach the pods, and are seen as ever", w.inbound)
	w.scenario("nft lists the tables, and can load what it lists", w.reloadable)
	w.scenario("the egress IP moves from node to node under load", func() { w.movesUnderLoad(by(w.T, 6, 12, 12)) })
	w.scenario("after all moves packets leave by the last holder", w.leaveByTheHolder)
	w.clean(500)
}

func (w *steeredWorld) leaveByTheHolder() {
	protocols := []string{"tcp", "udp"}
	if w.members[0].RuleArguments().AllProtocols {
		protocols = append(protocols, "icmp", "sctp")
	}
	w.only(w.holder.Host, w.sends(func() {
		for _, pod := range w.pods {
			for _, to := range w.everywhere() {
				for _, protocol := range protocols {
					w.seen(protocol, pod, to, identity(pod, to, w.egressIPs))
				}
			}
		}
	}))
}

// countsSteeredFlows: the holder counts what it receives, and each other node what its pod sends.
func (w *steeredWorld) countsSteeredFlows() {
	for _, m := range w.members {
		metrics := w.metrics(m)
		for _, ip := range w.egressIPs {
			for direction, some := range map[string]bool{"sent": m != w.holder, "received": m == w.holder} {
				name := fmt.Sprintf("egress_snat_steered_flows{direction=%q,egress_ip=%q}", direction, ip)
				if flows := metric(w.T, metrics, name); flows > 0 != some {
					w.Errorf("%s has %s %g, want some: %v", m.Name, name, flows, some)
				}
			}
		}
		w.countsFastPackets(m, metrics)
	}
}

// slowPath switches the fast path off.
const slowPath = "egress-snat-fast-path: [off]"

// countsFastPackets: unless it is off, what goes on after a flow's first packets takes the fast path, and so do the answers.
func (w *steeredWorld) countsFastPackets(m *member, metrics string) {
	if !w.hasFastPath {
		return
	}
	for _, family := range w.families {
		for direction, some := range map[string]bool{"sent": m != w.holder, "left": m == w.holder, "answers": true} {
			name := fmt.Sprintf("egress_snat_fast_path_packets_total{direction=%q,ip_family=%q}", direction, family)
			if packets := metric(w.T, metrics, name); packets > 0 != some {
				w.Errorf("%s has %s %g, want some: %v", m.Name, name, packets, some)
			}
		}
	}
}

// inbound asks the pods, from both hosts outside, through the Service's external IPs, a node port of each node, and
// directly.
func (w *steeredWorld) inbound() {
	w.editService("shop", "web", func(svc *v1.Service) { svc.Spec.Type = v1.ServiceTypeNodePort })
	ports := w.getService("shop", "web").Spec.Ports
	for _, client := range []*lab.Host{w.Outside(), w.Far()} {
		for i, protocol := range []string{"tcp", "udp"} {
			for _, to := range addrPorts(w.egressIPs, 80) {
				w.asks(protocol, client, to)
			}
			for _, m := range w.members {
				for _, to := range at(m.Host, uint16(ports[i].NodePort)) {
					w.asks(protocol, client, to)
					w.answersAll(protocol, client, to)
				}
			}
			for _, pod := range w.pods {
				for _, to := range at(pod, port) {
					w.seen(protocol, client, to, like(to.Addr(), client))
				}
			}
		}
	}
}

// answersAll asks often enough for a pod of another node to be chosen, and wants an answer each time.
func (w *steeredWorld) answersAll(protocol string, from *lab.Host, to netip.AddrPort) {
	w.Helper()
	for range 8 {
		if _, err := w.askWithin(2*time.Second, protocol, from, to); err != nil {
			w.Errorf("%s to %s (%s): %v", from.Name, to, protocol, err)
			return
		}
	}
}

// reloadable loads what nft lists of a node's tables in an empty namespace, and lists it there.
func (w *steeredWorld) reloadable() {
	for _, m := range w.members {
		if _, err := m.Host.Run(w.Context(), "nft", "list", "ruleset"); err != nil {
			w.Error(err)
		}
		empty, err := w.AddPodOn(m.Host)
		w.must(err)
		for _, family := range w.families {
			list := []string{"list", "table", map[v1.IPFamily]string{v1.IPv4Protocol: "ip", v1.IPv6Protocol: "ip6"}[family], steeringTable}
			listed, err := m.Host.Run(w.Context(), "nft", list...)
			w.must(err)
			if err := empty.Feed(w.Context(), listed, "nft", "-f", "-"); err != nil {
				w.Fatalf("%s: nft does not load what it lists: %v\n%s", m.Name, err, listed)
			}
			again, err := empty.Run(w.Context(), "nft", list...)
			w.must(err)
			if diff := cmp.Diff(passing.ReplaceAllString(listed, ""), passing.ReplaceAllString(again, "")); diff != "" {
				w.Errorf("%s: the table is another one when loaded (-want +got):\n%s", m.Name, diff)
			}
		}
		w.must(w.RemovePod(empty))
	}
}

// movesUnderLoad moves the egress IPs so often, each time when pods have been answered at the last place.
func (w *steeredWorld) movesUnderLoad(times int) {
	traffic := w.crowd(by(w.T, 100, 200, 400))
	began := time.Now()
	for i := range times {
		w.move(w.members[(slices.Index(w.members, w.holder)+1+i/3%2)%len(w.members)])
		w.answered()
	}
	took := time.Since(began)
	w.steered()
	ctx, cancel := context.WithTimeout(w.Context(), soon)
	defer cancel()
	w.must(traffic.Round(ctx))
	w.Logf("%d moves, each with a round of answers, in %s; %s; dropped: %s", times, took.Round(time.Millisecond), w.noneWrong(traffic), dropsTold(w.allDrops()))
}

// TestSteering_TwoHundredMoves: under load, and of at least 100,000 packets none has another source than the egress IP.
func TestSteering_TwoHundredMoves(t *testing.T) {
	belongsTo(t, long)
	w := newSteeredWorld(t, settings{}, nil)
	w.movesUnderLoad(200)
	traffic := w.crowd(1000) // until there were enough
	w.eventually(func() error {
		right, _ := w.sources()
		total := 0
		for _, packets := range right {
			total += packets
		}
		if total < 100_000 {
			return fmt.Errorf("%d packets", total)
		}
		return nil
	})
	traffic.Stop()
	w.clean(100_000)
}

// record matches the set of removed bindings in a listing of nft, which no rule looks at.
var record = regexp.MustCompile(`(?s)\tset removed \{.*?\n\t\}\n`)

// TestSteering_AnotherTransport: nodes that are given another transport, one after the other, send no packet from another
// address meanwhile, and nothing of the first one is left.
func TestSteering_AnotherTransport(t *testing.T) {
	belongsTo(t, usual)
	w := newSteeredWorld(t, settings{}, nil)
	traffic := w.crowd(100)
	before := w.members[1].steering(w.world)
	for _, step := range []struct{ arguments, route, none string }{
		{direct, "default via 192.0.2.2 dev eth0", "steer0"},
		{"egress-snat-steering-transport: [vxlan]", "default via 169.254.77.1 dev steer0", "dev eth0"},
	} {
		w.scenario(step.arguments, func() {
			w.reconfigure(step.arguments)
			w.steered()
			w.leaveByTheHolder()
			w.printsItsTables()
			for _, m := range w.members {
				if state := m.steering(w.world); m != w.holder && !strings.Contains(state, step.route) || strings.Contains(state, step.none) {
					w.Errorf("%s: want %q and no %q in:\n%s", m.Name, step.route, step.none, state)
				}
			}
			w.move(w.members[1])
			w.answered()
			w.move(w.members[0])
			w.steered()
		})
	}
	// Chains are in the order in which they were made, and what was removed is on record until its flows have been judged.
	sorted := func(text string) []string {
		return slices.Sorted(slices.Values(lines(record.ReplaceAllString(text, ""))))
	}
	if diff := cmp.Diff(sorted(before), sorted(w.members[1].steering(w.world))); diff != "" {
		w.Errorf("another state than before (-want +got):\n%s", diff)
	}
	w.noneWrong(traffic)
	w.clean(500)
}

// TestSteering_FromBeforeAndBack: nodes begin to steer one after the other, on top of rules as a version before steering has
// them, and go back to these. Pods have connections all the time, and none of their packets has another source.
func TestSteering_FromBeforeAndBack(t *testing.T) {
	belongsTo(t, usual)
	for name, way := range map[string]struct {
		settings
		share share
	}{
		"iptables":        {settings{}, usual},
		"iptables-legacy": {settings{backend: lab.Legacy}, long},
		"nftables":        {settings{nftables: true}, long},
		"direct":          {settings{arguments: direct}, long},
	} {
		t.Run(name, func(t *testing.T) {
			belongsTo(t, way.share)
			fromBeforeAndBack(newSteeredWorld(t, way.settings, nil), way.arguments)
		})
	}
}

func fromBeforeAndBack(w *steeredWorld, arguments string) {
	traffic := w.crowd(400)
	for _, order := range [][]*member{{w.members[0], w.members[1], w.members[2]}, {w.members[1], w.members[2], w.members[0]}}[:by(w.T, 1, 1, 2)] {
		w.scenario("back, first "+order[0].Name, func() {
			for _, m := range order {
				w.restart(m, `egress-snat-steering: ["off"]`)
			}
			w.settled()
			for _, m := range w.members {
				if left := m.steering(w.world); left != "" {
					w.Errorf("%s has something of steering left:\n%s", m.Name, left)
				}
			}
			by := w.sends(func() {
				for _, pod := range w.pods {
					_ = w.unanswered("udp", pod, w.outside()[0]) // the one on the holder is answered
				}
			})
			if len(by) != len(w.members) {
				w.Errorf("packets leave by %d nodes, want each pod's own", len(by))
			}
		})
		w.scenario("from before, first "+order[0].Name, func() {
			for _, m := range order {
				w.restart(m, arguments)
			}
			w.steered()
		})
	}
	w.noneWrong(traffic)
	w.leaveByTheHolder()
	w.clean(500)
}

// restart starts a node with other arguments, and waits until it has its rules.
func (w *world) restart(m *member, arguments string) {
	w.Helper()
	m.Stop()
	m.Configure(arguments)
	m.AnewReady()
}

// TestSteering_AddressOnNoNode: an egress IP that no node has, or that all have on loopback or on an interface without ARP,
// is used where the pod runs: rules and packets are as without steering, and nothing of steering is left when it is off.
func TestSteering_AddressOnNoNode(t *testing.T) {
	w := newWorld(t, settings{})
	pods := w.shop(w.ips(10)...)
	var want []string
	check := func() {
		w.Helper()
		w.settled()
		rules := w.egressRules(w.members...)
		if want == nil {
			want = rules
		}
		if diff := cmp.Diff(want, rules); diff != "" {
			w.Errorf("other rules than where no node has it (-want +got):\n%s", diff)
		}
		for _, m := range w.members {
			if epochs, err := w.leased(m); err != nil || len(epochs) > 0 {
				w.Errorf("the Lease of %s says that it has %v, %v", m.Name, epochs, err)
			}
		}
		for _, pod := range pods {
			w.leaves("tcp", pod, w.ips(10)...)
			w.leaves("udp", pod, w.ips(10)...)
		}
	}
	w.scenario("no node has it", check)
	w.onAll("ip link add silent0 type veth peer name silent1", "ip link set silent0 arp off up", "ip link set silent1 up")
	for _, dev := range []string{"lo", "silent0"} {
		for _, ip := range w.ips(10) {
			w.onAll("ip addr add " + ip + " dev " + dev)
		}
		w.scenario("all nodes have it on "+dev, check)
		for _, ip := range w.ips(10) {
			w.onAll("ip addr del " + ip + " dev " + dev)
		}
	}
	w.reconfigure(`egress-snat-steering: ["off"]`)
	w.scenario("steering is off", func() {
		check()
		for _, m := range w.members {
			if left := m.steering(w); left != "" {
				w.Errorf("%s has something of steering left:\n%s", m.Name, left)
			}
		}
	})
}

// egressRules are our rules on some nodes.
func (w *world) egressRules(on ...*member) (rules []string) {
	w.Helper()
	for _, m := range on {
		for _, family := range w.families {
			for _, line := range programmed(m, family) {
				if strings.Contains(line, iptables.ChainPrefix) {
					rules = append(rules, m.Name+" "+line)
				}
			}
		}
	}
	return rules
}

// onAll runs commands on all nodes.
func (w *world) onAll(commands ...string) {
	w.Helper()
	for _, m := range w.members {
		w.run(m.Host, commands...)
	}
}

// run runs commands on a host.
func (w *world) run(host *lab.Host, commands ...string) {
	w.Helper()
	for _, command := range commands {
		fields := strings.Fields(command)
		_, err := host.Run(w.Context(), fields[0], fields[1:]...)
		w.must(err)
	}
}

// TestSteering_BindingGoesOnOneNodeFirst: the holder, or the pod's node, learns of a change first. The packets of the pod are
// lost then, or leave as its node's where that has learned of it, but never from the pod's address.
//
// The nodes do not speak to each other, or the pod's node would hear at once that nobody holds the address.
func TestSteering_BindingGoesOnOneNodeFirst(t *testing.T) {
	t.Run("iptables", func(t *testing.T) {
		bindingGoesOnOneNodeFirst(newSteeredWorld(t, settings{nodes: 2, arguments: untold}, nil))
	})
	t.Run("nftables", func(t *testing.T) {
		belongsTo(t, usual) // there the proxier drops nothing that conntrack calls invalid
		bindingGoesOnOneNodeFirst(newSteeredWorld(t, settings{nodes: 2, nftables: true, arguments: untold}, nil))
	})
	t.Run("direct", func(t *testing.T) {
		belongsTo(t, usual)
		bindingGoesOnOneNodeFirst(newSteeredWorld(t, settings{nodes: 2, arguments: untold + "\n" + direct}, nil))
	})
}

func bindingGoesOnOneNodeFirst(w *steeredWorld) {
	source, pod := w.members[1], w.pods[1]
	to := w.outside()
	w.scenario("on the holder first", func() {
		source.link.Hold()
		w.bind(false, w.holder)
		w.hangs([]*lab.Host{pod}) // the rules go first: the holder may take what arrives for some moments more
		before := w.holder.drops(w.world)["stale"]
		by := w.sends(func() { w.hangs([]*lab.Host{pod}) })
		if now := w.holder.drops(w.world)["stale"]; len(by) > 0 || now == before {
			w.Errorf("%d packets are dropped as stale, and some leave by %d nodes; want at least one, and none", now-before, len(by))
		}
		w.must(source.link.Heal())
		w.settled()
		w.leaves("tcp", pod)
	})
	w.must(w.wire.Close()) // from here on the pod may leave as its node
	w.bind(true, w.members...)
	w.answered()
	wire, err := w.Watch()
	w.must(err)
	defer func() { _ = wire.Close() }()
	w.scenario("on the pod's node first", func() {
		flows := w.flows(pod, "tcp", "udp")
		w.holder.link.Hold()
		w.bind(false, source)
		w.atRest(source)
		w.leaves("tcp", pod)
		w.ended(flows)
		w.must(w.holder.link.Heal())
		w.settled()
		w.leaves("tcp", pod)
	})
	for _, addr := range to {
		for _, protocol := range []string{"tcp", "udp"} {
			if packets := wire.Sources(protocol, addr)[like(addr.Addr(), pod)]; packets > 0 {
				w.Errorf("%d packets of %s to %s left from the pod's own address", packets, protocol, addr)
			}
		}
	}
}

// bind says whether pods of shop/web leave from its external IPs, and waits until these nodes have learned of it.
func (w *steeredWorld) bind(bound bool, nodes ...*member) {
	w.Helper()
	w.must(w.patch(w.Context(), "shop", "web", map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{"network.openshift.io/egress-snat": fmt.Sprint(bound)},
	}}))
	w.settled(nodes...)
}

// TestSteering_HolderIsLost: packets are dropped in silence for a while, in which another node may take the address, and
// then as egress-snat-steering has it: connections are refused at once.
func TestSteering_HolderIsLost(t *testing.T) {
	w := newSteeredWorld(t, settings{}, nil)
	w.scenario("it is withdrawn, and taken by nobody: used where the pods run", func() {
		pods := w.elsewhere()
		w.drop()
		w.hangs(pods)
		w.settled()
		// Nobody answers ARP for the address, so neither does an answer come.
		for i, m := range w.members {
			w.eventually(func() error {
				if by := w.sends(func() { _ = w.unanswered("udp", w.pods[i], w.outside()[0]) }); len(by) != 1 || by[0] != m.Host {
					return fmt.Errorf("packets of %s leave by %d nodes, want its own alone", w.pods[i].Name, len(by))
				}
				return nil
			})
		}
		w.take(w.members[1])
	})
	w.scenario("the holder is cut off, and not ready", func() {
		belongsTo(w.T, usual)
		cut := w.holder
		pods := w.elsewhere()
		w.refuses(pods, func() {
			w.must(w.SetLink(cut.Host, false))
			w.ready(cut, v1.ConditionUnknown)
		})
		w.must(w.SetLink(cut.Host, true))
		w.ready(cut, v1.ConditionTrue)
		w.steered()
	})
	w.reconfigure(`egress-snat-steering: [required]`)
	w.steered()
	w.scenario("required, withdrawn, and taken by nobody", func() {
		w.refuses(w.pods, w.drop)
		w.take(w.members[2])
	})
	w.scenario("required, and nobody has ever had it", func() {
		held := w.egressIPs
		w.egressIPs = w.lanIPs(101)
		w.editService("shop", "web", func(svc *v1.Service) { svc.Spec.ExternalIPs = w.egressIPs })
		w.settled()
		w.refused(w.pods)
		w.refuses(w.pods, nil)
		w.egressIPs = held
		w.editService("shop", "web", func(svc *v1.Service) { svc.Spec.ExternalIPs = held })
		w.steered()
	})
	w.clean(50)
}

// ready says whether a node is.
func (w *world) ready(m *member, status v1.ConditionStatus) {
	w.Helper()
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q,"reason":"Test"}]}}`, status)
	_, err := w.Client().CoreV1().Nodes().Patch(w.Context(), m.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	w.must(err)
}

// TestSteering_FastPathIsSwitchedOff: the kernel's settings are what they were before, and the proxier, which asks for one of them when it starts,
// drops invalid packets again.
func TestSteering_FastPathIsSwitchedOff(t *testing.T) {
	belongsTo(t, usual)
	w := newSteeredWorld(t, settings{}, nil)
	setting := func(m *member) string {
		out, err := m.Host.Run(w.Context(), "cat", "/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal")
		w.must(err)
		return strings.TrimSpace(out)
	}
	const rule = "--nfacct-name  ct_state_invalid_dropped_pkts -j DROP"
	m := w.members[0]
	if got := setting(m); got != "1" {
		t.Errorf("with the fast path nf_conntrack_tcp_be_liberal is %s, want 1", got)
	}
	w.reconfigure("egress-snat-fast-path: [steered]")
	w.steered()
	w.eventually(func() error {
		if strings.Contains(m.Save(v1.IPv4Protocol), rule) {
			return fmt.Errorf("a start with that setting leaves the rule %q", rule)
		}
		return nil
	})
	w.reconfigure(slowPath)
	w.steered()
	w.eventually(func() error {
		if got := setting(m); got != "0" || !strings.Contains(m.Save(v1.IPv4Protocol), rule) {
			return fmt.Errorf("without the fast path nf_conntrack_tcp_be_liberal is %s, want 0, or the rule %q is missing", got, rule)
		}
		return nil
	})
}

// TestSteering_SilentMove: other software moves the egress IPs to another node without a word to the network, which knows them at the former
// one. The node tells it.
func TestSteering_SilentMove(t *testing.T) {
	belongsTo(t, usual)
	w := newSteeredWorld(t, settings{}, nil)
	w.answered()
	from, to := w.holder, w.members[1]
	known := func(where *member) {
		hardware, err := where.Host.Run(w.Context(), "cat", "/sys/class/net/eth0/address")
		w.must(err)
		for _, ip := range w.egressIPs {
			process.Eventually(w.T, lab.Stretch(5*time.Second), func() error {
				out, err := w.Outside().Run(w.Context(), "ip", "neigh", "show", ip)
				if err == nil && !strings.Contains(out, strings.TrimSpace(hardware)) {
					err = fmt.Errorf("the host outside does not know %s at %s: %s", ip, where.Name, out)
				}
				return err
			})
		}
	}
	known(from)
	for _, addr := range addrs(w.egressIPs) {
		w.must(from.Host.DropAddr(addr))
		w.must(w.AddAddr(to.Host, addr))
	}
	known(to)
	w.holder = to
	w.steered()
	w.clean(10)
}

// TestSteering_TwoHolders: as long as two nodes have an egress IP all nodes steer to the same one, that took it last, the other one of the
// two as well; all pods are answered, and somebody is told. So it is when kube-vip is killed, which leaves the address behind.
func TestSteering_TwoHolders(t *testing.T) {
	belongsTo(t, usual)
	w := newSteeredWorld(t, settings{nodes: 4}, nil)
	first, second := w.members[0], w.members[1]
	w.give(w.egressIPs, second.Host)
	w.eventually(func() error {
		for _, ip := range w.egressIPs {
			one, err := w.leased(first)
			if err != nil {
				return err
			}
			two, err := w.leased(second)
			if err != nil {
				return err
			}
			if one[ip] == 0 || two[ip] <= one[ip] {
				return fmt.Errorf("%s has the epochs %d and %d; want a higher one on %s", ip, one[ip], two[ip], second.Name)
			}
		}
		return nil
	})
	w.eventually(func() error {
		by := w.sends(func() {
			for _, pod := range w.pods {
				for _, to := range w.outside() {
					_ = w.unanswered("udp", pod, to)
				}
			}
		})
		if len(by) != 1 || by[0] != second.Host {
			return fmt.Errorf("packets leave by %d nodes, want %s alone", len(by), second.Name)
		}
		return nil
	})
	for _, ip := range w.egressIPs {
		w.eventually(func() error { return w.hasEvent("EgressIPOnSeveralNodes", "", ip, first.Name, second.Name) })
	}
	w.answered()
	w.drop() // at the first
	w.holder = second
	w.steered()
	w.clean(20)
}

// TestSteering_ManyAddresses: the kernel of a node has a route for each holder, not for each address; and when one address
// moves, its pod's way changes and nothing else.
func TestSteering_ManyAddresses(t *testing.T) {
	belongsTo(t, usual)
	count, holders := by(t, 0, 100, 1000), by(t, 0, 2, 5)
	w := newWorld(t, settings{nodes: 1 + holders, families: families[:1]})
	source := w.members[0]
	w.namespace("many")
	for i := range count {
		w.manyth(source, i)
		w.must(w.AddAddr(w.members[1+i%holders].Host, netip.MustParseAddr(manyIP(i))))
	}
	for h := range holders {
		var ips []string
		for i := h; i < count; i += holders {
			ips = append(ips, manyIP(i))
		}
		w.heldBy(w.members[1+h], ips...)
	}
	w.settled()
	before := source.steering(w)
	if routes := strings.Count(before, "default via 169.254.77."); routes != holders {
		w.Errorf("%d routes to holders, want %d", routes, holders)
	}
	w.must(w.MoveAddr(netip.MustParseAddr(manyIP(0)), w.members[1].Host, w.members[2].Host))
	w.eventually(func() error {
		if was, is := inAnyOrder(before), inAnyOrder(source.steering(w)); len(was) != len(is) || differing(was, is) != 1 {
			return fmt.Errorf("one address has moved, and %d lines have become %d, of which %d are others (-before +after):\n%s", len(was), len(is), differing(was, is), cmp.Diff(was, is))
		}
		return nil
	})
}

// differing is how many of the lines were not there, which are sorted.
func differing(was, is []string) (count int) {
	for _, line := range is {
		if _, there := slices.BinarySearch(was, line); !there {
			count++
		}
	}
	return count
}

// inAnyOrder returns the lines of what is listed, sorted, and without what is between the elements of a set.
func inAnyOrder(text string) []string {
	var all []string
	for _, line := range lines(text) {
		all = append(all, strings.TrimSpace(strings.NewReplacer("elements = {", "", ",", "", "}", "").Replace(line)))
	}
	slices.Sort(all)
	return all
}

func lines(text string) []string { return strings.Split(text, "\n") }

// manyIP is one of many egress IPs.
func manyIP(i int) string { return fmt.Sprintf("100.66.%d.%d", i/250, 1+i%250) }

// manyth makes a Service with an egress IP of its own and a pod that does not exist.
func (w *world) manyth(on *member, i int) {
	w.Helper()
	name := fmt.Sprintf("s%d", i)
	w.service("many", name, []string{manyIP(i)}, func(svc *v1.Service) { svc.Spec.Selector = nil })
	slice := newEndpointSlice("many", name, name, fmt.Sprintf("10.128.%d.%d", 100+i/250, 1+i%250))
	slice.Endpoints[0].NodeName = &on.Name
	_, err := w.Client().DiscoveryV1().EndpointSlices("many").Create(w.Context(), slice, metav1.CreateOptions{})
	w.must(err)
}
