package e2e

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/hack/lab"
	egresscluster "github.com/openshift/origin-node/pkg/egress/cluster"
)

// TestRules_OfTheReadme: the documented rules (pkg/egress/plan/doc.go), each in a namespace of its own, while pods ask the outside which
// address it sees.
func TestRules_OfTheReadme(t *testing.T) {
	for name, s := range map[string]settings{
		"iptables-legacy": {backend: lab.Legacy}, "iptables-nft": {backend: lab.NFT}, "nftables": {nftables: true},
	} {
		t.Run(name, func(t *testing.T) {
			if s.backend != lab.NFT {
				belongsTo(t, usual)
			}
			w := newWorld(t, s)
			shoppers := w.rules()
			w.configuredRules()
			w.undisturbed(shoppers)
		})
	}
}

// TestRules_InOneIPFamily: a cluster of one IP family has the same rules.
func TestRules_InOneIPFamily(t *testing.T) {
	belongsTo(t, usual)
	for _, family := range families {
		t.Run(string(family), func(t *testing.T) {
			cidr := lab.ClusterV4
			if family == v1.IPv6Protocol {
				cidr = lab.ClusterV6
			}
			w := newWorld(t, settings{families: []v1.IPFamily{family}, arguments: `cluster-cidr: ["` + cidr.String() + `"]`})
			w.undisturbed(w.rules())
		})
	}
}

// rules goes through those that need no configuration, and returns the traffic of shop/web.
func (w *world) rules() *lab.Traffic {
	w.Helper()
	pods := w.shop(append(w.ips(10), w.ips(11)...)...)
	var i identities
	i.expect(w.ips(10), pods...)
	shoppers := w.ask(&i, pods...)
	w.scenario("the second external IP is never used", func() { w.secondIsNeverUsed(pods) })
	w.scenario("a pod behind no Service leaves as its node", w.unboundLeaveAsTheirNode)
	w.scenario("inside the cluster a bound pod is seen as any other", func() { w.insideTheCluster(pods[0]) })
	w.scenario("only the protocols of the Service's ports are bound", w.protocolsOfThePorts)
	w.scenario("an annotation turns a Service off, or names its address", w.annotations)
	w.scenario("a pod that is not ready, or terminating, is bound", w.notReadyAndTerminating)
	w.scenario("a pod on the host's network is not bound", w.hostNetwork)
	w.scenario("an address belongs to the namespace of the oldest Service that has it", w.thief)
	w.scenario("another order of the external IPs moves the pods, whose flows end", w.otherOrder)
	w.scenario("without external IPs the pods leave as their nodes", w.withoutExternalIPs)
	w.scenario("without the Service the pods leave as their nodes", w.withoutService)
	w.scenario("addresses that nobody may use are refused", w.forbiddenAddresses)
	w.scenario("'openshift egress verify' finds that all is as planned", w.verify)
	return shoppers
}

func (w *world) secondIsNeverUsed(pods []*lab.Host) {
	const askedAt = 8081
	var servers []*lab.Server
	for _, to := range at(w.Outside(), askedAt) {
		for _, protocol := range []string{"tcp", "udp"} {
			server, err := w.Outside().ServeWhoami(network(protocol, to), askedAt)
			w.must(err)
			servers = append(servers, server)
			for range 10 {
				for _, pod := range pods {
					w.seen(protocol, pod, to, identity(pod, to, w.ips(10)))
				}
			}
		}
	}
	seen := 0
	for _, server := range servers {
		w.must(server.Close())
		for _, peer := range server.Seen() {
			if seen++; !slices.Contains(w.ips(10), peer.Addr().String()) {
				w.Errorf("the outside saw %s", peer)
			}
		}
	}
	w.Logf("%d packets and connections of %d pods, all from %s", seen, len(pods), strings.Join(w.ips(10), " and "))
}

func (w *world) unboundLeaveAsTheirNode() {
	w.namespace("unbound")
	for _, m := range w.members {
		_, pod := w.podByHand("unbound", "pod-of-"+m.Name, m, nil)
		w.leaves("tcp", pod)
		w.leaves("udp", pod)
	}
}

