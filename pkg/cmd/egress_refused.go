package cmd

import (
	"net/netip"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/status"
)

const egressRefusedLong = `Lists the refused claims of Services, sorted by Service. A refusal is of the whole claim, if
POD IP and PROTOCOL are <all>, of one pod, or of one protocol of one pod.

The reasons, of whole claims first:

  OwnedByOtherNamespace   an older Service of another namespace has the address
  NotAllowed              a policy does not allow the address, or nothing allows one that the annotation
                          egress-ip alone names; MESSAGE names the policy
  AddressInCluster        the address lies in a cluster CIDR or a service CIDR
  NodeAddress             the address is a node's primary address
  APIServerAddress        the address is an API server's
  InvalidAddress          packets cannot come from the address
  InvalidAnnotation       the Service's annotation cannot be understood
  InvalidProtocol         a port of the Service is neither TCP, UDP nor SCTP
  NoClusterCIDR           no cluster CIDR of the IP family is known
  NoProxier               no proxier of the IP family runs on this node
  BoundByOlderService     an older Service gives the pod another egress IP, or one of another
                          namespace binds it
  EndpointOutsideCluster  the endpoint is a node's address, or in no cluster CIDR
  PodOfOtherNamespace     the endpoint is a pod of another namespace
  AddressOfOtherPod       the endpoint names a pod that does not have the address (any more)
  AddressNotChosen        the Service has several egress IPs, and the pod's node has not said
                          which one it chose

-o wide adds FIELD (the field of the Service that has the
egress IP), OWNER (the oldest Service that has the egress IP), POD and NODE.

With --watch each further line is a row that was ADDED, MODIFIED or DELETED. JSON prints one
document per line, YAML separates documents by "---". A document has

  node        the node's name
  ready       whether the node has written all of its rules since it started
  problems    the reasons for which the kernel may not have the planned rules
  steering    how packets get to the nodes that have their egress IPs: off, vxlan or direct
              (omitted if the node's version does not know of steering)
  refusals    service {namespace, name}, egressIP, field, owner {namespace, name},
              podIP, protocol, pod {namespace, name}, node, reason, message
              (egressIP is omitted if it is unreadable or one of several, podIP and protocol if all are
              refused, owner if the address has none, pod and node if unknown)`

const egressRefusedExample = `  # All refusals with their reasons
  openshift egress refused

  # The number of refusals by reason
  openshift egress refused -o json | jq '.refusals | group_by(.reason)[] | {(.[0].reason): length}' `

// listedRefusal is a row.
type listedRefusal struct {
	Service  plan.Service  `json:"service"`
	EgressIP netip.Addr    `json:"egressIP,omitzero"`
	Field    string        `json:"field"`
	Owner    plan.Service  `json:"owner,omitzero"`
	PodIP    netip.Addr    `json:"podIP,omitzero"`
	Protocol plan.Protocol `json:"protocol,omitempty"`
	Pod      plan.Pod      `json:"pod,omitzero"`
	Node     string        `json:"node,omitempty"`
	Reason   plan.Reason   `json:"reason"`
	Message  string        `json:"message"`
}

// refusalList is the JSON and YAML document.
type refusalList struct {
	standing
	Refusals []listedRefusal `json:"refusals"`
}

func newEgressRefusedCommand(o *egressOptions) *cobra.Command {
	return refusalListing.command(o, "refused", "List the refused claims of Services, with the reasons", egressRefusedLong, egressRefusedExample, true)
}

var refusalListing = listing[listedRefusal]{
	columns: []column[listedRefusal]{
		{"SERVICE", false, func(r listedRefusal, _ time.Time) string { return r.Service.String() }},
		{"EGRESS IP", false, func(r listedRefusal, _ time.Time) string {
			if r.PodIP.IsValid() {
				return addrOr(r.EgressIP, "<several>")
			}
			return addrOr(r.EgressIP, "<unreadable>")
		}},
		{"POD IP", false, func(r listedRefusal, _ time.Time) string { return addrOr(r.PodIP, "<all>") }},
		{"PROTOCOL", false, func(r listedRefusal, _ time.Time) string {
			if r.Protocol == "" {
				return "<all>"
			}
			return string(r.Protocol)
		}},
		{"FIELD", true, func(r listedRefusal, _ time.Time) string { return orNone(r.Field) }},
		{"OWNER", true, func(r listedRefusal, _ time.Time) string { return serviceOrNone(r.Owner) }},
		{"POD", true, func(r listedRefusal, _ time.Time) string { return orNone(r.Pod.String()) }},
		{"NODE", true, func(r listedRefusal, _ time.Time) string { return orNone(r.Node) }},
		{"REASON", false, func(r listedRefusal, _ time.Time) string { return string(r.Reason) }},
		{"MESSAGE", false, func(r listedRefusal, _ time.Time) string { return r.Message }},
	},
	empty:       always("nothing is refused"),
	rows:        refusalsOf,
	key:         func(r listedRefusal) any { return r.refusal() },
	namespaceOf: func(r listedRefusal) string { return r.Service.Namespace },
	document:    func(s standing, rows []listedRefusal) any { return refusalList{s, append([]listedRefusal{}, rows...)} },
}

// refusalsOf returns the rows for those of s.
func refusalsOf(_, s status.Snapshot) []listedRefusal {
	var result []listedRefusal
	for i, e := range explainers(s) {
		for _, r := range s.Families[i].Plan.Refusals {
			row := listedRefusal{
				Service: r.Service, EgressIP: r.EgressIP, Field: e.Field(r.Service), Owner: e.Owner(r.EgressIP),
				PodIP: r.Pod, Protocol: r.Protocol, Reason: r.Reason, Message: r.Message,
			}
			if endpoint, ok := e.Endpoint(r.Service, r.Pod); ok {
				row.Pod, row.Node = endpoint.Pod, endpoint.Node
			}
			result = append(result, row)
		}
	}
	slices.SortStableFunc(result, func(a, b listedRefusal) int { return plan.CompareRefusals(a.refusal(), b.refusal()) })
	// What cannot be read of a Service with both IP families is refused in both.
	return slices.CompactFunc(result, func(a, b listedRefusal) bool { return a.refusal() == b.refusal() })
}

// refusal returns the plan's part of a row.
func (r listedRefusal) refusal() plan.Refusal {
	return plan.Refusal{Service: r.Service, EgressIP: r.EgressIP, Pod: r.PodIP, Protocol: r.Protocol, Reason: r.Reason, Message: r.Message}
}

// serviceOrNone returns the name of a Service, or <none> for the zero Service.
func serviceOrNone(s plan.Service) string {
	if s == (plan.Service{}) {
		return orNone("")
	}
	return s.String()
}

// addrOr returns the text of an address, or without if it is invalid.
func addrOr(ip netip.Addr, without string) string {
	if !ip.IsValid() {
		return without
	}
	return ip.String()
}
