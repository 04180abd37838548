package proxier

import (
	"fmt"
	"math/rand"
	"os"
	"slices"
	"strconv"
	"testing"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// cluster invents what happens in a cluster and tells the proxier. The same seed invents the same.
type cluster struct {
	*rand.Rand
	family   v1.IPFamily
	proxier  *Proxier
	services []*v1.Service
	slices   []*discovery.EndpointSlice
	made     int // names, cluster IPs and node ports are never used twice
}

// clusters returns how many clusters to invent.
func clusters(t *testing.T) int {
	n, err := strconv.Atoi(os.Getenv("UPSTREAMTEST_CLUSTERS"))
	if err != nil {
		t.Skip("UPSTREAMTEST_CLUSTERS does not say how many")
	}
	return n
}

func (c *cluster) chance(percent int) bool { return c.Intn(100) < percent }

func choose[T any](c *cluster, from ...T) T { return from[c.Intn(len(from))] }

// ip returns an address of a prefix, for example "10.0." or "fd00:10::".
func (c *cluster) ip(v4, v6 string, n int) string {
	if c.family == v1.IPv6Protocol {
		return fmt.Sprintf("%s%x", v6, n+1)
	}
	return fmt.Sprintf("%s%d.%d", v4, n/250, n%250+1)
}

// happen lets a few things happen.
func (c *cluster) happen() {
	for range c.Intn(5) {
		switch n := c.Intn(100); {
		case n < 30 || len(c.services) == 0:
			c.addService()
		case n < 45:
			c.updateService()
		case n < 52:
			c.deleteService()
		case n < 65:
			c.addSlice(choose(c, c.services...))
		case n < 92:
			c.updateSlice()
		default:
			c.deleteSlice()
		}
	}
}

func (c *cluster) addService() {
	c.made++
	svc := &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("ns%d", c.Intn(4)), Name: fmt.Sprintf("svc%d", c.made)}}
	if c.chance(5) {
		svc.Labels = map[string]string{"service.kubernetes.io/service-proxy-name": "another"}
	}
	svc.Spec.ClusterIP = c.ip("172.30.", "fd00:10:96::", c.made)
	switch n := c.Intn(100); {
	case n < 5:
		svc.Spec.ClusterIP = v1.ClusterIPNone
	case n < 8:
		svc.Spec.ClusterIP, svc.Spec.Type, svc.Spec.ExternalName = "", v1.ServiceTypeExternalName, "example.com"
	}
	c.vary(svc)
	c.services = append(c.services, svc)
	c.proxier.OnServiceAdd(svc)
	for range c.Intn(3) {
		c.addSlice(svc)
	}
}

// vary gives the Service another shape, but the same cluster IP.
func (c *cluster) vary(svc *v1.Service) {
	spec := &svc.Spec
	spec.Ports, spec.ExternalIPs, spec.LoadBalancerSourceRanges, svc.Status.LoadBalancer.Ingress = nil, nil, nil, nil
	spec.SessionAffinity, spec.SessionAffinityConfig, spec.HealthCheckNodePort = v1.ServiceAffinityNone, nil, 0
	if spec.Type != v1.ServiceTypeExternalName {
		spec.Type = choose(c, v1.ServiceTypeClusterIP, v1.ServiceTypeNodePort, v1.ServiceTypeLoadBalancer)
	}
	c.varyPorts(spec)
	for range c.Intn(3) {
		spec.ExternalIPs = append(spec.ExternalIPs, c.ip("192.168.", "2001:db8:99::", 99*250+c.Intn(20)))
	}
	if c.chance(25) {
		seconds := int32(choose(c, 600, v1.DefaultClientIPServiceAffinitySeconds))
		spec.SessionAffinity = v1.ServiceAffinityClientIP
		spec.SessionAffinityConfig = &v1.SessionAffinityConfig{ClientIP: &v1.ClientIPConfig{TimeoutSeconds: &seconds}}
	}
	spec.ExternalTrafficPolicy = choose(c, v1.ServiceExternalTrafficPolicyCluster, v1.ServiceExternalTrafficPolicyLocal)
	internal := choose(c, v1.ServiceInternalTrafficPolicyCluster, v1.ServiceInternalTrafficPolicyCluster, v1.ServiceInternalTrafficPolicyLocal)
	spec.InternalTrafficPolicy = &internal
	if spec.Type == v1.ServiceTypeLoadBalancer {
		c.varyLoadBalancer(svc)
	}
}

func (c *cluster) varyPorts(spec *v1.ServiceSpec) {
	for i := range 1 + c.Intn(3) {
		port := v1.ServicePort{
			Name: fmt.Sprintf("p%d", i), Port: int32(80 + i), TargetPort: intstr.FromInt32(8080),
			Protocol: choose(c, v1.ProtocolTCP, v1.ProtocolTCP, v1.ProtocolUDP, v1.ProtocolSCTP),
		}
		if spec.Type == v1.ServiceTypeNodePort || spec.Type == v1.ServiceTypeLoadBalancer && c.chance(80) {
			c.made++
			port.NodePort = int32(30000 + c.made%2700)
		}
		spec.Ports = append(spec.Ports, port)
	}
}