// insideTheCluster has a bound pod and one that is not, on the same node, ask the same.
func (w *world) insideTheCluster(bound *lab.Host) {
	w.namespace("inside")
	near, far := w.members[0], w.members[1]
	_, stranger := w.podByHand("inside", "stranger", near, nil)
	_, neighbour := w.podByHand("inside", "neighbour", near, nil)
	_, db := w.podByHand("inside", "db", far, nil)
	svc := w.service("inside", "db", w.ips(20), nil, tcp80, udp80)
	w.endpoint("inside", "db", db, ready)
	w.bound("inside", "db", 1)
	for _, m := range w.members {
		w.serve(m.Host)
	}
	for _, pod := range []*lab.Host{bound, stranger} {
		for _, protocol := range []string{"tcp", "udp"} {
			check := func(to []netip.AddrPort, as *lab.Host) {
				w.Helper()
				for _, to := range to {
					w.seen(protocol, pod, to, like(to.Addr(), as))
				}
			}
			check(at(neighbour, port), pod)
			check(at(db, port), pod)
			check(addrPorts(svc.Spec.ClusterIPs, 80), pod)
			check(addrPorts(svc.Spec.ExternalIPs, 80), near.Host) // kube-proxy masquerades what comes for external IPs
			for _, own := range addrPorts(w.ips(10), 80) {
				w.masqueraded(near.Host, w.asks(protocol, pod, own), own)
			}
			check(at(near.Host, port), pod)
			check(at(far.Host, port), near.Host) // as the network plugin has it
		}
	}
	// And behind its back the other side knows it by its own address.
	w.seen("tcp", db, at(bound, port)[0], like(at(bound, port)[0].Addr(), db))
}

func addrPorts(addrs []string, port uint16) []netip.AddrPort {
	var result []netip.AddrPort
	for _, addr := range addrs {
		result = append(result, netip.AddrPortFrom(netip.MustParseAddr(addr), port))
	}
	return result
}

func (w *world) protocolsOfThePorts() {
	w.namespace("protocols")
	for _, to := range w.outside() {
		if _, err := w.Outside().ServeWhoami(network("sctp", to), port); err != nil {
			w.Fatal(err)
		}
	}
	for i, bound := range []v1.Protocol{v1.ProtocolTCP, v1.ProtocolUDP, v1.ProtocolSCTP} {
		name := strings.ToLower(string(bound))
		w.service("protocols", name, w.ips(30+i), nil, v1.ServicePort{Port: 80, Protocol: bound})
		_, pod := w.podByHand("protocols", name, w.members[i], nil)
		w.bound("protocols", name, 1)
		for _, protocol := range []string{"tcp", "udp", "sctp"} {
			if protocol == name {
				w.leaves(protocol, pod, w.ips(30+i)...)
			} else {
				w.leaves(protocol, pod)
			}
		}
	}
}

func (w *world) annotations() {
	w.namespace("annotated")
	w.service("annotated", "web", append(w.ips(40), w.ips(41)...), nil)
	_, pod := w.podByHand("annotated", "web", w.members[2], nil)
	w.bound("annotated", "web", 1)
	annotate := func(value string) {
		w.editService("annotated", "web", func(svc *v1.Service) {
			metav1.SetMetaDataAnnotation(&svc.ObjectMeta, egresscluster.Annotation, value)
		})
		w.settled()
	}
	w.leaves("tcp", pod, w.ips(40)...)
	annotate("false")
	w.leaves("tcp", pod)
	annotate(strings.Join(w.ips(41), ","))
	w.leaves("tcp", pod, w.ips(41)...)
	annotate("flase")
	w.leaves("tcp", pod)
	w.refused("annotated/web", "InvalidAnnotation")
	event := w.warned("annotated", "web", "InvalidAnnotation")
	annotate("true")
	w.leaves("tcp", pod, w.ips(40)...)
	w.refused("annotated/web", "")
	w.saidOnce(event)
}

func (w *world) notReadyAndTerminating() {
	w.namespace("draining")
	w.service("draining", "web", w.ips(50), nil)
	pod, host := w.podByHand("draining", "web", w.members[1], func(pod *v1.Pod) {
		pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](300)
	})
	_, err := w.SetPodStatus(w.Context(), pod, cluster.RunningStatus(pod, false, host.V4, host.V6))
	w.must(err)
	w.endpoint("draining", "web", host, notReady)
	w.bound("draining", "web", 1)
	w.leaves("tcp", host, w.ips(50)...)
	flows := w.flows(host, "tcp")
	_, err = w.SetPodStatus(w.Context(), pod, cluster.RunningStatus(pod, true, host.V4, host.V6))
	w.must(err)
	w.endpoint("draining", "web", host, ready)
	w.settled()
	w.leaves("tcp", host, w.ips(50)...)
	w.must(w.Client().CoreV1().Pods("draining").Delete(w.Context(), "web", metav1.DeleteOptions{}))
	w.endpoint("draining", "web", host, terminating)
	w.settled()
	w.leaves("tcp", host, w.ips(50)...)
	w.live(flows, w.ips(50)...)
}

func (w *world) hostNetwork() {
	w.namespace("hosts")
	w.service("hosts", "web", w.ips(60), nil)
	_, host := w.podByHand("hosts", "web", w.members[1], func(pod *v1.Pod) { pod.Spec.HostNetwork = true })
	w.endpoint("hosts", "web", host, ready)
	w.refused("hosts/web", "EndpointOutsideCluster")
	w.refusedOn("hosts/web", "EndpointOutsideCluster", w.members[1])
	w.warned("hosts", "web", "EndpointOutsideCluster")
	w.bound("hosts", "web", 0)
	w.leaves("tcp", host)
}

