package report

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/openshift/origin-node/pkg/egress/attach"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/keys"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/tell"
)

// fault is something that keeps packets from being sent to the nodes that have their egress IPs, or nodes from telling each other
// where these are. Pods that leave from this node go on.
type fault struct {
	kind    faultKind
	message string
}

type faultKind string

const (
	// unavailable: this node steers nothing, for something was in the way at its start.
	unavailable faultKind = "unavailable"
	// incomplete: what steers packets cannot be written.
	incomplete faultKind = "path"
	// unheard: Leases cannot be read, so that it is not known where egress IPs are. unsaid: that of this
	// node cannot be written, so that others do not know.
	unheard faultKind = "leases_unread"
	unsaid  faultKind = "lease_unwritten"
	// keyless: this node has no key by which others know it. rekeying: it has, but something is wrong with them. unannounced:
	// it cannot announce directly, or others have not its key.
	keyless     faultKind = "key_missing"
	rekeying    faultKind = "keys"
	unannounced faultKind = "announcements"
	// unfollowed: it is not known which egress IPs a load balancer announces, or from which node.
	unfollowed faultKind = "load_balancer"
	// marked: other software uses bits of the mark of packets that are steered.
	marked faultKind = "marks"
	// absent: this node does not hear the other nodes of the pool, nor they it.
	absent faultKind = "pool"
	// unclaimable: this node cannot claim blocks of source ports.
	unclaimable faultKind = "port_blocks"
)

var faultKinds = []faultKind{unavailable, incomplete, unheard, unsaid, keyless, rekeying, unannounced, unfollowed, marked, absent, unclaimable}

// faultReasons are those of Events, where it is not notSteering.
var faultReasons = map[faultKind]plan.Reason{
	keyless: noKey, rekeying: badKeys, unannounced: notAnnouncing, marked: markInUse, absent: notInPool, unclaimable: blocksUnclaimed,
}

// reason is that of Events.
func (k faultKind) reason() plan.Reason { return cmp.Or(faultReasons[k], notSteering) }

// standingFaults are those that were told of, until they are over.
type standingFaults struct {
	mu sync.Mutex
	// leases is why Leases cannot be used, announcing why nothing is announced directly.
	leases     map[holders.Access]error
	announcing error
	// marked has which rules of others use bits of the mark.
	marked []string
	// keys is what is not in order with the nodes' keys; nil if all is.
	keys error
}

// steeringFaults returns those that there are now.
func (r *Reporter) steeringFaults() (faults []fault) {
	add := func(kind faultKind, format string, err error) {
		if err != nil {
			faults = append(faults, fault{kind, fmt.Sprintf(format, err)})
		}
	}
	add(unavailable, "this node does not send packets to the nodes that hold their egress IPs; its pods use their egress IPs on this node instead: %v", r.config.Steering.Unavailable)
	for _, name := range cluster.Families {
		if !r.config.Families[name].Planned() {
			continue
		}
		add(incomplete, string(name)+": packets whose egress IP is on another node are dropped: %v", r.config.Families[name].Reconciler.Status().SteeringFault)
	}
	add(absent, "this node and the other nodes of the pool do not hear each other, so it takes over no egress IPs of failed nodes, and cannot hand its own over in a drain: %v", r.parts().Pool.Absent())
	add(unclaimable, "this node cannot claim blocks of source ports, so pods that start here may share ports: %v", r.parts().SourcePorts.Fault())
	if r.parts().Steerer == nil {
		return faults
	}
	add(unfollowed, "%v", r.parts().Balancer.Fault())
	if missing, err := r.keysState(); missing {
		add(keyless, "this node has no key by which the other nodes know it, so it neither sends nor accepts direct announcements, has no part in the pool, and learns from the Leases alone where egress IPs are: %v", err)
	} else {
		add(rekeying, "this node has keys, but something is wrong with how they are shared or kept: %v", err)
	}
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	for _, message := range r.faults.marked {
		faults = append(faults, fault{marked, message})
	}
	add(unannounced, "this node does not announce its egress IPs directly, or the other nodes reject what it announces, so other nodes learn of changes from its Lease alone: %v", r.faults.announcing)
	add(unheard, "this node does not hear which nodes have which egress IPs: %v", r.faults.leases[holders.Reading])
	add(unsaid, "other nodes do not hear which egress IPs this node has: %v", r.faults.leases[holders.Writing])
	return faults
}

