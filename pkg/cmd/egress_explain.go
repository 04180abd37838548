package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

const egressExplainLong = `Explains the source address of the first packet of a pod's new connection: which Service
gives the pod an egress IP, or why none does, where the destination is, which node has the
egress IP, which rules match, and the way of the packet: the node that it is sent to, and the
address from which it leaves. Existing connections keep the address of their first packet.

Without --protocol there is an answer for each protocol that Services claim for the pod,
and one for all other protocols, such as ICMP. Without DESTINATION the packet goes to a host
outside of the cluster.

For NAMESPACE/SERVICE it explains whether the claim is granted, which namespace has the
egress IP, and the result for each endpoint. -o wide adds columns, and prints all refusals
instead of the first ones.

A JSON or YAML document has

  node, ready, problems, steering
              as in 'openshift egress list --help'
  pod         ip, family, and the endpoints that Services' EndpointSlices have for it:
              addr, pod {namespace, name}, node
  decisions   pod, protocol, destination, outcome, leavesAs, binding {pod, protocol,
              egressIP, service}, field, owner {namespace, name}, alternatives (all egress
              IPs of the Service, if it has several), refusals, because,
              to {addr, kind, cidr, node, service, excluded}, here (whether this node
              writes the rules of the binding), via {way, node} as in 'openshift egress
              list --help' (omitted if this node does not write the rules, or the packet
              is Unchanged), ports {first, last, shared} (the source ports that the pod has of
              the egress IP, if it has some), fastPath (whether the established flow takes the fast path of
              this node; omitted without one, and where via is), rules {chain, rule} of
              iptables or {table, rule, element} of nftables

or, for a Service,

  service     namespace, name
  claims      one for each egress IP: family, service, created, egressIP, field,
              loadBalancer, annotated, protocols, refusal, owner {namespace, name}, and
              endpoints: endpoint, decision (as above), refusal

An outcome is EgressIP (the packet leaves from the address in leavesAs, unless via drops it),
Unchanged (egress SNAT does not change it) or EndpointDecides (the destination is a Service's,
and the proxier replaces it by an endpoint).`

const egressExplainExample = `  # The source address of a pod's packets to the outside
  openshift egress explain 10.128.0.11

  # That of its pings to one host there
  openshift egress explain 10.128.0.11 198.51.100.7 --protocol=icmp

  # Why the pods of a Service do not leave from its external IP
  openshift egress explain shop/web`

type explainOptions struct {
	*egressOptions
	protocol string

	// From the arguments.
	pod         netip.Addr
	service     plan.Service
	destination netip.Addr
	only        plan.Protocol // zero for all
}

