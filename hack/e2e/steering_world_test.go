package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/origin-node/hack/lab"
)

// steeredWorld is a cluster whose egress IPs are addresses of the nodes' own network: a node has them on its
// interface, the holder, and gets the answers. Hosts outside are on that network and behind a router. Every packet
// that leaves a node is counted.
type steeredWorld struct {
	*world
	wire *lab.Wire
	// pods are those of shop/web, one on each node, and egressIPs what they leave from.
	pods      []*lab.Host
	egressIPs []string
	holder    *member
	// hasFastPath: it is not switched off, and the nodes have IPv4 addresses for its tunnel.
	hasFastPath bool
}

// newSteeredWorld makes one in which the first node has the egress IPs. prepare, which may be nil, changes the world before
// the nodes start.
func newSteeredWorld(t *testing.T, s settings, prepare func(*world)) *steeredWorld {
	t.Helper()
	s.onLAN = true
	w := &steeredWorld{world: newIdleWorld(t, s), hasFastPath: !strings.Contains(s.arguments, slowPath) && !slices.Equal(s.families, families[1:])}
	if prepare != nil {
		prepare(w.world)
	}
	w.start()
	w.watchPackets()
	t.Cleanup(func() { _ = w.wire.Close() }) // it may be closed
	w.egressIPs = w.lanIPs(100)
	w.pods = w.shop(w.egressIPs...)
	w.take(w.members[0])
	return w
}

// watchPackets begins to count packets, those to servers of ICMP among them.
func (w *steeredWorld) watchPackets() {
	w.Helper()
	for _, host := range []*lab.Host{w.Outside(), w.Far()} {
		for _, to := range at(host, 0) {
			_, err := host.ServeWhoami(network("icmp", to), 0)
			w.must(err)
		}
	}
	wire, err := w.Watch()
	w.must(err)
	w.wire = wire
}

// direct has nodes be each other's next hops.
const direct = "egress-snat-steering-transport: [direct]"

// untold: nodes know of each other from the API server alone.
const untold = `egress-snat-announce-port: ["0"]`

// lanIPs is an address of the nodes' network for each family of the cluster, by its number, which no host has by itself.
func (w *world) lanIPs(number int) []string {
	var result []string
	for _, family := range w.families {
		if family == v1.IPv4Protocol {
			result = append(result, fmt.Sprintf("192.0.2.%d", number))
		} else {
			result = append(result, fmt.Sprintf("2001:db8:0:2::%d", number))
		}
	}
	return result
}

// addrs parses addresses.
func addrs(texts []string) (result []netip.Addr) {
	for _, text := range texts {
		result = append(result, netip.MustParseAddr(text))
	}
	return result
}

// take gives the egress IPs to a node, and returns when all nodes know.
func (w *steeredWorld) take(m *member) {
	w.Helper()
	w.give(w.egressIPs, m.Host)
	w.holder = m
	w.steered()
}

// give gives addresses to a host.
func (w *world) give(ips []string, to *lab.Host) {
	w.Helper()
	for _, addr := range addrs(ips) {
		w.must(to.TakeAddr(addr))
	}
}

// holds gives egress IPs to a node, and returns when all nodes know.
func (w *world) holds(m *member, egressIPs []string) {
	w.Helper()
	w.give(egressIPs, m.Host)
	w.heldBy(m, egressIPs...)
}

// drop takes them away from the holder.
func (w *steeredWorld) drop() {
	w.Helper()
	for _, addr := range addrs(w.egressIPs) {
		w.must(w.holder.Host.DropAddr(addr))
	}
	w.holder = nil
}

// move moves the egress IPs to another node, and does not wait for anybody.
func (w *steeredWorld) move(to *member) {
	w.Helper()
	for _, addr := range addrs(w.egressIPs) {
		w.must(w.MoveAddr(addr, w.holder.Host, to.Host))
	}
	w.holder = to
}

