package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/origin-node/pkg/egress/journal"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kubeproxy"
)

const egressWhoLong = `Shows which pod has, or had, a source port of an egress IP (proxyArguments.egress-snat-port-blocks): its
namespace, name and UID, its Service, its node, and since and until when.

Without --at it answers for now, and asks the running node. The node knows the ports of its own pods; of other
nodes' pods it knows which pod address has which ports. With --at it reads this node's journal, which covers
this node's pods. With --journal it reads files or folders that were collected from any number of nodes, asks
no node, and needs no root.

A port that pods share does not identify a pod. Then all pods that have it are listed as candidates. Without
--at, if tracked flows use the port, only the pods of these flows are listed (--protocol selects TCP, UDP or
SCTP).

It never guesses. If nobody had the port, or if the journals do not cover that time or contradict each other,
the error says so, and the exit status is 1. If a list of candidates may be incomplete, a warning on standard
error says what is missing.

A JSON or YAML document has

  node, ready, problems, steering
              as in 'openshift egress list --help'
  egressIP, port, protocol, at
              what was asked (protocol is omitted if none was)
  shared      whether the port is one that pods share
  missing     what the candidates may lack
  assignments pod {namespace, name, uid, ip}, service, egressIP, ports {first, last}, shared, node, since
              (omitted if unknown), until (omitted as long as it lasts, or if unknown), seen (until when that is certain), and of a
              tracked flow flows {protocol, destination}`

const egressWhoExample = `  # Which pod has this port now
  openshift egress who 203.0.113.10:40123

  # Which one had it last night, by this node's journal
  openshift egress who 203.0.113.10:40123 --at=2026-11-27T03:12:00Z

  # The same by the collected journals of all nodes
  openshift egress who 203.0.113.10:40123 --at=2026-11-27T03:12:00Z --journal=/srv/journals

  # Of IPv6
  openshift egress who '[2001:db8:113::10]:40123'`

// whoOptions are the flags and arguments of who.
type whoOptions struct {
	*egressOptions
	protocol string
	at       string
	journals []string

	// From the arguments.
	asked netip.AddrPort
	only  plan.Protocol
	// when is zero for now.
	when time.Time
}

func newEgressWhoCommand(common *egressOptions) *cobra.Command {
	o := &whoOptions{egressOptions: common}
	c := &cobra.Command{
		Use:     "who ADDRESS:PORT",
		Short:   "Tell which pod has or had a source port of an egress IP",
		Long:    egressWhoLong,
		Example: egressWhoExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 1 && len(o.journals) == 0 {
				return errors.New("expected an egress IP and a port, such as 203.0.113.10:40123 or [2001:db8:113::10]:40123")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c, args) },
	}
	o.addOutput(c)
	c.Flags().StringVar(&o.protocol, "protocol", "", "The flow's protocol: tcp, udp or sctp. Ports that are not shared belong to one pod in all three.")
	complete(c, "protocol", cobra.FixedCompletions(portProtocols, cobra.ShellCompDirectiveNoFileComp))
	if o.desk == nil {
		c.Use += " [--journal=FILE|FOLDER [FILE…]]"
		c.Flags().StringVar(&o.at, "at", "", "The time, by RFC 3339, such as 2026-11-27T03:12:00Z or 2026-11-27T04:12:00+01:00; now if empty.")
		c.Flags().StringSliceVar(&o.journals, "journal", nil, "Collected journals, or folders with journals. No node is asked. Further arguments are journals, too.")
	}
	return c
}

// portProtocols are those that have ports.
var portProtocols = []string{"tcp", "udp", "sctp"}

// parse parses the arguments.
func (o *whoOptions) parse(args []string) (err error) {
	if err := o.checkOutput(); err != nil {
		return err
	}
	if o.asked, err = netip.ParseAddrPort(args[0]); err != nil || o.asked.Port() == 0 || o.asked.Addr().Zone() != "" {
		return fmt.Errorf("invalid argument %q: expected an egress IP and a port, such as 203.0.113.10:40123 or [2001:db8:113::10]:40123", args[0])
	}
	o.asked = netip.AddrPortFrom(o.asked.Addr().Unmap(), o.asked.Port())
	if o.protocol != "" && !slices.Contains(portProtocols, strings.ToLower(o.protocol)) {
		return fmt.Errorf("--protocol: invalid value %q: expected tcp, udp or sctp, which have ports", o.protocol)
	}
	o.only = plan.Protocol(strings.ToLower(o.protocol))
	if o.at != "" {
		if o.when, err = time.Parse(time.RFC3339Nano, o.at); err != nil {
			return fmt.Errorf("--at: invalid value %q: expected a time such as 2026-11-27T03:12:00Z", o.at)
		}
		if o.when.After(time.Now().Add(time.Minute)) {
			return fmt.Errorf("--at: %s has not come yet", o.at)
		}
	}
	o.journals = append(o.journals, args[1:]...)
	return nil
}