func (c *cluster) varyLoadBalancer(svc *v1.Service) {
	for range c.Intn(3) {
		mode := choose(c, v1.LoadBalancerIPModeVIP, v1.LoadBalancerIPModeVIP, v1.LoadBalancerIPModeProxy)
		ip := c.ip("1.2.", "2001:db8:1:2::", c.Intn(2000))
		svc.Status.LoadBalancer.Ingress = append(svc.Status.LoadBalancer.Ingress, v1.LoadBalancerIngress{IP: ip, IPMode: &mode})
	}
	if c.chance(30) {
		svc.Spec.LoadBalancerSourceRanges = []string{choose(c, "203.0.113.0/25", "2001:db8::/32", "192.168.0.0/24"), "198.51.100.0/24", "2001:db8:5::/48"}
	}
	if svc.Spec.ExternalTrafficPolicy == v1.ServiceExternalTrafficPolicyLocal {
		c.made++
		svc.Spec.HealthCheckNodePort = int32(30000 + c.made%2700)
	}
}

func (c *cluster) updateService() {
	i := c.Intn(len(c.services))
	old := c.services[i]
	c.services[i] = old.DeepCopy()
	c.vary(c.services[i])
	c.proxier.OnServiceUpdate(old, c.services[i])
}

func (c *cluster) deleteService() {
	i := c.Intn(len(c.services))
	svc := c.services[i]
	c.services = slices.Delete(c.services, i, i+1)
	c.proxier.OnServiceDelete(svc)
	// Its EndpointSlices stay for a while, as the garbage collector has it, or go with it.
	if c.chance(50) {
		c.slices = slices.DeleteFunc(c.slices, func(s *discovery.EndpointSlice) bool {
			if s.Namespace != svc.Namespace || s.Labels[discovery.LabelServiceName] != svc.Name {
				return false
			}
			c.proxier.OnEndpointSliceDelete(s)
			return true
		})
	}
}

func (c *cluster) addSlice(svc *v1.Service) {
	c.made++
	addressType := discovery.AddressTypeIPv4
	if c.family == v1.IPv6Protocol {
		addressType = discovery.AddressTypeIPv6
	}
	slice := &discovery.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: svc.Namespace, Name: fmt.Sprintf("%s-%d", svc.Name, c.made),
			Labels: map[string]string{discovery.LabelServiceName: svc.Name},
		},
		AddressType: addressType,
	}
	for _, port := range svc.Spec.Ports {
		target := port.TargetPort.IntVal
		slice.Ports = append(slice.Ports, discovery.EndpointPort{Name: &port.Name, Port: &target, Protocol: &port.Protocol})
	}
	c.varyEndpoints(slice)
	c.slices = append(c.slices, slice)
	c.proxier.OnEndpointSliceAdd(slice)
}

func (c *cluster) varyEndpoints(slice *discovery.EndpointSlice) {
	slice.Endpoints = nil
	for range c.Intn(6) {
		c.endpoint(slice)
	}
}

// taken tells whether another EndpointSlice of the Service has the address. Which of both holds is then
// chance, upstream too.
func (c *cluster) taken(slice *discovery.EndpointSlice, ip string) bool {
	return slices.ContainsFunc(c.slices, func(other *discovery.EndpointSlice) bool {
		return other.Namespace == slice.Namespace && other.Labels[discovery.LabelServiceName] == slice.Labels[discovery.LabelServiceName] &&
			other.Name != slice.Name && slices.ContainsFunc(other.Endpoints, func(e discovery.Endpoint) bool { return e.Addresses[0] == ip })
	})
}

func (c *cluster) endpoint(slice *discovery.EndpointSlice) {
	ip := c.ip("10.0.", "fd00:10::", c.Intn(300))
	if c.taken(slice, ip) {
		return
	}
	ready, terminating := c.chance(75), c.chance(15)
	serving := ready || c.chance(50)
	ready = ready && !terminating
	endpoint := discovery.Endpoint{
		Addresses:  []string{ip},
		Conditions: discovery.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating},
	}
	if c.chance(90) {
		name := choose(c, testNodeName, "another-node", "third-node")
		endpoint.NodeName = &name
	}
	if c.chance(20) {
		endpoint.Hints = &discovery.EndpointHints{ForZones: []discovery.ForZone{{Name: choose(c, "zone-a", "zone-b")}}}
	}
	slice.Endpoints = append(slice.Endpoints, endpoint)
}

func (c *cluster) updateSlice() {
	if len(c.slices) == 0 {
		return
	}
	i := c.Intn(len(c.slices))
	old := c.slices[i]
	c.slices[i] = old.DeepCopy()
	c.varyEndpoints(c.slices[i])
	c.proxier.OnEndpointSliceUpdate(old, c.slices[i])
}

func (c *cluster) deleteSlice() {
	if len(c.slices) == 0 {
		return
	}
	i := c.Intn(len(c.slices))
	slice := c.slices[i]
	c.slices = slices.Delete(c.slices, i, i+1)
	c.proxier.OnEndpointSliceDelete(slice)
}

// grow adds endpoints until the cluster counts as a large one.
func (c *cluster) grow() {
	c.addService()
	c.addSlice(c.services[len(c.services)-1])
	i := len(c.slices) - 1
	old := c.slices[i]
	c.slices[i] = old.DeepCopy()
	for n := range 1100 {
		c.slices[i].Endpoints = append(c.slices[i].Endpoints, discovery.Endpoint{Addresses: []string{c.ip("10.1.", "fd00:10::1:", n)}})
	}
	c.proxier.OnEndpointSliceUpdate(old, c.slices[i])
}
