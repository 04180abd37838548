package cmd

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/status"
)

const egressListLong = `Lists the bindings that this node writes: one row for each pod and the egress IP that a
Service gives it, sorted by address. --all lists those of the whole cluster.

VIA is where the packets get the egress IP:

  here        on this node: it has the address, or no node has it, or steering is off
  NAME        on the node of this name, which has the address: this node sends them there
  <dropped>   nowhere: they are dropped; 'openshift egress explain' says why
  -           unknown: another node writes the row, and decides for itself

NODE is the pod's node according to its EndpointSlice. AGE is the time since this node
process wrote the last part of the row to the kernel, <pending> before that, or
<elsewhere> if another node writes it. -o wide adds POD, FIELD (the field of the Service
that has the egress IP), OWNER (the oldest Service that has the egress IP; only Services
of its namespace may use the address), KNOWN BY (endpointslice, or labels for a pod
that the CNI plugin has attached and that no EndpointSlice names yet) and, with
egress-snat-port-blocks, PORTS (the source ports of the address that only this pod has; or "shared",
which includes pods of this node that started without the CNI plugin).

With --watch each further line is a row that was ADDED, MODIFIED or DELETED. JSON prints one
document per line, YAML separates documents by "---". A document has

  node        the node's name
  ready       whether the node has written all of its rules since it started
  problems    the reasons for which the kernel may not have the planned rules
  steering    how packets get to the nodes that have their egress IPs: off, vxlan or direct
              (omitted if the node's version does not know of steering)
  bindings    podIP, protocols, egressIP, via {way, node}, service {namespace, name},
              field, owner {namespace, name}, pod {namespace, name}, node, here,
              predicted (known by labels alone), ports {first, last, shared}, since
              (pod, node, predicted, ports and since are omitted if unknown; here tells whether
              this node writes the rules, and via is omitted if not)

The way of the packets is "here", "to node" (to the one in via), "blackhole" (they are dropped in
silence, for the moment in which another node may take the address) or "prohibit" (they are
dropped, and the pod is told at once).`

const egressListExample = `  # All pods with an egress IP
  openshift egress list

  # The pods of the namespace shop, with their names
  openshift egress list -n shop -o wide

  # The egress IP of a pod
  openshift egress list -o json | jq -r '.bindings[] | select(.podIP == "10.128.0.11").egressIP'

  # Those of the whole cluster, with their nodes
  openshift egress list --all

  # All pods with an egress IP, then each change
  openshift egress list -w`

// listedBinding is a row: the bindings of a pod to an egress IP by one Service.
type listedBinding struct {
	PodIP     netip.Addr      `json:"podIP"`
	Protocols []plan.Protocol `json:"protocols"`
	EgressIP  netip.Addr      `json:"egressIP"`
	// Via is zero if another node writes it.
	Via     via          `json:"via,omitzero"`
	Service plan.Service `json:"service"`
	Field   string       `json:"field"`
	Owner   plan.Service `json:"owner"`
	Pod     plan.Pod     `json:"pod,omitzero"`
	Node    string       `json:"node,omitempty"`
	// Here: this node writes it. It is nil if no node was asked.
	Here *bool `json:"here,omitempty"`
	// Predicted: the Service selects the pod, which no EndpointSlice names yet.
	Predicted bool `json:"predicted,omitempty"`
	// Ports are the source ports that the pod has of the egress IP; none without port blocks.
	Ports []listedPorts `json:"ports,omitempty"`
	// Since is zero until all of the row's bindings are written.
	Since time.Time `json:"since,omitzero"`
}

// bindingList is the JSON and YAML document.
type bindingList struct {
	standing
	Bindings []listedBinding `json:"bindings"`
}

func newEgressListCommand(o *egressOptions) *cobra.Command {
	return bindingListing.command(o, "list", "List pods and their egress IPs", egressListLong, egressListExample, true)
}

