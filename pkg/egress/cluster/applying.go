package cluster

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/openshift/origin-node/pkg/egress/admission"
	"github.com/openshift/origin-node/pkg/egress/portblocks"
)

// AdmissionPolicy returns a policy by which the API server refuses, at apply, Services whose claims a plan of this configuration refuses
// whatever other objects there are, and what puts it in force.
func AdmissionPolicy(config Config) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	may := egressIPNames(config)
	return admission.Policy(admission.Config{
		Annotation: Annotation, EgressIPAnnotation: EgressIPAnnotation, MostEgressIPs: may.most, TooMany: may.tooMany, Beyond: may.beyond,
		ClusterCIDRs: config.ClusterCIDRs, AllowedCIDRs: config.AllowedCIDRs, NamespaceCIDRs: config.NamespaceCIDRs,
		PortBlockAnnotation: PortBlockAnnotation, PortBlocks: portblocks.Sizes(), NoPortBlock: portblocks.NoSize,
		LoadBalancerIPs: config.LoadBalancerIPs, AllProtocols: config.AllProtocols,
	})
}
