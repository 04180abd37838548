package cmd

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/status"
)

const egressAddressesLong = `Lists the egress IPs that Services claim and may have in the whole cluster, sorted, and where each
of them is, as far as this node knows. There are none where steering is off.

HOLDER is the node that has the address on an interface, or <none>. It is marked (lost) if it
does not answer, or has given up the address a moment ago, and no other node has the address. It
is marked (conflict) if other nodes have the address at the same time. EPOCH grows each time the
address gets another holder. KNOWN BY is how this node knows the holder. PODS counts the pods of
this node that leave from the address.

VIA is what this node does with their packets: "here" if it SNATs them, because it has the address
or no node has it; the name of the node that it sends them to; or <dropped>, see 'openshift
egress explain'. AGE is the time since this node learnt of the holder, or of its loss. -o wide
adds OWNER (the oldest Service that has the egress IP) and CONFLICT (the further nodes that have
the address); and on nodes that egress IPs are put on VOTES (how many of these are live, of how
many) and LAST MOVE (when this node took or released the address, and why).

With --watch each further line is a row that was ADDED, MODIFIED or DELETED. JSON prints one
document per line, YAML separates documents by "---". A document has

  node, ready, problems, steering
              as in 'openshift egress list --help'
  addresses   egressIP, owner {namespace, name}, state (local: on this node, remote, lost or
              unclaimed: on no node), holder, why (the address is lost), conflict, epoch,
              known (by own address, lease, announcement or both of these), since, pods,
              via {way, node} as in 'openshift egress list --help',
              pool {votes, of, moved, lastMove}
              (unknown fields are omitted)`

const egressAddressesExample = `  # Which node has which egress IP
  openshift egress addresses

  # Egress IPs that several nodes have at the same time
  openshift egress addresses -o json | jq -c '.addresses[] | select(.conflict) | [.egressIP, .holder, .conflict]'

  # All egress IPs, then each change of a holder
  openshift egress addresses -w`

// listedAddress is a row.
type listedAddress struct {
	EgressIP netip.Addr   `json:"egressIP"`
	Owner    plan.Service `json:"owner,omitzero"`
	State    string       `json:"state"`
	Holder   string       `json:"holder,omitempty"`
	Why      string       `json:"why,omitempty"`
	Conflict []string     `json:"conflict,omitempty"`
	Epoch    uint64       `json:"epoch,omitempty"`
	Known    string       `json:"known,omitempty"`
	Since    time.Time    `json:"since,omitzero"`
	Pods     int          `json:"pods"`
	// Via is zero if no node was asked.
	Via via `json:"via,omitzero"`
	// Pool is nil if the address is other software's, or this node is not in the pool.
	Pool *status.AddressPool `json:"pool,omitempty"`
}

// addressList is the JSON and YAML document.
type addressList struct {
	standing
	Addresses []listedAddress `json:"addresses"`
}

func newEgressAddressesCommand(o *egressOptions) *cobra.Command {
	return addressListing.command(o, "addresses", "List egress IPs and the nodes that have them", egressAddressesLong, egressAddressesExample, false)
}

var addressListing = listing[listedAddress]{
	columns: []column[listedAddress]{
		{"ADDRESS", false, func(a listedAddress, _ time.Time) string { return a.EgressIP.String() }},
		{"NAMESPACE", false, func(a listedAddress, _ time.Time) string { return orNone(a.Owner.Namespace) }},
		{"HOLDER", false, func(a listedAddress, _ time.Time) string { return a.markedHolder() }},
		{"EPOCH", false, func(a listedAddress, _ time.Time) string {
			if a.Epoch == 0 {
				return orNone("")
			}
			return strconv.FormatUint(a.Epoch, 10)
		}},
		{"KNOWN BY", false, func(a listedAddress, _ time.Time) string { return orNone(a.Known) }},
		{"PODS", false, func(a listedAddress, _ time.Time) string { return strconv.Itoa(a.Pods) }},
		{"VIA", false, func(a listedAddress, _ time.Time) string { return a.Via.String() }},
		{"AGE", false, func(a listedAddress, now time.Time) string {
			if a.Since.IsZero() {
				return orNone("")
			}
			return age(a.Since, now)
		}},
		{"OWNER", true, func(a listedAddress, _ time.Time) string { return serviceOrNone(a.Owner) }},
		{"CONFLICT", true, func(a listedAddress, _ time.Time) string { return orNone(strings.Join(a.Conflict, ",")) }},
		{"VOTES", true, func(a listedAddress, _ time.Time) string { return a.votes() }},
		{"LAST MOVE", true, func(a listedAddress, now time.Time) string { return a.lastMove(now) }},
	},
	ofNodes:     []string{"KNOWN BY", "VIA", "AGE", "VOTES", "LAST MOVE"},
	clusterWide: true,
	empty:       noAddresses,
	rows:        addressRows,
	key:         func(a listedAddress) any { return a.EgressIP },
	namespaceOf: func(a listedAddress) string { return a.Owner.Namespace },
	document:    func(s standing, rows []listedAddress) any { return addressList{s, append([]listedAddress{}, rows...)} },
}

func addressRows(s, _ status.Snapshot) []listedAddress {
	var rows []listedAddress
	for _, a := range s.Addresses {
		row := listedAddress{
			EgressIP: a.IP, Owner: a.Owner, State: a.State, Holder: a.Holder, Why: a.Why, Conflict: a.Conflict,
			Epoch: a.Epoch, Known: a.Known, Since: a.Since, Pods: a.Pods, Pool: a.Pool,
		}
		if !s.FromAPI {
			row.Via = viaOf(a)
		}
		rows = append(rows, row)
	}
	return rows
}

// votes returns how many nodes of the pool are live, of how many.
func (a listedAddress) votes() string {
	if a.Pool == nil {
		return orNone("")
	}
	return fmt.Sprintf("%d/%d", a.Pool.Votes, a.Pool.Of)
}

// lastMove returns when and why this node took or released the address.
func (a listedAddress) lastMove(now time.Time) string {
	if a.Pool == nil || a.Pool.LastMove == "" {
		return orNone("")
	}
	return age(a.Pool.Moved, now) + " ago, " + a.Pool.LastMove
}

// markedHolder returns the holder, with what is wrong with it.
func (a listedAddress) markedHolder() string {
	var marks []string
	if a.State == stateLost {
		marks = append(marks, "lost")
	}
	if len(a.Conflict) > 0 {
		marks = append(marks, "conflict")
	}
	if len(marks) == 0 {
		return orNone(a.Holder)
	}
	return a.Holder + " (" + strings.Join(marks, ", ") + ")"
}

// noAddresses says why no addresses are listed.
func noAddresses(s standing, where string) string {
	if s.Node == "" && s.Steering == "off" {
		return "steering is off: pods use their egress IPs where they run, and nodes do not tell which addresses they have"
	}
	if s.inVain && s.holdersUnread {
		return "it is not known which nodes have the egress IPs that Services claim"
	}
	switch s.Steering {
	case "":
		return "the running node's version does not know which nodes have the egress IPs"
	case "off":
		return "steering is off on this node: its pods use their egress IPs here, and it does not know which nodes have them"
	}
	if s.inVain {
		return "no Service" + where + " may have the egress IP that it claims, as 'refused' says"
	}
	return "no Service claims an egress IP" + where
}