var bindingListing = listing[listedBinding]{
	columns: []column[listedBinding]{
		{"POD IP", false, func(b listedBinding, _ time.Time) string { return b.PodIP.String() }},
		{"PROTOCOLS", false, func(b listedBinding, _ time.Time) string { return plan.JoinProtocols(b.Protocols) }},
		{"EGRESS IP", false, func(b listedBinding, _ time.Time) string { return b.EgressIP.String() }},
		{"VIA", false, func(b listedBinding, _ time.Time) string { return b.Via.String() }},
		{"SERVICE", false, func(b listedBinding, _ time.Time) string { return b.Service.String() }},
		{"NODE", false, func(b listedBinding, _ time.Time) string { return orNone(b.Node) }},
		{"AGE", false, func(b listedBinding, now time.Time) string {
			switch {
			case b.Here == nil || !*b.Here:
				return "<elsewhere>"
			case b.Since.IsZero():
				return "<pending>"
			}
			return age(b.Since, now)
		}},
		{"POD", true, func(b listedBinding, _ time.Time) string { return orNone(b.Pod.String()) }},
		{"FIELD", true, func(b listedBinding, _ time.Time) string { return orNone(b.Field) }},
		{"OWNER", true, func(b listedBinding, _ time.Time) string { return b.Owner.String() }},
		{"KNOWN BY", true, func(b listedBinding, _ time.Time) string {
			if b.Predicted {
				return "labels"
			}
			return "endpointslice"
		}},
		{"PORTS", true, func(b listedBinding, _ time.Time) string { return joinListed(b.Ports) }},
	},
	ofNodes: []string{"AGE", "KNOWN BY", "PORTS"},
	empty:   always("no pod is bound to an egress IP"),
	rows:    bindingsOf,
	key: func(b listedBinding) any {
		return struct {
			pod, egressIP netip.Addr
			service       plan.Service
		}{b.PodIP, b.EgressIP, b.Service}
	},
	namespaceOf: func(b listedBinding) string { return b.Service.Namespace },
	document:    func(s standing, rows []listedBinding) any { return bindingList{s, append([]listedBinding{}, rows...)} },
}

// bindingsOf returns the rows for those of wanted.
func bindingsOf(node, wanted status.Snapshot) []listedBinding {
	var result []listedBinding
	known := knownBy(node)
	for i, e := range explainers(wanted) {
		f := wanted.Families[i]
		for j, b := range f.Plan.Bindings {
			row := listBinding(e, b, f.SinceOf(j))
			here := node.Families[i].Has(b)
			if !node.FromAPI {
				row.Here = &here
			}
			if here {
				row.Via = known.via(b.EgressIP, row.Node)
			}
			row.Ports = portsOf(node, b.Pod, b.EgressIP)
			result = append(result, row)
		}
	}
	slices.SortStableFunc(result, compareListed)
	merged := result[:0]
	for _, b := range result {
		if last := len(merged) - 1; last >= 0 && compareListed(merged[last], b) == 0 {
			merged[last].Protocols = append(merged[last].Protocols, b.Protocols...)
			if b.Since.IsZero() || !merged[last].Since.IsZero() && b.Since.After(merged[last].Since) {
				merged[last].Since = b.Since
			}
			continue
		}
		merged = append(merged, b)
	}
	return merged
}

func listBinding(e *plan.Explainer, b plan.Binding, since time.Time) listedBinding {
	endpoint, _ := e.Endpoint(b.Service, b.Pod)
	return listedBinding{
		PodIP:     b.Pod,
		Protocols: []plan.Protocol{b.Protocol},
		EgressIP:  b.EgressIP,
		Service:   b.Service,
		Field:     e.Field(b.Service),
		Owner:     e.Owner(b.EgressIP),
		Pod:       endpoint.Pod,
		Node:      endpoint.Node,
		Predicted: e.Predicted(b.Service, b.Pod),
		Since:     since,
	}
}

func compareListed(a, b listedBinding) int {
	return cmp.Or(
		a.PodIP.Compare(b.PodIP),
		a.EgressIP.Compare(b.EgressIP),
		cmp.Compare(a.Service.Namespace, b.Service.Namespace),
		cmp.Compare(a.Service.Name, b.Service.Name),
	)
}