func (o *whoOptions) run(c *cobra.Command, args []string) error {
	if err := o.parse(args); err != nil {
		return err
	}
	answer, err := o.answer(c.Context())
	if err := warn(c.ErrOrStderr(), slices.Concat(answer.Problems, answer.notes, answer.Missing)); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	return cmp.Or(tellLeftOut(c.ErrOrStderr(), answer.LeftOut), answer.print(c.OutOrStdout(), o.output), incomplete(answer.LeftOut))
}

// answer finds out. Also with an error, its warnings are to be told.
func (o *whoOptions) answer(ctx context.Context) (whoAnswer, error) {
	switch {
	case o.desk != nil:
		return o.fromAPI(ctx)
	case len(o.journals) > 0:
		return o.fromJournals(o.journals)
	case !o.when.IsZero():
		return o.fromNodeJournal(ctx)
	}
	snapshot, err := o.snapshot(ctx)
	if err != nil {
		return whoAnswer{}, fmt.Errorf("%w. For an earlier time, ask the journal: use --at=TIME", err)
	}
	return o.fromNode(ctx, snapshot)
}

// fromJournals answers from collected files. Now is the time of the question then.
func (o *whoOptions) fromJournals(paths []string) (answer whoAnswer, err error) {
	at := o.when
	if at.IsZero() {
		at = time.Now()
	}
	answer = o.newAnswer(standing{Problems: []string{}}, at)
	history, problems, err := journal.ReadAll(paths, journal.About(o.asked))
	for _, problem := range problems {
		answer.notes = append(answer.notes, problem.Error())
	}
	if err != nil {
		return answer, err
	}
	found, err := history.Who(o.asked, at)
	if err != nil {
		if o.when.IsZero() {
			err = fmt.Errorf("%w. Give the time with --at=TIME", err)
		}
		return answer, err
	}
	answer.Shared, answer.Missing = found.Shared, found.Missing
	for _, s := range found.Spans {
		answer.Assignments = append(answer.Assignments, whoHad{Assignment: s.Assignment, Until: s.Until, Seen: s.Seen})
	}
	return answer, nil
}

// fromNodeJournal answers from this node's journal, and from the running node what has gone on since.
func (o *whoOptions) fromNodeJournal(ctx context.Context) (whoAnswer, error) {
	answer, err := o.fromJournals([]string{o.journalFolder()})
	if err == nil && answer.Shared {
		answer.Missing = append(answer.Missing, "pods of other nodes share these ports: their nodes' journals tell")
		return answer, nil
	}
	var unknown *journal.UnknownError
	if err == nil || errors.As(err, &unknown) && unknown.Contradict { // which of them goes on says nothing of then
		return answer, err
	}
	snapshot, failed := o.snapshot(ctx)
	if failed == nil {
		for _, a := range snapshot.PortBlocks {
			if has(a, o.asked) && !a.Shared && !a.Since.After(o.when) {
				answer.standing = standingOf(snapshot)
				answer.Assignments = []whoHad{{Assignment: a, Seen: snapshot.Time}}
				return answer, nil
			}
		}
	}
	var nobody *journal.NobodyError
	switch {
	case errors.Is(err, journal.ErrNone):
		err = fmt.Errorf("%w: either proxyArguments.egress-snat-port-blocks was never set on this node, or its journal is in another folder: use --config=FILE or --journal=FOLDER", err)
	case errors.As(err, &nobody):
		err = fmt.Errorf("%w. For pods of other nodes, see those nodes' journals", err)
	}
	return answer, err
}

// journalFolder is where this node has its journal.
func (o *whoOptions) journalFolder() string { return kubeproxy.JournalFolder(o.journal, o.socket) }

// fromNode answers from the live state of this node.
func (o *whoOptions) fromNode(ctx context.Context, s status.Snapshot) (whoAnswer, error) {
	answer := o.newAnswer(standingOf(s), s.Time)
	for _, a := range s.PortBlocks {
		if has(a, o.asked) {
			answer.Assignments = append(answer.Assignments, whoHad{Assignment: a, Seen: s.Time})
			answer.Shared = answer.Shared || a.Shared
		}
	}
	switch {
	case len(answer.Assignments) > 0 && !answer.Shared:
		return answer, nil
	case answer.Shared:
		answer.Missing = []string{"pods of other nodes share these ports, too: their nodes know, and 'kubectl egress who' shows those that started with the CNI plugin"}
		return o.withFlows(ctx, answer, s)
	}
	for _, b := range s.PortMap {
		if b.EgressIP == o.asked.Addr() && b.Ports.Contains(o.asked.Port()) {
			a := byServices(s, b)
			if a.Node == "" || a.Pod.UID == "" {
				answer.Missing = []string{"this node knows the pod of another node by its address: 'kubectl egress who', or the journal of the pod's node, has its UID and since when"}
			}
			answer.Assignments = []whoHad{{Assignment: a, Seen: s.Time}}
			return answer, nil
		}
	}
	answer.Shared = true
	answer, err := o.withFlows(ctx, answer, s)
	if err == nil && len(answer.Assignments) > 0 {
		answer.Missing = []string{"the pods are known by their tracked flows alone"}
		return answer, nil
	}
	if len(s.PortBlocks) == 0 && len(s.PortMap) == 0 {
		return answer, errors.Join(fmt.Errorf("nobody has %s, as far as this node knows: no tracked flow has the port, and no pod here has ports of its own, which needs proxyArguments.egress-snat-port-blocks", o.asked), err)
	}
	return answer, errors.Join(fmt.Errorf("nobody has %s at %s, as far as the node %s knows", o.asked, s.Time.Format(time.RFC3339), s.Node), err)
}