func newEgressExplainCommand(common *egressOptions) *cobra.Command {
	o := &explainOptions{egressOptions: common}
	c := &cobra.Command{
		Use:     "explain POD-IP|NAMESPACE/SERVICE [DESTINATION]",
		Short:   "Explain the source address of a pod's packets, or the claim of a Service",
		Long:    egressExplainLong,
		Example: egressExplainExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return errors.New("expected the IP address of a pod or NAMESPACE/SERVICE, and optionally the IP address of the destination")
			}
			return nil
		},
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return o.complete(c.Context(), explainable)
		},
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args) },
	}
	o.addOutput(c)
	c.Flags().StringVar(&o.protocol, "protocol", "", "The packet's IP protocol: tcp, udp, sctp, icmp, another name, or a number.")
	complete(c, "protocol", cobra.FixedCompletions([]string{"tcp", "udp", "sctp", "icmp", "ipv6-icmp"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (o *explainOptions) run(c *cobra.Command, args []string) error {
	if err := errors.Join(o.checkOutput(), o.parse(args)); err != nil {
		return err
	}
	snapshot, err := o.snapshot(c.Context())
	if err != nil {
		return err
	}
	if len(snapshot.Families) == 0 {
		return errors.New(strings.Join(append([]string{"the node has no plan yet"}, snapshot.Problems()...), "\n"))
	}
	now := standingOf(snapshot)
	if err := errors.Join(tellLeftOut(c.ErrOrStderr(), now.LeftOut), warn(c.ErrOrStderr(), slices.Concat(now.Problems, unwritten(snapshot)))); err != nil {
		return err
	}
	explain := o.explainService
	if o.pod.IsValid() {
		explain = o.explainPod
	}
	return cmp.Or(explain(c.OutOrStdout(), snapshot, now), incomplete(now.LeftOut))
}

// unwritten returns a warning for each IP family whose plan is not in the kernel yet, unless
// another warning covers that.
func unwritten(s status.Snapshot) []string {
	var result []string
	for _, f := range s.Families {
		if s.Ready && !f.Written && !f.Input.NoProxier && f.Error == "" {
			result = append(result, f.Family+": the latest changes are not in effect yet")
		}
	}
	return result
}

// parse parses the arguments and --protocol.
func (o *explainOptions) parse(args []string) error {
	var err error
	first := args[0]
	if o.desk != nil {
		first = o.desk.qualify(first)
	}
	if namespace, name, isService := strings.Cut(first, "/"); isService {
		if namespace == "" || name == "" || strings.Contains(name, "/") {
			return fmt.Errorf("%q is neither a pod's IP address nor NAMESPACE/SERVICE", args[0])
		}
		o.service = plan.Service{Namespace: namespace, Name: name}
	} else if o.pod, err = parseAddr(first); err != nil {
		return fmt.Errorf("%q is neither a pod's IP address nor NAMESPACE/SERVICE: %w", args[0], err)
	}
	if len(args) > 1 {
		if o.destination, err = parseAddr(args[1]); err != nil {
			return fmt.Errorf("the destination %q: %w", args[1], err)
		}
	}
	if o.pod.IsValid() && o.destination.IsValid() && o.pod.Is4() != o.destination.Is4() {
		return fmt.Errorf("%s and %s are of different IP families", o.pod, o.destination)
	}
	o.only, err = parseProtocol(o.protocol)
	return err
}

// parseAddr parses an IP address that a packet in the cluster can have.
func parseAddr(text string) (netip.Addr, error) {
	ip, err := netip.ParseAddr(text)
	switch {
	case err != nil:
		return netip.Addr{}, errors.New("not an IP address")
	case ip.Zone() != "":
		return netip.Addr{}, errors.New("an address with a zone is valid on one link only; remove the zone")
	}
	return ip.Unmap(), nil
}

// protocolNumbers are the IP protocols that --protocol accepts by name (IANA, Assigned Internet
// Protocol Numbers).
var protocolNumbers = map[string]int{
	"icmp": 1, "igmp": 2, "ipencap": 4, "tcp": 6, "egp": 8, "udp": 17, "dccp": 33, "ipv6": 41, "rsvp": 46, "gre": 47, "esp": 50,
	"ah": 51, "ipv6-icmp": 58, "ospf": 89, "ipip": 94, "pim": 103, "vrrp": 112, "l2tp": 115, "sctp": 132, "udplite": 136,
}

// parseProtocol parses the name or number of an IP protocol.
func parseProtocol(text string) (plan.Protocol, error) {
	name := strings.ToLower(text)
	if name == "icmpv6" || name == "icmp6" {
		name = "ipv6-icmp"
	}
	if _, known := protocolNumbers[name]; known || name == "" || name == string(plan.OtherProtocols) {
		return plan.Protocol(name), nil
	}
	number, err := strconv.ParseUint(name, 10, 8)
	if err != nil {
		return "", fmt.Errorf("--protocol: invalid value %q: expected the name of an IP protocol, such as tcp, udp, sctp or icmp, or a number from 0 to 255", text)
	}
	for name, n := range protocolNumbers {
		if n == int(number) {
			return plan.Protocol(name), nil
		}
	}
	return plan.Protocol(name), nil
}

// rule is a rule that a packet matches.
type rule struct {
	// Chain is set for iptables. Table and Element, the matching element of a map, are set for
	// nftables.
	Chain   string `json:"chain,omitempty"`
	Table   string `json:"table,omitempty"`
	Rule    string `json:"rule"`
	Element string `json:"element,omitempty"`
}

func (r rule) String() string {
	if r.Table != "" {
		return fmt.Sprintf("table %s: %s, with { %s }", r.Table, r.Rule, r.Element)
	}
	return "-A " + r.Chain + " " + r.Rule
}

// decision is the plan's decision about a packet, with the rules that it matches.
type decision struct {
	plan.Decision
	// Here: this node writes the rules of the binding. It is nil if no node was asked.
	Here *bool `json:"here,omitempty"`
	// Via is zero if another node writes them, or if egress SNAT does not change the packet.
	Via via `json:"via,omitzero"`
	// Ports are the source ports that the pod has of the egress IP; none without port blocks, or if egress SNAT does not change the packet.
	Ports []listedPorts `json:"ports,omitempty"`
	// FastPath tells whether the flow takes the fast path of this node when it is established. It is nil if the node has none, or another
	// one decides.
	FastPath *bool `json:"fastPath,omitempty"`
	// Rules are those of source NAT. They do not see packets that are sent to another node, or dropped. They are nil if no
	// node was asked.
	Rules []rule `json:"rules,omitzero"`

	// podNode is the node that the pod runs on, by name.
	podNode string
	// held is where the egress IP is; nil if this node does not know, or if egress SNAT does not change
	// the packet.
	held *status.Address
	// others are where the Service's further egress IPs are, and zones those of nodes, by name, if it has several.
	others []status.Address
	zones  map[string]string
}

// explainedPod is the JSON and YAML document about a pod.
type explainedPod struct {
	standing
	Pod struct {
		IP        netip.Addr      `json:"ip"`
		Family    string          `json:"family"`
		Endpoints []plan.Endpoint `json:"endpoints"`
	} `json:"pod"`
	Decisions []decision `json:"decisions"`
}

func (o *explainOptions) explainPod(out io.Writer, s status.Snapshot, now standing) error {
	name := string(kernel.FamilyOf(o.pod))
	i := slices.IndexFunc(s.Families, func(f status.Family) bool { return f.Family == name })
	if i < 0 {
		return fmt.Errorf("the node has no %s plan, which would include %s", name, o.pod)
	}
	family := s.Families[i]
	whole := family
	if !s.FromAPI {
		whole = family.OfCluster()
	}
	e := plan.NewExplainer(family.Input, whole.Plan)
	result := explainedPod{standing: now, Decisions: []decision{}}
	result.Pod.IP, result.Pod.Family = o.pod, name
	result.Pod.Endpoints = append([]plan.Endpoint{}, e.Endpoints(o.pod)...)
	protocols := e.Protocols(o.pod)
	if o.only != "" {
		protocols = []plan.Protocol{o.only}
	}
	trace, known := tracer(s, family), knownBy(s)
	for _, protocol := range protocols {
		d := decision{Decision: e.Explain(plan.Packet{Pod: o.pod, Protocol: protocol, Destination: o.destination}), podNode: s.Node}
		here := d.Binding != nil && family.Has(*d.Binding)
		if !s.FromAPI {
			d.Here, d.Rules = &here, matched(trace, d.Packet)
		}
		if d.Binding != nil {
			d.route(e, known, here)
			d.findFastPath(s.FastPath)
			if d.Outcome != plan.Unchanged {
				d.Ports = portsOf(s, d.Pod, d.Binding.EgressIP)
			}
			d.zones = family.Input.Zones()
		}
		result.Decisions = append(result.Decisions, d)
	}
	if o.output == asJSON || o.output == asYAML {
		return printDocument(out, result, o.output, false, true)
	}
	_, err := io.WriteString(out, describePod(result, o.output == asWide))
	return err
}

// route adds the way that a bound pod's packet takes, from the pod's node on.
func (d *decision) route(e *plan.Explainer, known addresses, here bool) {
	if endpoint, _ := e.Endpoint(d.Binding.Service, d.Pod); endpoint.Node != "" {
		d.podNode = endpoint.Node
	}
	if d.Outcome == plan.Unchanged {
		return
	}
	if here {
		d.Via = known.via(d.Binding.EgressIP, d.podNode)
	}
	d.held = known.of[d.Binding.EgressIP]
	for _, ip := range d.Alternatives {
		if at := known.of[ip]; at != nil && ip != d.Binding.EgressIP {
			d.others = append(d.others, *at)
		}
	}
}

// findFastPath adds whether the flow of a packet that needs an egress IP takes the fast path.
func (d *decision) findFastPath(fast *status.FastPath) {
	if fast == nil || d.Via == (via{}) {
		return
	}
	taken := slices.Contains(fast.Pods[d.Pod], d.Protocol) && (d.Via.Way == wayHere || d.Via.Way == string(kernel.ToNode))
	d.FastPath = &taken
}

// tracer returns a function that returns the rules that a packet matches in the node's back end.
func tracer(s status.Snapshot, family status.Family) func(iptables.Packet) []rule {
	desired := family.Plan.Desired()
	switch family.NFTable {
	case steering.Table:
		desired.Steering.Blocks = blocksOf(s)
		return inTable(family.NFTable, steering.NewTracer(kernel.Family(family.Family), desired))
	case steering.LocalTable:
		return inTable(family.NFTable, steering.NewLocalTracer(kernel.Family(family.Family), desired))
	}
	rules := iptables.Render(desired)
	return func(p iptables.Packet) []rule {
		result := []rule{}
		steps, _ := rules.Trace(p)
		for _, step := range steps {
			result = append(result, rule{Chain: step.Chain, Rule: step.Rule})
		}
		return result
	}
}

// inTable returns a function that returns the rule of a table that a packet matches; nothing if there is none.
func inTable(table string, tracer steering.Tracer) func(iptables.Packet) []rule {
	return func(p iptables.Packet) []rule {
		step, _ := tracer.Trace(steering.Packet(p))
		if step.Rule == "" {
			return []rule{}
		}
		return []rule{{Table: table, Rule: step.Rule, Element: step.Element}}
	}
}

// blocksOf returns the source ports that pods have for themselves, as far as a node knows.
func blocksOf(s status.Snapshot) []kernel.Block {
	blocks := slices.Clone(s.PortMap)
	for _, a := range s.PortBlocks {
		if b := (kernel.Block{Pod: a.Pod.IP, EgressIP: a.EgressIP, Ports: a.Ports, Second: a.Second}); !a.Shared && !slices.Contains(blocks, b) {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// matched returns the rules that a packet matches if the proxier does not replace its destination.
func matched(trace func(iptables.Packet) []rule, packet plan.Packet) []rule {
	p := iptables.Packet{Source: packet.Pod, Destination: packet.Destination, Protocol: packet.Protocol}
	if !slices.Contains([]plan.Protocol{plan.TCP, plan.UDP, plan.SCTP}, p.Protocol) {
		p.Protocol = plan.All // stands for any other protocol in rules
	}
	return trace(p)
}

// claimOfFamily is a Service's claim in one IP family.
type claimOfFamily struct {
	Family string `json:"family"`
	plan.ClaimState

	// held is where the egress IP is; nil if this node does not know.
	held *status.Address
	// others is how many endpoints leave with the protocol that was asked for as if there were no such claim.
	others int
}

// explainedService is the JSON and YAML document about a Service.
type explainedService struct {
	standing
	Service plan.Service    `json:"service"`
	Claims  []claimOfFamily `json:"claims"`
}

func (o *explainOptions) explainService(out io.Writer, s status.Snapshot, now standing) error {
	result := explainedService{standing: now, Service: o.service, Claims: []claimOfFamily{}}
	elsewhere, known := "", knownBy(s)
	for i, e := range explainers(ofCluster(s)) {
		family, states := s.Families[i].Family, e.ExplainService(o.service, o.destination)
		if len(states) > 0 && o.destination.IsValid() && o.destination.Is4() != (family == "IPv4") {
			elsewhere = family
			continue
		}
		for _, state := range states {
			all := len(state.Endpoints)
			state.Endpoints = slices.DeleteFunc(state.Endpoints, func(e plan.EndpointState) bool {
				return o.only != "" && e.Decision.Protocol != o.only && e.Decision.Protocol != plan.All
			})
			others := 0
			if len(state.Endpoints) == 0 {
				others = all
			}
			result.Claims = append(result.Claims, claimOfFamily{family, state, known.of[state.EgressIP], others})
		}
	}
	switch {
	case len(result.Claims) == 0 && elsewhere != "":
		return fmt.Errorf("the Service %s claims an egress IP for %s only, and %s is of the other IP family", o.service, elsewhere, o.destination)
	case len(result.Claims) == 0:
		who := "the node has"
		if s.FromAPI {
			who = "there is"
		}
		unread := ""
		if now.partly {
			unread = ", or it is in a namespace that could not be read: give that with -n to read it alone"
		}
		return fmt.Errorf("%s no claim of the Service %s: it does not exist, or it has no external IPs and no annotation network.openshift.io/egress-ip, or its annotation network.openshift.io/egress-snat is \"false\", or it is headless without the annotation egress-ip, or of type ExternalName, or it has the label service.kubernetes.io/service-proxy-name%s", asFarAsRead(who, now.LeftOut), o.service, unread)
	case o.output == asJSON || o.output == asYAML:
		return printDocument(out, result, o.output, false, true)
	}
	return describeService(out, result, o.output == asWide)
}
