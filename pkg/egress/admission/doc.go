// Package admission has the API server refuse, at apply, what the plan would refuse later.
//
// [Policy] makes a ValidatingAdmissionPolicy from the nodes' configuration. It decides all that one Service decides by itself: whether
// its egress IPs can be ones (InvalidAddress, AddressInCluster by cluster-cidr), may be its namespace's (NotAllowed by
// egress-snat-allowed-cidrs and egress-snat-namespace-cidrs), and whether its annotations and ports can be understood
// (InvalidAnnotation, InvalidEgressPortBlock, InvalidProtocol). The message is the refusal's reason and text.
//
// What depends on other objects stays the plan's, which tells it by an Event: an older Service's address, a node's, an API server's,
// service CIDRs, and OpenShift's policy on external IPs. Nodes refuse what the policy lets pass, so it is a convenience and no protection:
// an API server that cannot evaluate it lets the Service pass.
//
// The rules are those of package plan, written a second time in CEL. A test of hack/oracle compares the two on random Services. The policy is
// stricter in one point: it wants addresses as the API server prints them. External IPs with leading zeros, and IPv4 addresses in IPv6
// form, which the plan reads as the proxier does, are refused, and the latter mean nothing in an annotation.
//
// The package imports the API's types only.
package admission
