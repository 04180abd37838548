package oracle_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	configv1 "github.com/openshift/api/config/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/openshift/origin-node/hack/oracle"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/placement"
	"github.com/openshift/origin-node/pkg/egress/plan"
)

// TestOracle_AgreesWithThePlan: for random objects and arguments the program plans what the documented rules say.
func TestOracle_AgreesWithThePlan(t *testing.T) {
	const rounds = 4000
	bindings := 0
	for seed := range rounds {
		c := random{rand.New(rand.NewPCG(uint64(seed), 1))}.cluster()
		if disagreement(c) != "" {
			c = smallest(c)
			t.Fatalf("seed %d: the program does not plan what the documented rules say (-rules +plan):\n%s\nThe smallest such cluster:\n%s", seed, disagreement(c), text(c))
		}
		bindings += len(c.Bindings())
	}
	t.Logf("%d bindings in %d clusters", bindings, rounds)
	if bindings < rounds/3 {
		t.Errorf("%d random clusters have only %d bindings; the test compares too little", rounds, bindings)
	}
}

// outcome is what becomes of the pods' packets.
type outcome struct {
	// Bindings are the whole cluster's, and those of each node.
	Bindings map[string][]oracle.Binding
	// Sources are by pod, protocol and destination, for those that are SNATed.
	Sources map[string]netip.Addr
}

// disagreement is how the rules and the program differ; empty if they do not.
func disagreement(c oracle.Cluster) string {
	c.NodeScope = true
	want := outcome{Bindings: map[string][]oracle.Binding{"all": c.Bindings()}, Sources: map[string]netip.Addr{}}
	for _, node := range nodeNames {
		want.Bindings[node] = c.BindingsOn(node)
	}
	for _, b := range want.Bindings["all"] {
		for _, destination := range destinations {
			if source := c.Source(b.Pod, b.Protocol, destination); source.IsValid() && destination.Is4() == b.Pod.Is4() {
				want.Sources[fmt.Sprint(b.Pod, b.Protocol, destination)] = source
			}
		}
	}
	return cmp.Diff(want, planned(c), cmpopts.EquateComparable(netip.Addr{}), cmpopts.EquateEmpty())
}

// planned is what the program's plans say.
func planned(c oracle.Cluster) outcome {
	result := outcome{Bindings: map[string][]oracle.Binding{}, Sources: map[string]netip.Addr{}}
	for _, family := range []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol} {
		whole := planOf(c, family, placement.Cluster, "")
		result.Bindings["all"] = append(result.Bindings["all"], bindingsOf(whole)...)
		for _, node := range nodeNames {
			here := planOf(c, family, placement.Node, node)
			result.Bindings[node] = append(result.Bindings[node], bindingsOf(here)...)
		}
		for _, b := range whole.Bindings {
			for _, destination := range destinations {
				inside := func(cidr netip.Prefix) bool { return cidr.Contains(destination) }
				if destination != b.EgressIP && !slices.ContainsFunc(whole.ClusterCIDRs, inside) && !slices.ContainsFunc(whole.Exclusions, inside) && destination.Is4() == b.Pod.Is4() {
					result.Sources[fmt.Sprint(b.Pod, b.Protocol, destination)] = b.EgressIP
				}
			}
		}
	}
	return result
}

// planOf is the program's plan on a node.
func planOf(c oracle.Cluster, family v1.IPFamily, scope placement.Scope, node string) plan.Plan {
	given := config(c.Arguments)
	given.Scope, given.NodeName = scope, node
	known := objects(c)
	known.Held = map[netip.Addr]bool{}
	for _, ip := range c.Held[node] {
		known.Held[ip] = !c.SteeringOff
	}
	for _, a := range c.Attached[node] {
		known.Attachments = append(known.Attachments, plan.Attachment{
			Addr: a.Addr, Pod: plan.Pod{Namespace: a.Namespace, Name: a.Name}, UID: a.UID, Node: node, Labels: a.Labels,
			Ended: a.Phase == v1.PodSucceeded || a.Phase == v1.PodFailed, Released: a.Released,
		})
	}
	p, _ := cluster.PlanFor(family, given, known) // it is complete without what cannot be read
	return p
}

func bindingsOf(p plan.Plan) (bindings []oracle.Binding) {
	for _, b := range p.Bindings {
		bindings = append(bindings, oracle.Binding{
			Pod: b.Pod, Protocol: string(b.Protocol), EgressIP: b.EgressIP,
			Service: types.NamespacedName{Namespace: b.Service.Namespace, Name: b.Service.Name},
		})
	}
	return bindings
}

