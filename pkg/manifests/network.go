package manifests

import (
	"net/netip"

	configv1 "github.com/openshift/api/config/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	utilnet "k8s.io/utils/net"
)

// networkName is the name of the one Network of a cluster.
const networkName = "cluster"

// validateServiceCIDR has the rules of upstream's ValidateServiceCIDR
// (pkg/apis/networking/validation). Upstream has no defaults for the kind.
func validateServiceCIDR(cidr *networkingv1.ServiceCIDR) field.ErrorList {
	errs := validateMeta(&cidr.ObjectMeta)
	path, cidrs := field.NewPath("spec", "cidrs"), cidr.Spec.CIDRs
	switch {
	case len(cidrs) == 0:
		return append(errs, field.Required(path, "at least one CIDR required"))
	case len(cidrs) > 2:
		return append(errs, field.Invalid(path, cidrs, "may only hold up to 2 values"))
	}
	for i, cidr := range cidrs {
		errs = append(errs, validation.IsValidCIDR(path.Index(i), cidr)...)
	}
	if len(cidrs) == 2 {
		family := utilnet.IPFamilyOfCIDRString(cidrs[0])
		if family != utilnet.IPFamilyUnknown && family == utilnet.IPFamilyOfCIDRString(cidrs[1]) {
			errs = append(errs, field.Invalid(path, cidrs, "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"))
		}
	}
	return errs
}

// validateNetwork refuses a Network of another name, which no component reads, and
// CIDRs that cannot be parsed. OpenShift leaves the latter to the operators that
// read the object.
func validateNetwork(network *configv1.Network) field.ErrorList {
	errs := validateMeta(&network.ObjectMeta)
	if network.Name != "" && network.Name != networkName {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), network.Name,
			`a cluster has one Network, and its name is "`+networkName+`"`))
	}
	spec, status := field.NewPath("spec"), field.NewPath("status")
	errs = append(errs, checkClusterNetwork(spec.Child("clusterNetwork"), network.Spec.ClusterNetwork)...)
	errs = append(errs, checkCIDRs(spec.Child("serviceNetwork"), network.Spec.ServiceNetwork)...)
	if external := network.Spec.ExternalIP; external != nil {
		path := spec.Child("externalIP")
		errs = append(errs, checkCIDRs(path.Child("autoAssignCIDRs"), external.AutoAssignCIDRs)...)
		if policy := external.Policy; policy != nil {
			errs = append(errs, checkCIDRs(path.Child("policy", "allowedCIDRs"), policy.AllowedCIDRs)...)
			errs = append(errs, checkCIDRs(path.Child("policy", "rejectedCIDRs"), policy.RejectedCIDRs)...)
		}
	}
	errs = append(errs, checkClusterNetwork(status.Child("clusterNetwork"), network.Status.ClusterNetwork)...)
	return append(errs, checkCIDRs(status.Child("serviceNetwork"), network.Status.ServiceNetwork)...)
}

// validateMeta is for the objects of a cluster-scoped kind.
func validateMeta(meta *metav1.ObjectMeta) field.ErrorList {
	return corevalidation.ValidateObjectMeta(meta, false, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
}

func checkClusterNetwork(path *field.Path, entries []configv1.ClusterNetworkEntry) field.ErrorList {
	var errs field.ErrorList
	for i, entry := range entries {
		errs = append(errs, checkCIDR(path.Index(i).Child("cidr"), entry.CIDR)...)
	}
	return errs
}

func checkCIDRs(path *field.Path, cidrs []string) field.ErrorList {
	var errs field.ErrorList
	for i, cidr := range cidrs {
		errs = append(errs, checkCIDR(path.Index(i), cidr)...)
	}
	return errs
}

func checkCIDR(path *field.Path, cidr string) field.ErrorList {
	if _, err := netip.ParsePrefix(cidr); err != nil {
		return field.ErrorList{field.Invalid(path, cidr, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")}
	}
	return nil
}