func (w *world) thief() {
	w.namespace("vault")
	w.namespace("bandits")
	owner := w.service("vault", "gold", append(w.ips(71), w.ips(70)...), nil)
	_, robbed := w.podByHand("vault", "gold", w.members[0], nil)
	_, bandit := w.podByHand("bandits", "web", w.members[1], nil)
	w.bound("vault", "gold", 1)
	w.younger(owner)
	// The owner has the address, although its pods leave from another.
	w.service("bandits", "web", w.ips(70), nil)
	w.endpoint("bandits", "web", bandit, ready)
	w.refused("bandits/web", "OwnedByOtherNamespace")
	event := w.warned("bandits", "web", "OwnedByOtherNamespace")
	if event.Type != v1.EventTypeWarning || !strings.Contains(event.Message, "belongs to the namespace vault, for its Service vault/gold is older") {
		w.Errorf("the Event says %s: %s", event.Type, event.Message)
	}
	w.settled()
	w.leaves("tcp", bandit)
	w.leaves("tcp", robbed, w.ips(71)...)

	w.deleteService("vault", "gold")
	w.bound("bandits", "web", 1)
	w.leaves("tcp", bandit, w.ips(70)...)
	w.leaves("tcp", robbed)
	w.refused("bandits/web", "")
	w.saidOnce(event)
}

func (w *world) otherOrder() {
	w.namespace("order")
	w.service("order", "web", append(w.ips(80), w.ips(81)...), nil, tcp80, udp80)
	_, pod := w.podByHand("order", "web", w.members[2], nil)
	w.bound("order", "web", 1)
	w.leaves("tcp", pod, w.ips(80)...)
	flows := w.flows(pod, "tcp", "udp")
	w.editService("order", "web", func(svc *v1.Service) { svc.Spec.ExternalIPs = append(w.ips(81), w.ips(80)...) })
	w.atRest()
	w.leaves("tcp", pod, w.ips(81)...)
	w.leaves("udp", pod, w.ips(81)...)
	w.ended(flows, w.ips(81)...)
}

func (w *world) withoutExternalIPs() {
	w.leftAsNode("dropped", func() {
		w.editService("dropped", "web", func(svc *v1.Service) { svc.Spec.ExternalIPs = nil })
	})
}

func (w *world) withoutService() {
	w.leftAsNode("deleted", func() { w.deleteService("deleted", "web") })
}

// leftAsNode has a bound pod lose its identity.
func (w *world) leftAsNode(namespace string, lose func()) {
	w.namespace(namespace)
	w.service(namespace, "web", w.ips(90), nil, tcp80, udp80)
	_, pod := w.podByHand(namespace, "web", w.members[0], nil)
	w.bound(namespace, "web", 1)
	w.leaves("tcp", pod, w.ips(90)...)
	flows := w.flows(pod, "tcp", "udp")
	lose()
	w.bound(namespace, "web", 0)
	w.atRest()
	w.leaves("tcp", pod)
	w.leaves("udp", pod)
	w.ended(flows)
	if svc, err := w.Client().CoreV1().Services(namespace).Get(w.Context(), "web", metav1.GetOptions{}); err == nil {
		w.deleteService(namespace, svc.Name)
	}
}

func (w *world) forbiddenAddresses() {
	w.namespace("forbidden")
	_, pod := w.podByHand("forbidden", "web", w.members[0], nil)
	for _, svc := range []struct {
		reason    string
		addresses []netip.Addr
	}{
		{"AddressInCluster", []netip.Addr{cluster.ServiceCIDRV4.Addr().Next(), cluster.ServiceCIDRV6.Addr().Next()}},
		{"AddressInCluster", []netip.Addr{lab.ClusterV4.Addr().Next(), lab.ClusterV6.Addr().Next()}},
		{"NodeAddress", []netip.Addr{w.members[1].Host.V4, w.members[1].Host.V6}},
		{"APIServerAddress", []netip.Addr{w.Control().V4}}, // the API server advertises one address
	} {
		var addresses []string
		for _, addr := range svc.addresses {
			if addr.IsValid() && slices.Contains(w.families, familyOf(addr)) {
				addresses = append(addresses, addr.String())
			}
		}
		if len(addresses) == 0 {
			continue
		}
		w.service("forbidden", "web", addresses, nil)
		w.endpoint("forbidden", "web", pod, ready)
		w.refused("forbidden/web", svc.reason)
		w.bound("forbidden", "web", 0)
		w.leaves("tcp", pod)
		w.deleteService("forbidden", "web")
		w.refused("forbidden/web", "")
	}
}