// smallest takes objects away, one by one, as long as there is a disagreement without them.
func smallest(c oracle.Cluster) oracle.Cluster {
	for {
		candidates := smaller(c)
		i := slices.IndexFunc(candidates, func(c oracle.Cluster) bool { return disagreement(c) != "" })
		if i < 0 {
			return c
		}
		c = candidates[i]
	}
}

// smaller returns all clusters with one object less.
func smaller(c oracle.Cluster) (clusters []oracle.Cluster) {
	for i := range c.Services {
		less := c
		less.Services = without(c.Services, i)
		clusters = append(clusters, less)
	}
	for i := range c.EndpointSlices {
		less := c
		less.EndpointSlices = without(c.EndpointSlices, i)
		clusters = append(clusters, less)
	}
	for node, attached := range c.Attached {
		for i := range attached {
			less := c
			less.Attached = maps.Clone(c.Attached)
			less.Attached[node] = without(attached, i)
			clusters = append(clusters, less)
		}
	}
	for i := range c.Nodes {
		less := c
		less.Nodes = without(c.Nodes, i)
		clusters = append(clusters, less)
	}
	return clusters
}

func without[T any](list []T, i int) []T { return slices.Delete(slices.Clone(list), i, i+1) }

// text is a cluster as somebody would write it.
func text(c oracle.Cluster) string {
	written, err := yaml.Marshal(c)
	if err != nil {
		return err.Error()
	}
	return string(written)
}

func objects(c oracle.Cluster) cluster.Objects {
	objects := cluster.Objects{Services: c.Services, EndpointSlices: c.EndpointSlices, Nodes: c.Nodes, Network: c.Network}
	for node, chosen := range c.Chosen {
		text, _ := json.Marshal(chosen) // addresses have a form in JSON
		objects.Leases = append(objects.Leases, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: node, Annotations: map[string]string{holders.ChoicesAnnotation: string(text)}}})
	}
	for _, cidr := range c.ServiceCIDRs {
		objects.ServiceCIDRs = append(objects.ServiceCIDRs, cidr.Spec.CIDRs...)
	}
	return objects
}

func config(a oracle.Arguments) cluster.Config {
	mode := holders.Auto
	if a.SteeringOff {
		mode = holders.Off
	}
	return cluster.Config{
		Steering:     cluster.Steering{Mode: mode},
		ClusterCIDRs: a.ClusterCIDRs, Exclusions: a.ExcludeCIDRs, ExcludeNodes: a.ExcludeNodes, AllowNodeIPs: a.AllowNodeIPs,
		AllowedCIDRs: a.AllowedCIDRs, NamespaceCIDRs: a.NamespaceCIDRs, AllProtocols: a.AllProtocols, LoadBalancerIPs: a.LoadBalancerIPs,
		Pool: cluster.Pool{Networks: a.AssignCIDRs, Nodes: labels.Nothing()},
	}
}

// Few values, so that objects have much to do with each other.
var (
	namespaces = []string{"a", "b"}
	nodeNames  = []string{"n0", "n1", "n2"}
	egressIPs  = []string{"203.0.113.1", "203.0.113.2", "2001:db8:113::1", "2001:db8:113::2"}
	oddIPs     = []string{
		"203.0.113.01", "::ffff:203.0.113.2", "2001:DB8:113:0::1", // as others, written otherwise
		"10.128.0.1", "fd00:10:128::1", "172.30.0.1", "172.31.0.1", "fd00:172:30::1", // in a cluster or service CIDR
		"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.9", "2001:db8::1", "2001:db8::2", // nodes' or the API server's
		"224.0.0.1", "127.0.0.1", "0.0.0.0", "0.1.2.3", "169.254.0.1", "240.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "ff02::1",
		"nonsense", "non:sense", "",
	}
	oddWords     = slices.Concat(oddIPs, []string{"fe80::1%eth0", "203.0.113", `"`, strings.Repeat("x", 120)})
	podIPs       = []string{"10.128.0.1", "10.128.0.2", "10.128.0.3", "fd00:10:128::1", "fd00:10:128::2", "10.129.0.1"}
	oddPodIPs    = []string{"10.128.0.02", "192.0.2.1", "198.51.100.1", "203.0.113.1", "10.128.0.99", "2001:db8::1", "nonsense"}
	nodeIPs      = []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::1", "2001:db8::2", "10.128.0.99", "10.128.0.1", "fd00:10:128::2", "172.30.0.1", "203.0.113.2", "nonsense"}
	destinations = []netip.Addr{
		netip.MustParseAddr("198.51.100.7"), netip.MustParseAddr("10.128.0.3"), netip.MustParseAddr("10.129.0.3"), netip.MustParseAddr("172.30.0.1"),
		netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("169.254.0.1"), netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("203.0.113.2"),
		netip.MustParseAddr("2001:db8:ee::1"), netip.MustParseAddr("fd00:10:128::2"), netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8:113::1"),
	}
)

