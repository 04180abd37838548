package status

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/kernel"
)

// DefaultSocket is where a node listens if its configuration does not say otherwise.
const DefaultSocket = "/run/origin-node/egress.sock"

// Snapshot is how egress SNAT stands on a node.
type Snapshot struct {
	// Node is the node's name.
	Node string `json:"node"`
	// Version is the program's.
	Version string `json:"version"`
	// Time is when the snapshot was made.
	Time time.Time `json:"time"`
	// Ready: the plan has been written, once, in every IP family that the proxier serves.
	Ready bool `json:"ready"`
	// Missing are the kinds of objects that the node still waits for: it has no plan yet.
	Missing  []string `json:"missing,omitempty"`
	Families []Family `json:"families"`
	// Steering is how packets get to the nodes that hold their egress IPs, for people: "off", "vxlan" or
	// "direct".
	Steering string `json:"steering"`
	// SteeringProblems are what is wrong between this node and others, for people. Undelivered are those of them by which packets do not get
	// to the nodes that have their egress IPs.
	SteeringProblems []string `json:"steeringProblems,omitempty"`
	Undelivered      []string `json:"undelivered,omitempty"`
	// PluginProblems are what keeps the CNI plugin from doing its work, for people.
	PluginProblems []string `json:"pluginProblems,omitempty"`
	// FastPath is which flows take a shorter way through the kernel; nil if none do.
	FastPath *FastPath `json:"fastPath,omitempty"`
	// Addresses are the egress IPs that Services claim and may have in the whole cluster, sorted. There are none
	// where steering is off.
	Addresses []Address `json:"addresses,omitempty"`
	// PortBlocks are the source ports that this node's pods have of their egress IPs; of pods that started without the CNI plugin, which
	// share, UID and Since are not known. PortMap has the blocks of other nodes' pods of which this node has the egress IP, or may have it.
	PortBlocks []portblocks.Assignment `json:"portBlocks,omitempty"`
	PortMap    []kernel.Block          `json:"portMap,omitempty"`

	// FromAPI: it is of the whole cluster, made from the API's objects alone, and not by a node. LeftOut says what the
	// user may not read, and Doubts what of the objects is wrong; both for people. HoldersUnread: Leases are among that, and Partly: Services
	// or EndpointSlices of some namespaces.
	FromAPI       bool     `json:"-"`
	LeftOut       []string `json:"-"`
	Doubts        []string `json:"-"`
	HoldersUnread bool     `json:"-"`
	Partly        bool     `json:"-"`
}

// FastPath is which established flows take a shorter way through the kernel.
type FastPath struct {
	// All: also those of bound pods that leave from the pod's own node.
	All bool `json:"all"`
	// Pods has the protocols of such flows, of each pod of this node that has some.
	Pods map[netip.Addr][]kernel.Protocol `json:"pods"`
}

// Address is an egress IP and where it is, as far as the node knows.
type Address struct {
	IP netip.Addr `json:"ip"`
	// Owner is the Service whose namespace the address belongs to.
	Owner plan.Service `json:"owner,omitzero"`
	// State is local (on this node), remote, lost (on a node that does not answer any more) or unclaimed
	// (on no node).
	State string `json:"state"`
	// Holder is the node that has the address, or had it when it was lost; empty if no node has it.
	Holder string `json:"holder,omitempty"`
	// Why is why the address is lost, for people; empty if it is not lost.
	Why string `json:"why,omitempty"`
	// Since is when this node learnt of the state.
	Since time.Time `json:"since,omitzero"`
	// Epoch grows with each change of the holder; zero if no node has the address.
	Epoch uint64 `json:"epoch,omitempty"`
	// Known is how the node knows: "own address", "load balancer" (which announces it from this node), "lease", "announcement", or
	// "both" of the last two; empty if no node has the address.
	Known string `json:"known,omitempty"`
	// Conflict are further nodes that have the address at the same time.
	Conflict []string `json:"conflict,omitempty"`
	// Way is what this node does with packets that need the address: "here" (source NAT on this node),
	// "to node" (they are sent to Holder), "blackhole" (dropped in silence) or "prohibit" (the pod is
	// told).
	Way string `json:"way"`
	// Pods counts the pods of this node that leave from the address.
	Pods int `json:"pods"`
	// Pool is how the nodes stand that the address is put on; nil if other software puts it there, or if this node is
	// none of them.
	Pool *AddressPool `json:"pool,omitempty"`
}

// AddressPool is how the pool of an address stands, as far as one of its nodes knows.
type AddressPool struct {
	// Votes of its nodes are live, Of is how many there are.
	Votes int `json:"votes"`
	Of    int `json:"of"`
	// Moved is when this node took the address, or released it, and LastMove says for people which, and why; zero if
	// it has done neither since it started.
	Moved    time.Time `json:"moved,omitzero"`
	LastMove string    `json:"lastMove,omitempty"`
}