// byServices returns what a node knows of a pod that is not its own: what Services tell of its address.
func byServices(s status.Snapshot, b kernel.Block) portblocks.Assignment {
	a := portblocks.Assignment{Pod: portblocks.Pod{IP: b.Pod}, EgressIP: b.EgressIP, Ports: b.Ports, Second: b.Second}
	for i, e := range explainers(s) {
		for _, endpoint := range e.Endpoints(b.Pod) {
			a.Pod.Namespace, a.Pod.Name, a.Node = endpoint.Pod.Namespace, endpoint.Pod.Name, endpoint.Node
		}
		for _, binding := range s.Families[i].Plan.Bindings {
			if binding.Pod == b.Pod && binding.EgressIP == b.EgressIP {
				a.Service = binding.Service.String()
			}
		}
	}
	return a
}

// withFlows narrows candidates down to those that have tracked flows with the port.
func (o *whoOptions) withFlows(ctx context.Context, answer whoAnswer, s status.Snapshot) (whoAnswer, error) {
	users, err := o.client().PortUsers(ctx, o.asked)
	if err != nil {
		answer.notes = append(answer.notes, "the tracked flows are not known: "+err.Error())
		return answer, nil
	}
	flows := map[netip.Addr][]whoFlow{}
	for _, u := range users {
		if o.only == "" || o.only == plan.Protocol(u.Protocol) {
			flows[u.Pod] = append(flows[u.Pod], whoFlow{u.Protocol, u.Destination})
		}
	}
	if len(flows) == 0 {
		return answer, nil
	}
	var using []whoHad
	for _, had := range answer.Assignments {
		if had.Flows = flows[had.Pod.IP]; len(had.Flows) > 0 {
			using = append(using, had)
			delete(flows, had.Pod.IP)
		}
	}
	for pod, of := range flows { // of another node, or without an assignment
		a := byServices(s, kernel.Block{Pod: pod, EgressIP: o.asked.Addr(), Ports: kernel.Ports{First: o.asked.Port(), Last: o.asked.Port()}})
		a.Shared = true
		using = append(using, whoHad{Assignment: a, Seen: answer.At, Flows: of})
	}
	slices.SortFunc(using, func(a, b whoHad) int { return a.Pod.IP.Compare(b.Pod.IP) })
	answer.Assignments, answer.Missing = using, nil
	return answer, nil
}

// fromAPI answers from what the nodes tell in their Leases.
func (o *whoOptions) fromAPI(ctx context.Context) (whoAnswer, error) {
	reader, err := o.desk.reader()
	if err != nil {
		return whoAnswer{}, err
	}
	told, err := reader.PortBlocks(ctx)
	answer := o.newAnswer(standing{Problems: append([]string{}, told.Doubts...)}, told.Time)
	if err != nil {
		return answer, err
	}
	for _, a := range told.Assignments {
		if has(a.Assignment, o.asked) {
			answer.Assignments = append(answer.Assignments, whoHad{Assignment: a.Assignment, Seen: a.Told})
			answer.Shared = answer.Shared || a.Shared
		}
	}
	if portblocks.Shared.Contains(o.asked.Port()) {
		answer.Missing = append(answer.Missing, portblocks.Unlisted)
	}
	own := slices.DeleteFunc(slices.Clone(answer.Assignments), func(h whoHad) bool { return h.Shared })
	switch {
	case len(own) > 1:
		return answer, fmt.Errorf("it is not certain who has %s: the Leases of %s and %s both say that a pod of theirs has it alone", o.asked, own[0].Node, own[1].Node)
	case len(own) == 1:
		answer.Assignments, answer.Shared = own, false
	case len(answer.Assignments) == 0 && len(answer.Missing) > 0:
		return answer, fmt.Errorf("it is not certain who has %s: %s", o.asked, strings.Join(answer.Missing, "; "))
	case len(answer.Assignments) == 0 && len(told.Doubts) > 0:
		return answer, fmt.Errorf("it is not certain who has %s: %s", o.asked, strings.Join(told.Doubts, "; "))
	case len(answer.Assignments) == 0 && len(told.Assignments) == 0:
		return answer, fmt.Errorf("nobody has %s: no node's Lease lists source ports of pods; nodes list them only with proxyArguments.egress-snat-port-blocks", o.asked)
	case len(answer.Assignments) == 0:
		return answer, fmt.Errorf("nobody has %s now, according to the Leases of %d nodes. For an earlier time, see the nodes' journals", o.asked, told.Nodes)
	}
	return answer, nil
}

func has(a portblocks.Assignment, asked netip.AddrPort) bool {
	return a.EgressIP == asked.Addr() && a.Ports.Contains(asked.Port())
}