// random makes random objects.
type random struct{ *rand.Rand }

func one[T any](r random, of ...T) T { return of[r.IntN(len(of))] }

// repeated returns up to a number of things.
func repeated[T any](r random, most int, produce func() T) (made []T) {
	for range r.IntN(most + 1) {
		made = append(made, produce())
	}
	return made
}

// some are up to a number of these, in any order.
func some[T any](r random, most int, of []T) []T {
	return repeated(r, most, func() T { return one(r, of...) })
}

// mostly are up to a number of these, and seldom an odd one.
func mostly(r random, most int, usual, odd []string) []string {
	return repeated(r, most, func() string {
		if r.IntN(8) == 0 {
			return one(r, odd...)
		}
		return one(r, usual...)
	})
}

func prefixes(texts ...string) (cidrs []netip.Prefix) {
	for _, text := range texts {
		cidrs = append(cidrs, netip.MustParsePrefix(text))
	}
	return cidrs
}

func (r random) cluster() oracle.Cluster {
	c := oracle.Cluster{
		Services:  repeated(r, 8, r.service),
		Nodes:     repeated(r, 3, r.node),
		Held:      map[string][]netip.Addr{},
		Chosen:    map[string]map[string]map[netip.Addr]netip.Addr{},
		Attached:  map[string][]oracle.Attachment{},
		Arguments: r.arguments(),
	}
	for _, node := range nodeNames {
		for _, ip := range some(r, 2, egressIPs) {
			c.Held[node] = append(c.Held[node], netip.MustParseAddr(ip))
		}
		c.Attached[node] = r.attachments()
		c.Chosen[node] = r.choices()
	}
	for i, svc := range c.Services { // names are unique
		svc.Name = fmt.Sprintf("s%d", i)
		c.EndpointSlices = append(c.EndpointSlices, repeated(r, 2, func() *discovery.EndpointSlice { return r.sliceOf(svc) })...)
	}
	c.EndpointSlices = append(c.EndpointSlices,
		r.slice("default", "kubernetes"), r.slice(one(r, namespaces...), "unknown"), r.slice(one(r, namespaces...), ""))
	for i, node := range c.Nodes {
		node.Name = nodeNames[i]
	}
	for i, slice := range c.EndpointSlices {
		slice.Name = fmt.Sprintf("e%d", i)
	}
	if r.IntN(4) > 0 {
		c.ServiceCIDRs = append(c.ServiceCIDRs, &networkingv1.ServiceCIDR{Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"172.30.0.0/16", "fd00:172:30::/112"}}})
	}
	if r.IntN(2) == 0 {
		c.Network = r.network()
	}
	return c
}

func (r random) arguments() oracle.Arguments {
	a := oracle.Arguments{ClusterCIDRs: one(r, prefixes("10.128.0.0/16", "fd00:10:128::/48"), prefixes("10.128.0.0/16", "fd00:10:128::/48"), prefixes("10.128.0.0/16", "10.129.0.0/16"), nil, prefixes("fd00:10:128::/48"))}
	a.AllProtocols, a.AllowNodeIPs, a.LoadBalancerIPs, a.ExcludeNodes = r.IntN(4) == 0, r.IntN(4) == 0, r.IntN(2) == 0, r.IntN(2) == 0
	a.AllowedCIDRs = one(r, nil, prefixes("203.0.113.0/31", "2001:db8:113::/48"), prefixes("203.0.113.0/24", "2001:db8::/32"), prefixes("203.0.113.0/31"))
	a.NamespaceCIDRs = one(r, nil, nil, nil, map[string][]netip.Prefix{"a": prefixes("203.0.113.0/31", "2001:db8:113::/64")},
		map[string][]netip.Prefix{"*": prefixes("203.0.113.0/24", "2001:db8:113::/48")}, map[string][]netip.Prefix{"b": prefixes("203.0.113.0/29", "203.0.113.0/24"), "*": prefixes("2001:db8::/32")})
	a.SteeringOff = r.IntN(4) == 0
	a.AssignCIDRs = one(r, nil, nil, prefixes("203.0.113.2/31", "2001:db8::/127"))
	a.ExcludeCIDRs = one(r, prefixes("169.254.0.0/16", "224.0.0.0/4", "fe80::/10"), nil, prefixes("198.51.100.0/24"))
	return a
}