// Family is how one IP family stands.
type Family struct {
	// Family is IPv4 or IPv6.
	Family string `json:"family"`
	// Input is what the cluster's plan is made from.
	Input plan.Input `json:"input"`
	// Plan is this node's part: of its pods, or of all with Scope cluster.
	Plan  plan.Plan `json:"plan"`
	Scope string    `json:"scope"`
	// Since has for each of Plan's bindings, in the same order, since when this process
	// has had it in the kernel; zero if it has not been written yet.
	Since []time.Time `json:"since"`
	// Written: the kernel holds Plan, as far as the node knows, and the flows that the last write is about
	// have been judged.
	Written bool `json:"written"`
	// LastSync is when the kernel was last known to hold a plan; zero for never.
	LastSync time.Time `json:"lastSync,omitzero"`
	// Error is why the last sync failed; empty if it did not.
	Error string `json:"error,omitempty"`
	// NFTable is the name of the nftables table that gives flows their egress IPs; empty if rules of iptables say which.
	NFTable string `json:"nfTable,omitempty"`
}

// Has tells whether a binding is in this node's plan.
func (f Family) Has(b plan.Binding) bool {
	_, found := slices.BinarySearchFunc(f.Plan.Bindings, b, plan.CompareBindings)
	return found
}

// OfCluster returns f with the plan of the whole cluster. A binding that is not in this node's plan
// has the zero Since. Making the plan costs as much as the cluster is large.
func (f Family) OfCluster() Family {
	whole := plan.Build(f.Input)
	since := make([]time.Time, len(whole.Bindings))
	for i, b := range whole.Bindings {
		if j, found := slices.BinarySearchFunc(f.Plan.Bindings, b, plan.CompareBindings); found {
			since[i] = f.SinceOf(j)
		}
	}
	f.Plan, f.Since = whole, since
	return f
}

// Granted returns the egress IPs of the claims that are not refused as a whole, sorted.
func (f Family) Granted() (result []netip.Addr) {
	type claimed struct {
		service plan.Service
		ip      netip.Addr
	}
	refused := map[claimed]bool{}
	for _, r := range f.Plan.Refusals {
		if !r.Pod.IsValid() {
			refused[claimed{r.Service, r.EgressIP}] = true
		}
	}
	for _, claim := range f.Input.Claims {
		for _, address := range claim.Addresses() {
			if !refused[claimed{claim.Service, address.IP}] {
				result = append(result, address.IP)
			}
		}
	}
	slices.SortFunc(result, netip.Addr.Compare)
	return slices.Compact(result)
}

// SinceOf returns Since for the binding with this index; zero if it has none.
func (f Family) SinceOf(i int) time.Time {
	if i < len(f.Since) {
		return f.Since[i]
	}
	return time.Time{}
}

// Problems are what keeps the kernel from holding the plan, for people; none if all is
// well.
func (s Snapshot) Problems() []string {
	var problems []string
	if s.FromAPI {
		return s.Doubts
	}
	if len(s.Missing) > 0 {
		problems = append(problems, "the node has no plan yet, it waits for "+strings.Join(s.Missing, ", "))
	} else if !s.Ready {
		problems = append(problems, "the node has not written all of its rules since it started")
	}
	for _, f := range s.Families {
		if f.Error == "" {
			continue
		}
		held := "none has succeeded yet"
		if !f.LastSync.IsZero() {
			held = "the kernel last matched the plan at " + f.LastSync.Format(time.RFC3339)
		}
		problems = append(problems, fmt.Sprintf("%s: the last sync failed, %s: %s", f.Family, held, f.Error))
	}
	return slices.Concat(problems, s.SteeringProblems, s.PluginProblems)
}

// Source knows how egress SNAT stands. Its methods are called by several goroutines. What
// they return is not changed afterwards, by either side.
type Source interface {
	Snapshot() Snapshot
	// Changed is closed at the next change of the Snapshot.
	Changed() <-chan struct{}
	// Verify compares the kernel with the plan and returns what differs, for people, by
	// IP family. A family that was compared and agrees is there with nothing. A line that begins with [Warning]
	// is no difference, but may keep packets from getting where they should.
	Verify(ctx context.Context) (map[string][]string, error)
}

// Warning begins a line of a verification that is no difference.
const Warning = "warning: "

// verification is the answer to GET /v1/verify.
type verification struct {
	Differences map[string][]string `json:"differences"`
}

// failure is the answer to what cannot be done. It is an error.
type failure struct {
	Text string `json:"error"`
}

func (f failure) Error() string { return f.Text }

const (
	snapshotPath = "/v1/snapshot"
	verifyPath   = "/v1/verify"
	watchQuery   = "watch"
)