// steered waits until the nodes know of the holder, and have the rules that go with it.
func (w *steeredWorld) steered() {
	w.Helper()
	w.heldBy(w.holder, w.egressIPs...)
	w.settled()
	w.answered()
}

// answered waits until each pod is answered, as the egress IPs, by the hosts outside.
func (w *steeredWorld) answered() {
	w.Helper()
	w.answeredAt(w.pods)
}

// answeredAt is answered for these pods.
func (w *steeredWorld) answeredAt(pods []*lab.Host) {
	w.Helper()
	for _, pod := range pods {
		for _, to := range w.everywhere() {
			w.seen("udp", pod, to, identity(pod, to, w.egressIPs))
		}
	}
}

// everywhere are the addresses at which the hosts outside serve.
func (w *world) everywhere() []netip.AddrPort { return append(w.outside(), at(w.Far(), port)...) }

// egressAddresses is the annotation of a node's Lease that says which addresses it has.
const egressAddresses = "network.openshift.io/egress-addresses"

// leased are the addresses that a node's Lease says that it has, with their epochs; nil if there is no Lease.
func (w *world) leased(m *member) (map[string]int, error) {
	lease, err := w.Client().CoordinationV1().Leases("origin-node").Get(w.Context(), m.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries := map[string]struct{ Epoch int }{}
	if text := lease.Annotations[egressAddresses]; text != "" {
		err = json.Unmarshal([]byte(text), &entries)
	}
	epochs := map[string]int{}
	for addr, entry := range entries {
		epochs[addr] = entry.Epoch
	}
	return epochs, err
}

// heldBy waits until the Leases say of these addresses that this node has them, and no other; nil is for no node.
func (w *world) heldBy(holder *member, ips ...string) {
	w.Helper()
	w.eventually(func() error {
		for _, m := range w.members {
			epochs, err := w.leased(m)
			if err != nil {
				return err
			}
			for _, ip := range ips {
				if _, has := epochs[ip]; has != (m == holder) {
					return fmt.Errorf("the Lease of %s has %s: %v, want %v; it has %v", m.Name, ip, has, m == holder, epochs)
				}
			}
		}
		return nil
	})
}

// crowd lets the pods ask the hosts outside all the time. Answers are from the egress IPs or wrong; that there are some
// is up to the test.
func (w *steeredWorld) crowd(rate int, protocols ...string) *lab.Traffic {
	var i identities
	i.expect(w.egressIPs, w.pods...)
	traffic := lab.StartTraffic(lab.TrafficConfig{To: w.everywhere(), Protocols: protocols, Rate: rate, Timeout: 2 * time.Second, Check: i.check}, w.pods...)
	w.Cleanup(func() { traffic.Stop() })
	return traffic
}

// clean ends the count of packets. It fails if one from anywhere to the servers outside had another source than the egress
// IPs, or if there were fewer than so many under them. Nobody but the pods of shop/web may have sent any.
func (w *steeredWorld) clean(least int) {
	w.Helper()
	w.must(w.wire.Close())
	right, wrong := w.sources()
	total := 0
	for _, packets := range right {
		total += packets
	}
	if len(wrong) > 0 || total < least {
		w.Errorf("%d packets as the egress IPs, want at least %d; others:\n%s", total, least, strings.Join(wrong, "\n"))
	}
	w.Logf("%d packets as the egress IPs, 0 others: %v", total, len(wrong) == 0)
}

// sources tells how many packets to the servers outside each node has sent as the egress IPs, and in words those that had
// another source.
func (w *steeredWorld) sources() (right map[*lab.Host]int, wrong []string) {
	right = map[*lab.Host]int{}
	to, egress := w.everywhere(), addrs(w.egressIPs)
	for s, packets := range w.wire.Seen() {
		switch {
		case !slices.Contains(to, s.To) && (s.Protocol != "icmp" || !slices.Contains(to, netip.AddrPortFrom(s.To.Addr(), port))):
		case slices.Contains(egress, s.Source):
			right[s.Node] += packets
		default:
			wrong = append(wrong, fmt.Sprintf("%d packets of %s from %s to %s, by %s", packets, s.Protocol, s.Source, s.To, s.Node.Name))
		}
	}
	return right, wrong
}

// sends returns the nodes by which packets to the servers outside leave during do.
func (w *steeredWorld) sends(do func()) (by []*lab.Host) {
	w.Helper()
	before, _ := w.sources()
	do()
	after, wrong := w.sources()
	if len(wrong) > 0 {
		w.Errorf("packets have other sources than the egress IPs:\n%s", strings.Join(wrong, "\n"))
	}
	for node, packets := range after {
		if packets > before[node] {
			by = append(by, node)
		}
	}
	return by
}

// steeringTable is the name of the tables, one in each IP family, that steer.
const steeringTable = "openshift-egress-steering"

// portSecurityTable is the name of the one that checks the sources of what pods send.
const portSecurityTable = "openshift-egress-port-security"

// drops is how many packets a node has dropped, by the names of the counters.
func (m *member) drops(w *world) map[string]int {
	w.Helper()
	text, err := m.Host.Run(w.Context(), "nft", "--json", "list", "counters")
	w.must(err)
	var list struct {
		Nftables []struct {
			Counter *struct {
				Table, Name string
				Packets     int
			}
		}
	}
	w.must(json.Unmarshal([]byte(text), &list))
	drops := map[string]int{}
	for _, object := range list.Nftables {
		switch c := object.Counter; {
		case c != nil && c.Table == steeringTable:
			drops[c.Name] += c.Packets
		case c != nil && c.Table == portSecurityTable:
			drops["spoofed"] += c.Packets
		}
	}
	return drops
}

// allDrops is that of all nodes.
func (w *world) allDrops() map[string]int {
	w.Helper()
	drops := map[string]int{}
	for _, m := range w.members {
		for name, packets := range m.drops(w) {
			drops[name] += packets
		}
	}
	return drops
}

func timedOut(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// passing are what packets change of a table by themselves: counters, and elements of sets that they fill.
var passing = regexp.MustCompile(`packets \d+ bytes \d+|\n\t\telements = {[^}]* expires [^}]*}`)

// steeringState prints what a node has of steering.
const steeringState = `
ip -o -d link show dev steer0 | sed 's/^[0-9]*: //'
ip -o addr show dev steer0 | sed 's/^[0-9]*: //'
for family in -4 -6; do
	ip $family rule | grep -E '^(9[0-9]{2}|1000):'
	ip $family route show table all | grep -E ' table 77[0-9]{2} ' | sort
	ip $family neigh show dev steer0 nud permanent | sort
done
bridge fdb show dev steer0 | sort
nft list table ip ` + steeringTable + `
nft list table ip6 ` + steeringTable

// steering is what a node has of steering, but for figures that change by themselves.
func (m *member) steering(w *world) string {
	w.Helper()
	out, err := m.Host.Command(w.Context(), "sh", "-c", "exec 2>/dev/null; "+steeringState+"; true").Output()
	w.must(err)
	return passing.ReplaceAllString(string(out), "")
}

// elsewhere are the pods that are not on the holder.
func (w *steeredWorld) elsewhere() (pods []*lab.Host) {
	for _, pod := range w.pods {
		if pod.Node != w.holder.Host {
			pods = append(pods, pod)
		}
	}
	return pods
}

// only fails unless these are exactly that node.
func (w *steeredWorld) only(node *lab.Host, by []*lab.Host) {
	w.Helper()
	if len(by) != 1 || by[0] != node {
		var names []string
		for _, host := range by {
			names = append(names, host.Name)
		}
		w.Errorf("packets leave by %v, want %s alone", names, node.Name)
	}
}

// dropsTold is what was dropped, for people.
func dropsTold(drops map[string]int) string {
	var text []string
	for _, name := range slices.Sorted(maps.Keys(drops)) {
		if drops[name] > 0 {
			text = append(text, fmt.Sprintf("%d %s", drops[name], name))
		}
	}
	return strings.Join(text, ", ")
}