// choices are a node's, for any pods.
func (r random) choices() map[string]map[netip.Addr]netip.Addr {
	choices := map[string]map[netip.Addr]netip.Addr{}
	for range r.IntN(6) {
		service := fmt.Sprintf("%s/s%d", one(r, namespaces...), r.IntN(8))
		pod, ip := netip.MustParseAddr(one(r, podIPs...)), netip.MustParseAddr(one(r, egressIPs...))
		if ip.Is4() != pod.Is4() {
			continue
		}
		if choices[service] == nil {
			choices[service] = map[netip.Addr]netip.Addr{}
		}
		choices[service][pod] = ip
	}
	return choices
}

func (r random) service() *v1.Service {
	svc := &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: one(r, namespaces...)},
		Spec: v1.ServiceSpec{
			Type: one(r, v1.ServiceTypeClusterIP, v1.ServiceTypeLoadBalancer), ClusterIP: "172.30.0.10",
			Selector:    one(r, nil, map[string]string{"app": "web"}, map[string]string{"app": "web", "tier": "front"}),
			IPFamilies:  one(r, []v1.IPFamily{v1.IPv4Protocol}, []v1.IPFamily{v1.IPv6Protocol, v1.IPv4Protocol}),
			ExternalIPs: mostly(r, 4, egressIPs, oddIPs),
		},
	}
	svc.CreationTimestamp.Time = one(r, time.Time{}, time.Unix(1000, 0), time.Unix(2000, 0), time.Unix(3000, 0))
	for range 1 + r.IntN(2) {
		protocol := one(r, v1.ProtocolTCP, v1.ProtocolUDP, v1.ProtocolSCTP, "")
		svc.Spec.Ports = append(svc.Spec.Ports, v1.ServicePort{Port: 80, Protocol: protocol})
	}
	for _, ip := range some(r, 2, egressIPs) {
		svc.Status.LoadBalancer.Ingress = append(svc.Status.LoadBalancer.Ingress, v1.LoadBalancerIngress{
			IP: ip, IPMode: one(r, nil, ptr.To(v1.LoadBalancerIPModeVIP), ptr.To(v1.LoadBalancerIPModeProxy)),
		})
	}
	if r.IntN(4) == 0 {
		svc.Annotations = map[string]string{"network.openshift.io/egress-snat": one(r, "true", "false", "nonsense", "", strings.Join(mostly(r, 3, egressIPs, oddWords), ", "))}
	}
	if r.IntN(4) == 0 {
		if svc.Annotations == nil {
			svc.Annotations = map[string]string{}
		}
		svc.Annotations["network.openshift.io/egress-ip"] = one(r,
			one(r, egressIPs...), one(r, egressIPs...), strings.Join(egressIPs, ","), strings.Join(some(r, 20, egressIPs), ","),
			one(r, egressIPs...)+","+one(r, egressIPs...), strings.Join(mostly(r, 3, egressIPs, oddWords), ", "))
		if r.IntN(3) == 0 {
			svc.Spec.ClusterIP = v1.ClusterIPNone
			svc.Spec.Ports = svc.Spec.Ports[:r.IntN(len(svc.Spec.Ports)+1)]
		}
	}
	switch r.IntN(30) { // what claims nothing, or what cannot be understood
	case 0:
		svc.Spec.ClusterIP = v1.ClusterIPNone
	case 1:
		svc.Spec.Type, svc.Spec.ClusterIP = v1.ServiceTypeExternalName, ""
	case 2:
		svc.Labels = map[string]string{"service.kubernetes.io/service-proxy-name": "other"}
	case 3:
		svc.Spec.Ports = append(svc.Spec.Ports, v1.ServicePort{Port: 81, Protocol: "ICMP"})
	}
	return svc
}

// sliceOf makes an EndpointSlice of a Service, mostly with its labels.
func (r random) sliceOf(svc *v1.Service) *discovery.EndpointSlice {
	slice := r.slice(svc.Namespace, svc.Name)
	if (svc.Spec.ClusterIP == v1.ClusterIPNone) != (r.IntN(20) == 0) {
		slice.Labels[v1.IsHeadlessService] = ""
	}
	if r.IntN(30) == 0 {
		slice.Labels["service.kubernetes.io/service-proxy-name"] = "other"
	}
	return slice
}

