package admission

import (
	"fmt"
	"net/netip"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Name is that of the policy and of its binding.
const Name = "egress-snat.network.openshift.io"

// Config is what of the nodes' configuration decides about one Service.
type Config struct {
	// Annotation and EgressIPAnnotation are the names of the Services' annotations.
	Annotation, EgressIPAnnotation string
	// ClusterCIDRs are proxyArguments.cluster-cidr, AllowedCIDRs egress-snat-allowed-cidrs (nil for any), NamespaceCIDRs
	// egress-snat-namespace-cidrs, by namespace or "*".
	ClusterCIDRs, AllowedCIDRs []netip.Prefix
	NamespaceCIDRs             map[string][]netip.Prefix
	// MostEgressIPs is how many addresses of an IP family EgressIPAnnotation may name; TooMany is what to call more, Beyond why no more.
	MostEgressIPs   int
	TooMany, Beyond string
	// PortBlockAnnotation is another annotation of Services, PortBlocks what it may say, NoPortBlock what is wrong with all else, in front of it.
	PortBlockAnnotation string
	PortBlocks          []int
	NoPortBlock         string
	// LoadBalancerIPs is egress-snat-load-balancer-ips. AllProtocols: egress-snat-protocols is all.
	LoadBalancerIPs, AllProtocols bool
}

// proxyLabel is on Services that another proxy serves.
const proxyLabel = "service.kubernetes.io/service-proxy-name"

// everyOther stands, in NamespaceCIDRs, for the namespaces that are not named.
const everyOther = "*"

// Policy returns the policy and what puts it in force.
func Policy(config Config) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	meta := metav1.ObjectMeta{Name: Name}
	policy := &admissionv1.ValidatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"},
		ObjectMeta: meta,
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    ptr.To(admissionv1.Ignore),
			MatchConstraints: services(),
			MatchConditions:  conditions(config),
			Variables:        variables(config),
			Validations: []admissionv1.Validation{{
				Expression:        "size(variables.refusals) == 0",
				Message:           "the Service claims an egress IP that it cannot have, or its annotations cannot be understood",
				MessageExpression: "variables.refusals[0]",
			}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicyBinding"},
		ObjectMeta: meta,
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}
	return policy, binding
}

func services() *admissionv1.MatchResources {
	return &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"services"}},
		},
	}}}
}

// conditions leave out the Services that claim nothing, and changes that are no concern of a claim: a Service that was there before the
// policy can still be labelled and deleted.
func conditions(config Config) []admissionv1.MatchCondition {
	deciding := func(object string) string { // a load balancer may have given it an address that is refused: its ports can be changed all the same
		return fmt.Sprintf("[%[1]s.spec.?type, %[1]s.spec.?clusterIP, %[1]s.spec.?externalIPs, "+
			"%[1]s.metadata.?annotations[?%[2]s], %[1]s.metadata.?annotations[?%[3]s], %[1]s.metadata.?annotations[?%[4]s], %[1]s.metadata.?labels[?%[5]s]]",
			object, quote(config.Annotation), quote(config.EgressIPAnnotation), quote(config.PortBlockAnnotation), quote(proxyLabel))
	}
	return []admissionv1.MatchCondition{
		{Name: "is-served-or-named", Expression: "object.spec.?type.orValue('') != 'ExternalName' && " +
			"!(" + quote(proxyLabel) + " in object.metadata.?labels.orValue({})) && " +
			"(object.spec.?clusterIP.orValue('') != 'None' || " + quote(config.EgressIPAnnotation) + " in object.metadata.?annotations.orValue({}))"},
		{Name: "claims-something-else-than-before", Expression: "oldObject == null || " + deciding("object") + " != " + deciding("oldObject")},
	}
}
