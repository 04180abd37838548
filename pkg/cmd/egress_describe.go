package cmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// mostRefusals is the number of refusals of a packet that are printed without -o wide.
const mostRefusals = 3

// describePod returns the text about the packets of a pod.
func describePod(pod explainedPod, wide bool) string {
	var out strings.Builder
	found := entries(pod.Pod.Endpoints)
	if len(pod.Pod.Endpoints) == 0 && pod.partly {
		found = " (of no EndpointSlice that could be read; give the pod's namespace with -n to read those of that alone)"
	}
	fmt.Fprintf(&out, "Pod %s%s\n", pod.Pod.IP, found)
	for _, d := range pod.Decisions {
		out.WriteString("\n" + string(d.Protocol))
		if d.Destination.IsValid() {
			out.WriteString(" to " + d.Destination.String())
		}
		out.WriteString("\n")
		describeDecision(&out, d, pod.standing, wide)
	}
	return out.String()
}

// entries returns the pods and nodes that EndpointSlices have for an address, in parentheses.
func entries(endpoints []plan.Endpoint) string {
	var texts []string
	for _, e := range endpoints {
		text := e.Pod.String()
		if e.Node != "" {
			text = strings.TrimSpace(text + " on " + e.Node)
		}
		if text != "" {
			texts = append(texts, kernel.Printable(text))
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return " (" + strings.Join(texts, ", ") + ")"
}

func describeDecision(out *strings.Builder, d decision, now standing, wide bool) {
	line := func(label, text string) { fmt.Fprintf(out, "  %-13s %s\n", label, kernel.Printable(text)) }
	if d.Binding != nil {
		line("Bound:", d.Because)
		describeRefusals(line, d.Refusals, wide)
	} else {
		line("Not bound:", asFarAsRead(d.Because, now.LeftOut))
	}
	if d.To != nil {
		line("Destination:", d.To.String())
	}
	if d.held != nil {
		line("Egress IP:", describeAddress(*d.held, now))
	}
	for _, p := range d.Ports {
		if p.Shared {
			line("Source ports:", p.String()+", which it shares with other pods")
		} else {
			line("Source ports:", p.String()+", which it alone has; 'openshift egress who' names the pod by one of them")
		}
	}
	describeChoice(line, d)
	if d.Binding != nil && d.Outcome != plan.Unchanged {
		for _, fault := range faultsOf(now.faults, string(kernel.FamilyOf(d.Pod))) {
			line("Steering:", fault)
		}
	}
	if d.FastPath != nil {
		line("Fast path:", fastText(d, now))
	}
	label := "Rules:"
	if d.Outcome == plan.EndpointDecides || d.isHere() && d.held != nil && d.held.Way != wayHere {
		label = "If not sent:" // if neither the proxier nor steering sends the packet elsewhere
	}
	if d.Binding != nil && d.Here != nil && !*d.Here {
		line(label, "none on this node; the node that the pod runs on has them")
	}
	for _, r := range d.Rules {
		line(label, r.String())
		label = ""
	}
	fmt.Fprintf(out, "  This packet would %s.\n", kernel.Printable(fate(d, now)))
}

// fastText says whether a flow takes the fast path, and why not.
func fastText(d decision, now standing) string {
	switch {
	case *d.FastPath:
		return "taken, from when the flow is established; its first packets pass all rules"
	case d.Protocol != plan.TCP && d.Protocol != plan.UDP:
		return "not taken: it is for TCP and UDP"
	case d.Via.Way == wayHere && !now.fast.All:
		return "not taken: bound pods' flows take it only if they leave by another node (egress-snat-fast-path is steered)"
	case d.Via.Way == wayHere || d.Via.Way == string(kernel.ToNode):
		return "not taken; 'openshift egress verify' on the node may say why"
	}
	return "not taken: the packet goes nowhere"
}

// describeChoice prints how the egress IPs of a Service with several compare for the pod's node, as things stand now.
func describeChoice(line func(label, text string), d decision) {
	if d.held == nil || len(d.others) == 0 {
		return
	}
	label := "Choice:"
	for _, a := range append([]status.Address{*d.held}, d.others...) {
		text := a.IP.String() + ", " + standingOfAlternative(a, d)
		if a.IP == d.Binding.EgressIP {
			text += "; the pod keeps it as long as the Service has it"
		}
		line(label, text)
		label = ""
	}
	line("", "For a new pod, its node chooses an egress IP that is in the pod's zone, else one that any node has; of several, the pod's UID decides.")
}

// standingOfAlternative says what counts for an egress IP when a node chooses.
func standingOfAlternative(a status.Address, d decision) string {
	zone, of := d.zones[d.podNode], d.zones[a.Holder]
	switch {
	case a.State == stateUnclaimed:
		return "which no node has"
	case a.State == stateLost:
		return "lost with " + a.Holder
	case zone != "" && of == zone:
		return fmt.Sprintf("on %s in the pod's zone %s", a.Holder, zone)
	case of != "":
		return fmt.Sprintf("on %s in the zone %s", a.Holder, of)
	}
	return "on " + a.Holder
}

func (d decision) isHere() bool { return d.Here != nil && *d.Here }

// describeRefusals prints the refused claims on a bound pod.
func describeRefusals(line func(label, text string), refusals []plan.Refusal, wide bool) {
	for i, r := range refusals {
		if i == mostRefusals && !wide {
			line("", fmt.Sprintf("… and %d more: use -o wide", len(refusals)-i))
			return
		}
		label := "Refused:"
		if i > 0 {
			label = ""
		}
		line(label, fmt.Sprintf("the claim of the Service %s (%s): %s", r.Service, r.Reason, r.Message))
	}
}

const (
	asPluginDecides = "leave as the network plugin decides, usually as the node's address"
	unchanged       = "be unchanged by egress SNAT"
)

// fate completes the sentence "This packet would …".
func fate(d decision, now standing) string {
	switch {
	case d.Outcome == plan.EgressIP:
		return exit(d, now)
	case d.Outcome == plan.EndpointDecides && d.To.Kind == plan.ExternalIP && d.LeavesAs.IsValid():
		return "go to an endpoint if it is for a port of the Service, unchanged if that endpoint is inside the cluster. Otherwise it would " + exit(d, now)
	case d.Outcome == plan.EndpointDecides:
		return "go to an endpoint, unchanged if that is inside the cluster. Otherwise it would " + exit(d, now)
	case d.To == nil || d.To.Kind == plan.Outside:
		return asPluginDecides
	case d.To.Kind == plan.InClusterCIDR:
		return unchanged + ", and usually keep the pod's own address"
	}
	return unchanged
}

// exit completes the sentence "This packet would …" for a packet that needs an egress IP.
func exit(d decision, now standing) string {
	leave := "leave as " + d.Binding.EgressIP.String()
	if d.held == nil {
		return leave
	}
	switch a := *d.held; {
	case a.Way == string(kernel.Blackhole):
		return "be dropped in silence for five seconds, and be refused after that, because " + whyDropped(a)
	case a.Way == string(kernel.Prohibit):
		return "be refused, because " + whyDropped(a)
	case a.State == stateUnclaimed || a.Holder == d.podNode:
		return leave
	default:
		hop := fmt.Sprintf("leave %s %s to %s, which SNATs it to %s", nodeName(d.podNode, now), transport(now.Steering), nodeName(a.Holder, now), a.IP)
		if len(faultsOf(now.undelivered, string(kernel.FamilyOf(d.Pod)))) > 0 {
			hop += ", or be dropped: see Steering"
		}
		return hop
	}
}

// transport says how packets get to another node.
func transport(how string) string {
	if how == string(steering.Direct) {
		return "directly"
	}
	return "by steer0"
}

// describeService prints the text about the claims of a Service.
func describeService(out io.Writer, s explainedService, wide bool) error {
	var text strings.Builder
	fmt.Fprintf(&text, "Service %s\n", s.Service)
	for _, claim := range s.Claims {
		fmt.Fprintf(&text, "\n%s: %s\n", claim.Family, kernel.Printable(claimText(claim.ClaimState)))
		describeClaim(&text, claim.ClaimState)
		if claim.held != nil {
			fmt.Fprintf(&text, "  Egress IP: %s\n", kernel.Printable(describeAddress(*claim.held, s.standing)))
		}
		if claim.others > 0 {
			fmt.Fprintln(&text, "  It is not for the protocol that was asked for: ask for an endpoint's address to see how it leaves.")
			continue
		}
		if err := describeEndpoints(&text, claim.Endpoints, wide); err != nil {
			return err
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// describeClaim prints whether a claim is granted, and which namespace has the address.
func describeClaim(out *strings.Builder, c plan.ClaimState) {
	owner := ""
	if c.Owner != (plan.Service{}) {
		owner = fmt.Sprintf("the address belongs to the namespace %s, because its Service %s is the oldest that has it", c.Owner.Namespace, c.Owner)
	}
	switch {
	case c.Refusal == nil:
		fmt.Fprintf(out, "  Granted: %s\n", owner)
	case owner == "" || c.Refusal.Reason == plan.OwnedByOtherNamespace: // its message names the owner
		fmt.Fprintf(out, "  Refused (%s): %s\n", c.Refusal.Reason, kernel.Printable(c.Refusal.Message))
	default:
		fmt.Fprintf(out, "  Refused (%s): %s; %s\n", c.Refusal.Reason, kernel.Printable(c.Refusal.Message), owner)
	}
}

func claimText(c plan.ClaimState) string {
	text := addrOr(c.EgressIP, "unreadable address")
	if c.Field != "" {
		text += " (" + c.Field + ")"
	}
	if len(c.Protocols) > 0 {
		text += " for " + plan.JoinProtocols(c.Protocols)
	}
	return text
}

func describeEndpoints(out io.Writer, endpoints []plan.EndpointState, wide bool) error {
	if len(endpoints) == 0 {
		_, err := fmt.Fprintln(out, "  No endpoints.")
		return err
	}
	if to := endpoints[0].Decision.To; to != nil {
		if _, err := fmt.Fprintf(out, "  The destination %s is %s.\n", to.Addr, kernel.Printable(to.String())); err != nil {
			return err
		}
	}
	header := []string{"POD IP", "PROTOCOL", "LEAVES AS", "GIVEN BY", "POD", "NODE", "REFUSED"}
	if wide {
		header = append(header, "MESSAGE")
	}
	rows := [][]string{header}
	for _, e := range endpoints {
		rows = append(rows, endpointCells(e, wide))
	}
	t := table{out: out, indent: "  "}
	return t.write(rows...)
}

func endpointCells(e plan.EndpointState, wide bool) []string {
	givenBy, reason, message := "", "", ""
	if e.Decision.Binding != nil {
		givenBy = e.Decision.Binding.Service.String()
	}
	if e.Refusal != nil {
		reason, message = string(e.Refusal.Reason), e.Refusal.Message
	}
	cells := []string{
		e.Endpoint.Addr.String(), string(e.Decision.Protocol), leavesAs(e.Decision), orNone(givenBy),
		orNone(e.Endpoint.Pod.String()), orNone(e.Endpoint.Node), orNone(reason),
	}
	if wide {
		cells = append(cells, orNone(message))
	}
	return cells
}

// leavesAs returns the cell for a decision.
func leavesAs(d plan.Decision) string {
	switch d.Outcome {
	case plan.EgressIP:
		return d.LeavesAs.String()
	case plan.EndpointDecides:
		return "<endpoint decides>"
	}
	return "<unchanged>"
}