func (w *world) verify() {
	w.settled()
	for _, m := range w.members {
		if out, errs, status := m.Openshift("egress", "verify", "--socket="+m.Socket()); status != 0 {
			w.Errorf("%s: status %d: %s%s", m.Name, status, out, errs)
		}
	}
}

func familyOf(addr netip.Addr) v1.IPFamily {
	if addr.Is4() {
		return v1.IPv4Protocol
	}
	return v1.IPv6Protocol
}

// The arguments of configuredRules.
const configuredArguments = `
egress-snat-protocols: [all]
egress-snat-exclude-cidrs: [198.51.100.0/24, "2001:db8:113:ee::/64"]
egress-snat-load-balancer-ips: ["true"]
egress-snat-allowed-cidrs: [203.0.113.0/25, "2001:db8:113::/112"]
egress-snat-namespace-cidrs: [pinned=203.0.113.110/32, "pinned=2001:db8:113::110/128"]
`

// configuredRules goes through those that arguments change. The nodes restart with them, which the pods of
// shop/web do not notice either.
func (w *world) configuredRules() {
	w.Helper()
	w.reconfigure(configuredArguments)
	w.settled()
	w.scenario("all protocols are bound where the configuration says so", w.allProtocols)
	w.scenario("destinations that the configuration excludes see the node", w.excludedDestinations)
	w.scenario("a Service without external IPs has its load balancer's where the configuration says so", w.loadBalancerIPs)
	w.scenario("an address that the configuration does not allow is refused", w.allowedAddresses)
	w.scenario("a namespace gets no other addresses than those that it is pinned to", w.pinnedNamespace)
}

func (w *world) allProtocols() {
	w.namespace("everything")
	w.service("everything", "web", w.ips(100), nil)
	_, pod := w.podByHand("everything", "web", w.members[0], nil)
	w.bound("everything", "web", 1)
	for _, protocol := range []string{"tcp", "udp", "sctp"} {
		w.leaves(protocol, pod, w.ips(100)...)
	}
}

func (w *world) excludedDestinations() {
	w.namespace("excluding")
	w.service("excluding", "web", w.ips(101), nil)
	_, pod := w.podByHand("excluding", "web", w.members[1], nil)
	w.bound("excluding", "web", 1)
	for _, partner := range addrPorts([]string{"198.51.100.99", "2001:db8:113:ee::99"}, port) {
		w.must(w.AddAddr(w.Outside(), partner.Addr()))
		w.seen("tcp", pod, partner, identity(pod, partner, nil))
	}
	w.leaves("tcp", pod, w.ips(101)...)
}

func (w *world) loadBalancerIPs() {
	w.namespace("balanced")
	w.service("balanced", "web", nil, func(svc *v1.Service) { svc.Spec.Type = v1.ServiceTypeLoadBalancer })
	_, pod := w.podByHand("balanced", "web", w.members[2], nil)
	w.endpoint("balanced", "web", pod, ready)
	w.bound("balanced", "web", 0)
	w.leaves("tcp", pod)
	var ingress []v1.LoadBalancerIngress
	for _, ip := range w.ips(102) {
		ingress = append(ingress, v1.LoadBalancerIngress{IP: ip})
	}
	w.editServiceStatus("balanced", "web", v1.ServiceStatus{LoadBalancer: v1.LoadBalancerStatus{Ingress: ingress}})
	w.bound("balanced", "web", 1)
	w.leaves("tcp", pod, w.ips(102)...)
}

func (w *world) allowedAddresses() {
	w.namespace("greedy")
	_, pod := w.podByHand("greedy", "web", w.members[0], nil)
	// The first external IP counts, not the first that is allowed.
	w.service("greedy", "web", append([]string{"203.0.113.200", "2001:db8:113:1::1"}, w.ips(103)...), nil)
	w.endpoint("greedy", "web", pod, ready)
	w.refused("greedy/web", "NotAllowed")
	if event := w.warned("greedy", "web", "NotAllowed"); !strings.Contains(event.Message, "egress-snat-allowed-cidrs") {
		w.Errorf("the Event does not name the policy: %s", event.Message)
	}
	w.bound("greedy", "web", 0)
	w.leaves("tcp", pod)
}

func (w *world) pinnedNamespace() {
	w.namespace("pinned")
	_, pod := w.podByHand("pinned", "web", w.members[1], nil)
	w.service("pinned", "web", w.ips(104), nil)
	w.endpoint("pinned", "web", pod, ready)
	w.refused("pinned/web", "NotAllowed")
	w.bound("pinned", "web", 0)
	w.leaves("tcp", pod)
	w.editService("pinned", "web", func(svc *v1.Service) { svc.Spec.ExternalIPs = w.ips(110) })
	w.bound("pinned", "web", 1)
	w.leaves("tcp", pod, w.ips(110)...)
}