// note notes a change of what was told of.
func (r *Reporter) note(set func(*standingFaults)) {
	r.faults.mu.Lock()
	set(&r.faults)
	r.faults.mu.Unlock()
	r.FaultsChanged()
}

// LeasesFail notes why Leases cannot be used, or with nil that they can.
func (r *Reporter) LeasesFail(what holders.Access, err error) {
	r.note(func(f *standingFaults) { f.leases[what] = err })
}

// MarksUsed notes which rules of others use bits of the mark.
func (r *Reporter) MarksUsed(rules []string) {
	r.note(func(f *standingFaults) { f.marked = rules })
}

// AnnouncerFails notes why nothing is announced directly, or with nil that it is.
func (r *Reporter) AnnouncerFails(err error) {
	r.note(func(f *standingFaults) { f.announcing = err })
}

// The reasons of Events about a Node, beside those about keys.
const (
	notSteering plan.Reason = "EgressIPUnreachable"
	markInUse   plan.Reason = "EgressMarkInUse"
	notInPool   plan.Reason = "EgressPoolAbsent"
	// blocksUnclaimed: pods may not get source ports of their own.
	blocksUnclaimed plan.Reason = "EgressPortBlocksUnclaimed"
)

// troubles returns what is wrong with where the egress IPs are, by the Services that claim them, and without a
// Service what is wrong with this node's steering and with the CNI plugin. What is wrong with any Node's addresses is by
// [tell.AboutNode].
func (r *Reporter) troubles() map[plan.Service][]tell.Trouble {
	troubles := r.nodeTroubles()
	for about, t := range r.parts().Pool.LabelTroubles() {
		troubles[about] = append(troubles[about], t)
	}
	maps.Copy(troubles, r.parts().Steerer.Troubles(r.parts().Pool.Troubles(), r.parts().Pool.LeftTroubles(time.Now())))
	for about, t := range r.parts().SourcePorts.Troubles() {
		troubles[about] = append(troubles[about], t)
	}
	for _, f := range r.steeringFaults() {
		troubles[plan.Service{}] = append(troubles[plan.Service{}], tell.Trouble{Reason: f.kind.reason(), Note: f.message})
	}
	troubles[plan.Service{}] = slices.Concat(troubles[plan.Service{}], r.parts().Ports.Troubles(), r.parts().Neighbours.Troubles())
	for _, message := range r.parts().Attacher.Problems() {
		troubles[plan.Service{}] = append(troubles[plan.Service{}], tell.Trouble{Reason: attach.PluginFailing, Note: message})
	}
	return troubles
}

// nodeAddressIgnored is the reason of Events about Nodes with addresses that they should not tell.
const nodeAddressIgnored plan.Reason = "NodeAddressIgnored"

// nodeTroubles returns what Nodes should not tell; nothing before there is a plan.
func (r *Reporter) nodeTroubles() map[plan.Service][]tell.Trouble {
	troubles := map[plan.Service][]tell.Trouble{}
	for _, name := range cluster.Families {
		if !r.config.Families[name].Planned() {
			continue
		}
		for _, fault := range r.config.State.NodeFaults(name) {
			about := tell.AboutNode(fault.Node)
			troubles[about] = append(troubles[about], tell.Trouble{Reason: nodeAddressIgnored, Note: fault.Message})
		}
	}
	return troubles
}

// KeysFail notes what is not in order with the keys, or with nil that all is.
func (r *Reporter) KeysFail(err error) {
	r.note(func(f *standingFaults) { f.keys = err })
}

// Reasons of Events about a Node.
const (
	noKey         plan.Reason = "EgressKeyMissing"
	badKeys       plan.Reason = "EgressKeysFailing"
	notAnnouncing plan.Reason = "EgressIPsNotAnnounced"
)

// keysState tells whether this node has no key, and what is not in order.
func (r *Reporter) keysState() (missing bool, failing error) {
	missing = len(r.config.Keys.Keys()) == 0
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	return missing, r.faults.keys
}

// NoKey is why this node has no part in the pool.
func (r *Reporter) NoKey() error {
	_, err := r.keysState()
	if err == nil {
		err = errors.New("the Secret " + r.config.LeaseNamespace + "/" + keys.SecretName + " is not read yet")
	}
	return fmt.Errorf("this node has no part in the pool yet: it has no key by which the other nodes know it: %w", err)
}
