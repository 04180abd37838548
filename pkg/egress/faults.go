package egress

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/openshift/origin-node/pkg/egress/attach"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
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

// reason is that of Events.
func (k faultKind) reason() plan.Reason {
	switch k {
	case keyless:
		return noKey
	case rekeying:
		return badKeys
	case unannounced:
		return notAnnouncing
	case marked:
		return markInUse
	case absent:
		return notInPool
	case unclaimable:
		return blocksUnclaimed
	}
	return notSteering
}

// standingFaults are those that were told of, until they are over.
type standingFaults struct {
	mu sync.Mutex
	// leases is why Leases cannot be used, announcing why nothing is announced directly.
	leases     map[holders.Access]error
	announcing error
	// marked has which rules of others use bits of the mark.
	marked []string
}

// steeringFaults returns those that there are now.
func (e *Extension) steeringFaults() (faults []fault) {
	add := func(kind faultKind, format string, err error) {
		if err != nil {
			faults = append(faults, fault{kind, fmt.Sprintf(format, err)})
		}
	}
	add(unavailable, "this node sends no packets to the nodes that have their egress IPs, so its pods use these where they run: %v", e.config.Steering.Unavailable)
	for _, name := range cluster.Families {
		if !e.families[name].planned.Load() {
			continue
		}
		add(incomplete, string(name)+": packets whose egress IP is on another node are dropped: %v", e.families[name].reconciler.Status().SteeringFault)
	}
	add(absent, "this node does not hear the other nodes of the pool, nor they it, so it takes no egress IPs of nodes that fail, and drains nothing: %v", e.pool.Absent())
	add(unclaimable, "this node cannot claim blocks of source ports, so pods that start here may share ports: %v", e.sourcePorts.Fault())
	if e.steerer == nil {
		return faults
	}
	add(unfollowed, "%v", e.balancer.Fault())
	faults = append(faults, e.keyFaults()...)
	e.faults.mu.Lock()
	defer e.faults.mu.Unlock()
	for _, message := range e.faults.marked {
		faults = append(faults, fault{marked, message})
	}
	add(unannounced, "this node does not announce its egress IPs directly, or the other nodes reject what it announces, so other nodes learn of changes from its Lease alone: %v", e.faults.announcing)
	add(unheard, "this node does not hear which nodes have which egress IPs: %v", e.faults.leases[holders.Reading])
	add(unsaid, "other nodes do not hear which egress IPs this node has: %v", e.faults.leases[holders.Writing])
	return faults
}

// leasesFail notes why Leases cannot be used, or with nil that they can.
func (e *Extension) leasesFail(what holders.Access, err error) {
	e.faults.mu.Lock()
	if e.faults.leases == nil {
		e.faults.leases = map[holders.Access]error{}
	}
	e.faults.leases[what] = err
	e.faults.mu.Unlock()
	e.faultsChanged()
}

// marksUsed notes which rules of others use bits of the mark.
func (e *Extension) marksUsed(rules []string) {
	e.faults.mu.Lock()
	e.faults.marked = rules
	e.faults.mu.Unlock()
	e.faultsChanged()
}

// announcerFails notes why nothing is announced directly, or with nil that it is.
func (e *Extension) announcerFails(err error) {
	e.faults.mu.Lock()
	e.faults.announcing = err
	e.faults.mu.Unlock()
	e.faultsChanged()
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
func (e *Extension) troubles() map[plan.Service][]tell.Trouble {
	troubles := e.nodeTroubles()
	for about, t := range e.pool.LabelTroubles() {
		troubles[about] = append(troubles[about], t)
	}
	maps.Copy(troubles, e.steerer.Troubles(e.pool.Troubles(), e.pool.LeftTroubles(time.Now())))
	for about, t := range e.sourcePorts.Troubles() {
		troubles[about] = append(troubles[about], t)
	}
	for _, f := range e.steeringFaults() {
		troubles[plan.Service{}] = append(troubles[plan.Service{}], tell.Trouble{Reason: f.kind.reason(), Note: f.message})
	}
	troubles[plan.Service{}] = slices.Concat(troubles[plan.Service{}], e.ports.Troubles(), e.neighbours.Troubles())
	for _, message := range e.attacher.Problems() {
		troubles[plan.Service{}] = append(troubles[plan.Service{}], tell.Trouble{Reason: attach.PluginFailing, Note: message})
	}
	return troubles
}