// slice makes an EndpointSlice of a Service. It may call any pod its own.
func (r random) slice(namespace, service string) *discovery.EndpointSlice {
	slice := &discovery.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Labels: map[string]string{discovery.LabelServiceName: service}},
		AddressType: discovery.AddressTypeIPv4,
	}
	if r.IntN(20) == 0 {
		slice.AddressType = discovery.AddressTypeFQDN
	}
	pods := podIPs
	if service == "kubernetes" {
		pods = []string{"192.0.2.1", "192.0.2.9", "203.0.113.2"}
	}
	for _, ip := range mostly(r, 4, pods, oddPodIPs) {
		e := discovery.Endpoint{Addresses: []string{ip}, Conditions: discovery.EndpointConditions{Ready: one(r, nil, ptr.To(true), ptr.To(false))}}
		if r.IntN(2) == 0 {
			e.TargetRef = &v1.ObjectReference{Kind: one(r, "Pod", "Pod", "Pod", "Node"), Namespace: one(r, namespace, homeOf(ip)), Name: one(r, "pod", "pod", "other"), UID: one[types.UID](r, "", "u1", "u2")}
		}
		if r.IntN(3) > 0 {
			e.NodeName = ptr.To(one(r, nodeNames...))
		}
		slice.Endpoints = append(slice.Endpoints, e)
	}
	return slice
}

// attachments are a node's, of different addresses.
func (r random) attachments() (attachments []oracle.Attachment) {
	for _, ip := range podIPs {
		if r.IntN(3) > 0 {
			continue
		}
		attachments = append(attachments, oracle.Attachment{
			Addr: netip.MustParseAddr(ip), Namespace: one(r, homeOf(ip), homeOf(ip), one(r, namespaces...)), Name: one(r, "pod", "pod", "other"), UID: one(r, "u1", "u2"),
			Labels:   one(r, nil, map[string]string{"app": "web"}, map[string]string{"app": "web", "tier": "front"}, map[string]string{"app": "db"}),
			Phase:    one(r, v1.PodPending, v1.PodRunning, v1.PodRunning, v1.PodSucceeded, v1.PodFailed),
			Released: r.IntN(4) == 0,
		})
	}
	return attachments
}

// homeOf is the namespace of the pod at an address.
func homeOf(ip string) string { return namespaces[int(ip[len(ip)-1])%len(namespaces)] }

func (r random) node() *v1.Node {
	node := &v1.Node{Spec: v1.NodeSpec{PodCIDRs: some(r, 2, []string{"10.128.0.2/31", "10.129.0.0/24", "fd00:10:128::2/128"})}}
	for _, ip := range some(r, 4, nodeIPs) {
		node.Status.Addresses = append(node.Status.Addresses, v1.NodeAddress{
			Type: one(r, v1.NodeInternalIP, v1.NodeInternalIP, v1.NodeExternalIP, v1.NodeHostName), Address: ip,
		})
	}
	return node
}

func (r random) network() *configv1.Network {
	network := &configv1.Network{}
	for _, cidr := range some(r, 2, []string{"10.128.0.0/16", "fd00:10:128::/48"}) {
		network.Spec.ClusterNetwork = append(network.Spec.ClusterNetwork, configv1.ClusterNetworkEntry{CIDR: cidr})
	}
	network.Spec.ServiceNetwork = some(r, 1, []string{"172.31.0.0/16"})
	if r.IntN(2) == 0 {
		network.Status.ClusterNetwork = []configv1.ClusterNetworkEntry{{CIDR: "10.129.0.0/16"}}
		network.Status.ServiceNetwork = some(r, 1, []string{"172.30.0.0/16"})
	}
	switch r.IntN(4) {
	case 0:
		network.Spec.ExternalIP = &configv1.ExternalIPConfig{}
	case 1, 2:
		network.Spec.ExternalIP = &configv1.ExternalIPConfig{Policy: &configv1.ExternalIPPolicy{
			AllowedCIDRs: some(r, 2, []string{"203.0.113.0/24", "2001:db8:113::/48"}), RejectedCIDRs: some(r, 2, []string{"203.0.113.2/32", "2001:db8:113::2/128"}),
		}}
	}
	return network
}
