package cluster

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/proxy/apis"

	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/extension"
)

// This file turns objects other than Services into plain input, and no other does.

// NameOf is the name of an object.
func NameOf(object metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// mostAtAnAddress is how many endpoints at one address count in an EndpointSlice. An address is mostly one pod's. Only pods on the network of
// their host share one, which are not bound, and who makes an EndpointSlice by hand may list one a thousand times.
const mostAtAnAddress = 20

// convertSlice returns the endpoints of an EndpointSlice, which may be nil, in its order, but no more than mostAtAnAddress at an address.
// What is not an IP address is left out and in err.
func convertSlice(object *discovery.EndpointSlice) ([]plan.Endpoint, error) {
	if object == nil || object.AddressType == discovery.AddressTypeFQDN {
		return nil, nil
	}
	result := make([]plan.Endpoint, 0, len(object.Endpoints)) // an endpoint has one address mostly
	var unreadable []string
	for _, endpoint := range object.Endpoints {
		converted := plan.Endpoint{}
		if ref := endpoint.TargetRef; ref != nil && ref.Kind == "Pod" {
			converted.Pod = plan.Pod{Namespace: cut(ref.Namespace, maxNamespace), Name: cut(ref.Name, maxName)}
			converted.UID = cut(string(ref.UID), maxName)
		}
		if endpoint.NodeName != nil {
			converted.Node = *endpoint.NodeName
		}
		for _, text := range endpoint.Addresses {
			ip, ok := parseIP(text)
			if !ok {
				unreadable = append(unreadable, text)
				continue
			}
			converted.Addr = ip
			result = append(result, converted)
		}
	}
	result = fewAtEach(result)
	if len(unreadable) > 0 {
		return result, fmt.Errorf("not IP addresses: %q", unreadable)
	}
	return result, nil
}

// fewAtEach returns endpoints, changed, without those that are more than mostAtAnAddress at an address.
func fewAtEach(endpoints []plan.Endpoint) []plan.Endpoint {
	var byLastByte [256]int // no address has more than these: mostly that is enough to know
	crowded := false
	for _, e := range endpoints {
		last := e.Addr.As16()[15]
		byLastByte[last]++
		crowded = crowded || byLastByte[last] > mostAtAnAddress
	}
	if !crowded {
		return endpoints
	}
	at := map[netip.Addr]int{}
	return slices.DeleteFunc(endpoints, func(e plan.Endpoint) bool {
		at[e.Addr]++
		return at[e.Addr] > mostAtAnAddress
	})
}

// convertUnserved keeps of a headless Service's EndpointSlice all endpoints, and of another one those that name a pod of its own
// namespace.
func convertUnserved(object *discovery.EndpointSlice) (result unservedEndpoints) {
	endpoints, _ := convertSlice(object) // nobody asks for what is no address
	_, headless := object.Labels[v1.IsHeadlessService]
	if _, others := object.Labels[apis.LabelServiceProxyName]; headless && !others {
		result.headless = object.Labels[discovery.LabelServiceName]
	}
	for _, e := range endpoints {
		if e.Pod.Namespace == object.Namespace {
			e.Pod.Namespace = object.Namespace // the text is there once
		} else if result.headless == "" {
			continue
		}
		result.endpoints = append(result.endpoints, e)
	}
	return result
}

// What no name of a namespace or a pod is as long as, in bytes. API servers do not validate
// those that an EndpointSlice gives: they may be as long as the slice.
const maxNamespace, maxName = 64, 254

// cut returns text, or as much of it as fits into this many bytes.
func cut(text string, most int) string { return text[:min(len(text), most)] }

// convertNode reads a Node's InternalIPs by IP family. ExternalIPs and host names are left out.
func convertNode(object *v1.Node) map[v1.IPFamily]plan.Node {
	result := map[v1.IPFamily]plan.Node{}
	for _, ip := range internalIPs(object) {
		node, known := result[FamilyOf(ip)]
		if !known {
			node = plan.Node{Name: object.Name, Created: object.CreationTimestamp.Time, Zone: object.Labels[v1.LabelTopologyZone]}
		}
		node.InternalIPs = append(node.InternalIPs, ip)
		result[FamilyOf(ip)] = node
	}
	return result
}

// internalIPs returns those that a Node tells, in its order.
func internalIPs(object *v1.Node) (ips []netip.Addr) {
	for _, address := range object.Status.Addresses {
		if ip, ok := parseIP(address.Address); ok && address.Type == v1.NodeInternalIP {
			ips = append(ips, ip)
		}
	}
	return ips
}

// uninitialized tells whether a Node waits for its cloud provider. Kubelets cannot change their Nodes' taints.
func uninitialized(object *v1.Node) bool {
	return slices.ContainsFunc(object.Spec.Taints, func(t v1.Taint) bool { return t.Key == extension.TaintUninitialized })
}

func equalNodes(a, b map[v1.IPFamily]plan.Node) bool {
	return maps.EqualFunc(a, b, func(x, y plan.Node) bool {
		return x.Name == y.Name && x.Zone == y.Zone && x.Created.Equal(y.Created) && slices.Equal(x.InternalIPs, y.InternalIPs) &&
			(x.Registered == nil) == (y.Registered == nil) && slices.Equal(x.Registered, y.Registered)
	})
}

// networkName is the one Network of config.openshift.io that means anything.
const networkName = "cluster"

const networkSource = "Network.config.openshift.io/" + networkName

// network is what an OpenShift cluster's Network says.
type network struct {
	clusterCIDRs, serviceCIDRs []netip.Prefix
	// policy is on external IPs; nil allows all.
	policy *plan.Policy
}

// convertNetwork reads the networks in force (status), or those that are wanted as long as
// none are, and the policy on external IPs. What cannot be read is in err, and a policy
// that cannot be read allows nothing.
func convertNetwork(object *configv1.Network) (network, error) {
	var unreadable []string
	parse := func(field string, texts []string) (result []netip.Prefix) {
		for i, text := range texts {
			cidr, err := netip.ParsePrefix(text)
			if err != nil {
				unreadable = append(unreadable, fmt.Sprintf("%s[%d]: %q", field, i, text))
				continue
			}
			result = append(result, cidr.Masked())
		}
		return result
	}
	from, clusterNetwork, serviceNetwork := "status", object.Status.ClusterNetwork, object.Status.ServiceNetwork
	if len(clusterNetwork) == 0 {
		from, clusterNetwork, serviceNetwork = "spec", object.Spec.ClusterNetwork, object.Spec.ServiceNetwork
	}
	var cidrs []string
	for _, entry := range clusterNetwork {
		cidrs = append(cidrs, entry.CIDR)
	}
	result := network{clusterCIDRs: parse(from+".clusterNetwork", cidrs)}
	if len(unreadable) > 0 {
		result.clusterCIDRs = nil // rather none than an incomplete list: what is left out would be SNATed to
	}
	result.serviceCIDRs = parse(from+".serviceNetwork", serviceNetwork)
	if external := object.Spec.ExternalIP; external != nil && external.Policy != nil {
		const field = "spec.externalIP.policy"
		before := len(unreadable)
		result.policy = &plan.Policy{
			Source:          networkSource + " " + field,
			Allowed:         parse(field+".allowedCIDRs", external.Policy.AllowedCIDRs),
			Rejected:        parse(field+".rejectedCIDRs", external.Policy.RejectedCIDRs),
			ExternalIPsOnly: true,
		}
		if len(unreadable) > before {
			result.policy.Allowed = nil
		}
	}
	if len(unreadable) > 0 {
		return result, fmt.Errorf("%s: not CIDRs: %s", networkSource, strings.Join(unreadable, ", "))
	}
	return result, nil
}

func (n network) equal(o network) bool {
	return slices.Equal(n.clusterCIDRs, o.clusterCIDRs) && slices.Equal(n.serviceCIDRs, o.serviceCIDRs) &&
		(n.policy == nil) == (o.policy == nil) &&
		(n.policy == nil || slices.Equal(n.policy.Allowed, o.policy.Allowed) && slices.Equal(n.policy.Rejected, o.policy.Rejected))
}
