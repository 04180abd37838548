package manifests

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilnet "k8s.io/utils/net"
)

// noAllocator ends the messages about values that an API server would fill in.
const noAllocator = "there is no API server to allocate one: write it in the file"

// prepareService fills in what follows from what is written, as the API
// server's allocator does (pkg/registry/core/service/storage/alloc.go), refuses
// what only an allocator could fill in, and validates.
func prepareService(service *v1.Service) field.ErrorList {
	var errs field.ErrorList
	if service.Spec.Type != v1.ServiceTypeExternalName {
		completeClusterIPs(&service.Spec)
		completeFamilies(&service.Spec)
		errs = append(errs, checkClusterIPs(&service.Spec)...)
	}
	errs = append(errs, checkNodePorts(&service.Spec)...)
	for _, err := range validate(service) {
		if err.Field == "spec.healthCheckNodePort" && err.Type == field.ErrorTypeRequired {
			err.Detail = noAllocator
		}
		errs = append(errs, err)
	}
	return errs
}

func completeClusterIPs(spec *v1.ServiceSpec) {
	if spec.ClusterIP == "" && len(spec.ClusterIPs) > 0 {
		spec.ClusterIP = spec.ClusterIPs[0]
	}
	if spec.ClusterIP != "" && len(spec.ClusterIPs) == 0 {
		spec.ClusterIPs = []string{spec.ClusterIP}
	}
}

// completeFamilies derives ipFamilyPolicy and ipFamilies. Where the API server
// would refuse two addresses without a policy, two are taken to mean what they
// say: nothing here depends on a default that could change.
func completeFamilies(spec *v1.ServiceSpec) {
	bare := isHeadless(spec) && len(spec.Selector) == 0
	if spec.IPFamilyPolicy == nil {
		policy := v1.IPFamilyPolicySingleStack
		if bare || len(spec.ClusterIPs) > 1 || len(spec.IPFamilies) > 1 {
			policy = v1.IPFamilyPolicyRequireDualStack
		}
		spec.IPFamilyPolicy = &policy
	}
	if !isHeadless(spec) {
		for i := len(spec.IPFamilies); i < len(spec.ClusterIPs); i++ {
			spec.IPFamilies = append(spec.IPFamilies, familyOf(spec.ClusterIPs[i]))
		}
		return
	}
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = []v1.IPFamily{v1.IPv4Protocol}
	}
	dual := *spec.IPFamilyPolicy == v1.IPFamilyPolicyRequireDualStack ||
		bare && *spec.IPFamilyPolicy == v1.IPFamilyPolicyPreferDualStack
	if dual && len(spec.IPFamilies) == 1 {
		other := v1.IPv6Protocol
		if spec.IPFamilies[0] == v1.IPv6Protocol {
			other = v1.IPv4Protocol
		}
		spec.IPFamilies = append(spec.IPFamilies, other)
	}
}

func familyOf(ip string) v1.IPFamily {
	if utilnet.IsIPv6String(ip) {
		return v1.IPv6Protocol
	}
	return v1.IPv4Protocol
}

func isHeadless(spec *v1.ServiceSpec) bool { return spec.ClusterIP == v1.ClusterIPNone }

// checkClusterIPs refuses a Service with fewer addresses than it asks for, and
// the contradictions that the allocator refuses.
func checkClusterIPs(spec *v1.ServiceSpec) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec")
	dual := *spec.IPFamilyPolicy == v1.IPFamilyPolicyRequireDualStack
	switch {
	case spec.ClusterIP == "":
		return append(errs, field.Required(path.Child("clusterIP"), noAllocator+` ("None" for a headless Service)`))
	case *spec.IPFamilyPolicy == v1.IPFamilyPolicySingleStack && (len(spec.ClusterIPs) > 1 || len(spec.IPFamilies) > 1):
		errs = append(errs, field.Invalid(path.Child("ipFamilyPolicy"), *spec.IPFamilyPolicy,
			"must be 'RequireDualStack' or 'PreferDualStack' when there are two cluster IPs or IP families"))
	case isHeadless(spec):
	case dual && len(spec.ClusterIPs) < 2, len(spec.ClusterIPs) < len(spec.IPFamilies):
		errs = append(errs, field.Required(path.Child("clusterIPs").Index(len(spec.ClusterIPs)),
			fmt.Sprintf("an address of each family is needed (ipFamilies: %v, ipFamilyPolicy: %s); %s", spec.IPFamilies, *spec.IPFamilyPolicy, noAllocator)))
	}
	return errs
}

// checkNodePorts wants the node ports of a NodePort Service. A LoadBalancer
// works without them, as with allocateLoadBalancerNodePorts: false.
func checkNodePorts(spec *v1.ServiceSpec) field.ErrorList {
	var errs field.ErrorList
	for i, port := range spec.Ports {
		path := field.NewPath("spec", "ports").Index(i).Child("nodePort")
		if port.NodePort == 0 {
			if spec.Type == v1.ServiceTypeNodePort {
				errs = append(errs, field.Required(path, noAllocator))
			}
			continue
		}
		// Upstream leaves the range to the allocator.
		for _, msg := range validation.IsValidPortNum(int(port.NodePort)) {
			errs = append(errs, field.Invalid(path, port.NodePort, msg))
		}
	}
	return errs
}
