package balancer

import (
	"net/netip"
	"slices"

	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
)

// finalizer keeps a Service until its addresses are taken back, see k8s.io/cloud-provider/service/helpers.
const finalizer = "service.kubernetes.io/load-balancer-cleanup"

// balanced says whether a Service is to have addresses.
func balanced(svc *v1.Service) bool {
	return svc.Spec.Type == v1.ServiceTypeLoadBalancer && svc.Spec.LoadBalancerClass == nil && svc.DeletionTimestamp == nil
}

// ours says whether this package has written to a Service.
func ours(svc *v1.Service) bool { return slices.Contains(svc.Finalizers, finalizer) }

// write is the next one to a Service.
type write struct {
	object *v1.Service
	status bool // or else the object itself
}

// nextWrite returns the next write to a Service that is to have these addresses; nil if there is none. The finalizer comes
// before the first address, and goes after the last.
func nextWrite(svc *v1.Service, addrs []netip.Addr) *write {
	want := svc.DeepCopy()
	want.Status.LoadBalancer.Ingress = ingress(addrs)
	told := apiequality.Semantic.DeepEqual(want.Status.LoadBalancer, svc.Status.LoadBalancer)
	switch {
	case len(addrs) > 0 && !ours(svc):
		want.Finalizers = append(want.Finalizers, finalizer)
		return &write{object: want}
	case !told && ours(svc):
		return &write{object: want, status: true}
	case len(addrs) == 0 && ours(svc):
		want.Finalizers = slices.DeleteFunc(want.Finalizers, func(f string) bool { return f == finalizer })
		return &write{object: want}
	}
	return nil
}

func ingress(addrs []netip.Addr) (result []v1.LoadBalancerIngress) {
	for _, addr := range addrs {
		result = append(result, v1.LoadBalancerIngress{IP: addr.String(), IPMode: ptr.To(v1.LoadBalancerIPModeVIP)})
	}
	return result
}

// local says whether only nodes with endpoints take what is for a Service, which its health check port tells.
func local(svc *v1.Service) bool {
	return svc.Spec.ExternalTrafficPolicy == v1.ServiceExternalTrafficPolicyLocal && svc.Spec.HealthCheckNodePort != 0
}

// chooseNodes returns which of the healthy nodes take what is for a Service, where current ones do now.
func chooseNodes(svc *v1.Service, healthy, current []string) []string {
	if svc.Spec.SessionAffinity != v1.ServiceAffinityClientIP || len(healthy) < 2 {
		return healthy
	}
	for _, node := range current {
		if slices.Contains(healthy, node) {
			return []string{node}
		}
	}
	return healthy[:1]
}

// nodeAddrs are the addresses of a node that is ready, one of each family; none otherwise.
func nodeAddrs(node *v1.Node) (addrs []netip.Addr) {
	ready := slices.ContainsFunc(node.Status.Conditions, func(c v1.NodeCondition) bool {
		return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue
	})
	if _, excluded := node.Labels[v1.LabelNodeExcludeBalancers]; !ready || excluded {
		return nil
	}
	for _, a := range node.Status.Addresses {
		addr, err := netip.ParseAddr(a.Address)
		if err != nil || a.Type != v1.NodeInternalIP {
			continue
		}
		if !slices.ContainsFunc(addrs, func(other netip.Addr) bool { return familyOf(other) == familyOf(addr) }) {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

// balance is a Service that has addresses.
type balance struct {
	svc   *v1.Service
	addrs []netip.Addr
	// nodes are the names of those that take what is for it.
	nodes []string
}

// routes returns where the router sends what is for the addresses of a Service: to those addresses of its nodes that are of the
// same family.
func routes(of *balance, nodes map[string][]netip.Addr) map[netip.Addr][]netip.Addr {
	result := map[netip.Addr][]netip.Addr{}
	for _, addr := range of.addrs {
		for _, name := range of.nodes {
			for _, via := range nodes[name] {
				if familyOf(via) == familyOf(addr) {
					result[addr] = append(result[addr], via)
				}
			}
		}
	}
	return result
}
