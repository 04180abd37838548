package sourceports

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/kernel"
)

// Follow takes all attachments of this node: those that an earlier process knew, and then each change. It is the Follow of an [attach.Node].
// What has no larger number than what was taken before is ignored.
func (al *Allocator) Follow(number uint64, all []attachments.Attachment) {
	if al.config.BlockSize == 0 {
		return
	}
	pods, running := map[string]attachments.Attachment{}, map[string]*portblocks.Had{}
	for _, a := range all {
		if !a.Released.IsZero() {
			continue
		}
		if running[a.ContainerID] = nil; a.Ports != nil {
			pods[a.ContainerID], running[a.ContainerID] = a, hadBy(a)
		}
	}
	al.keeper.Follow(number, running)
	al.mu.Lock()
	defer al.mu.Unlock()
	if number <= al.followed {
		return
	}
	al.followed, al.pods = number, pods
	maps.DeleteFunc(al.late, func(id string, _ bool) bool {
		_, runs := running[id]
		return !runs
	})
	al.full.keep(pods)
	al.generation++
	al.wake.Send()
}

// hadBy returns what a pod has.
func hadBy(a attachments.Attachment) *portblocks.Had {
	given := func(first, last uint16, of []netip.Addr) portblocks.Given {
		return portblocks.Given{Ports: kernel.Ports{First: first, Last: last}, Of: of}
	}
	return &portblocks.Had{IPs: sortedIPs(a.Ports, assignedIP), Size: a.BlockSize, First: given(a.Block()), Second: given(a.SecondBlock())}
}

// Assign is that of an [attach.Node]: it returns the ports of a pod that is about to run, which may wait for a claim, and begins to write them
// down.
func (al *Allocator) Assign(ctx context.Context, a attachments.Attachment, bindings []plan.Binding) (ports []attachments.Ports, size int, err error) {
	if al.config.BlockSize == 0 {
		return nil, 0, nil
	}
	if len(bindings) == 0 {
		al.mu.Lock()
		al.late[a.ContainerID] = true
		al.mu.Unlock()
		al.wake.Send() // it may have been bound since its bindings were asked for
		return nil, 0, nil
	}
	if a.Ports != nil {
		return a.Ports, a.BlockSize, nil // for its life
	}
	al.mu.Lock()
	delete(al.late, a.ContainerID) // an earlier try was without
	al.mu.Unlock()
	var given portblocks.Given
	if size = al.sizeFor(bindings); size > 0 {
		if given, err = al.keeper.Assign(ctx, a.ContainerID, sortedIPs(bindings, boundIP), size); err != nil {
			return nil, 0, fmt.Errorf("waiting for a block of source ports of the pod %s: %w", a.Pod, err)
		}
	}
	ports = portsFor(nil, bindings, given, time.Now())
	al.beginRecording(ctx, a, ports)
	al.tellShared(a, ports, size, fmt.Sprintf("all are taken, or none could be claimed within %s", portblocks.Patience))
	return ports, size, nil
}

// sizeFor returns the number of ports in the block of a pod with these bindings: the largest that one of its Services says.
func (al *Allocator) sizeFor(bindings []plan.Binding) (size int) {
	for _, b := range bindings {
		own, given := al.state.PortBlock(b.Service)
		if !given {
			own = al.config.BlockSize
		}
		size = max(size, own)
	}
	return size
}

// sortedIPs returns the address of each of a list, sorted, and none twice.
func sortedIPs[T any](list []T, address func(T) netip.Addr) (ips []netip.Addr) {
	for _, one := range list {
		ips = append(ips, address(one))
	}
	slices.SortFunc(ips, netip.Addr.Compare)
	return slices.Compact(ips)
}

func assignedIP(p attachments.Ports) netip.Addr { return p.EgressIP }

func boundIP(b plan.Binding) netip.Addr { return b.EgressIP }

// leadTo tells whether one of these bindings is to an egress IP.
func leadTo(bindings []plan.Binding, egressIP netip.Addr) bool {
	return slices.ContainsFunc(bindings, func(b plan.Binding) bool { return b.EgressIP == egressIP })
}

// portsFor returns the ports of a pod with these bindings: those that it had, and of other egress IPs what it is given, or else the shared
// ones. Where it had a block, and is given none, it shares.
func portsFor(had []attachments.Ports, bindings []plan.Binding, given portblocks.Given, now time.Time) []attachments.Ports {
	ports := slices.Clone(had)
	for _, b := range bindings {
		want := attachments.Ports{
			IP: b.Pod, EgressIP: b.EgressIP, Service: b.Service.String(), First: portblocks.Shared.First, Last: portblocks.Shared.Last, Shared: true,
			Since: now.UTC().Truncate(time.Second),
		}
		if slices.Contains(given.Of, b.EgressIP) {
			want.First, want.Last, want.Shared = given.Ports.First, given.Ports.Last, false
		}
		i := slices.IndexFunc(ports, func(p attachments.Ports) bool { return p.IP == b.Pod && p.EgressIP == b.EgressIP })
		switch {
		case i < 0:
			ports = append(ports, want)
		case ports[i].Shared != want.Shared || ports[i].First != want.First || ports[i].Last != want.Last:
			ports[i] = want
		}
	}
	return ports
}

// bindingsOf returns those of a pod now.
func (al *Allocator) bindingsOf(a attachments.Attachment) (bindings []plan.Binding) {
	for _, ip := range a.IPs {
		bindings = append(bindings, al.state.BindingsOf(ip)...)
	}
	return bindings
}

// reconcile lets pods' ports follow their bindings and claims, and records the ends of pods.
func (al *Allocator) reconcile(ctx context.Context) {
	al.mu.Lock()
	unsaid := al.unsaid
	al.unsaid = nil
	al.mu.Unlock()
	for _, say := range unsaid {
		say()
	}
	if al.config.BlockSize == 0 {
		return
	}
	al.record(ctx, attachments.Attachment{}, nil, nil) // what there was before
	for _, lost := range al.keeper.Lost() {
		al.config.Logger.Error(nil, "A pod has lost a block of source ports, because another node has claimed it: this node's Node was deleted, or somebody has changed the Lease. Unless it has another one, the pod shares ports from now on",
			"container", portblocks.First(lost.ID), "egressIP", lost.EgressIP, "ports", lost.Ports, "lease", portblocks.LeaseName(lost.EgressIP))
	}
	for _, a := range al.config.Attachments().All() {
		if ctx.Err() != nil {
			return // the next process does the rest
		}
		var err error
		switch {
		case al.isRecording(a.ContainerID): // its end comes after it has begun
		case a.Ports == nil && a.Released.IsZero():
			err = al.reconcileLate(ctx, a)
		case a.Ports == nil || a.Recorded:
		case !a.Released.IsZero():
			al.record(ctx, a, a.Ports, nil)
			err = al.config.Attachments().SetRecorded(a.ContainerID)
		default:
			err = al.reconcilePod(ctx, a)
		}
		if err != nil {
			al.config.Logger.V(2).Info("The source ports of a pod are in effect, but not yet saved in its file; will retry", "pod", a.Pod, "err", err)
		}
	}
}

// longestStart is how long the CNI plugin may ask for a pod at most. A pod that has nothing by then has started although this node did not
// decide; one of an earlier process may be about to start until then.
const longestStart = 2 * time.Minute

// reconcileLate has a pod share that is bound only after it has started.
func (al *Allocator) reconcileLate(ctx context.Context, a attachments.Attachment) error {
	bindings := al.bindingsOf(a)
	al.mu.Lock()
	late := len(bindings) > 0 && (al.late[a.ContainerID] || time.Since(a.Since) > longestStart)
	al.mu.Unlock()
	if !late {
		return nil
	}
	al.keeper.Release(a.ContainerID) // its start may not have waited for the block
	ports := portsFor(nil, bindings, portblocks.Given{}, time.Now())
	al.record(ctx, a, nil, ports)
	size := al.sizeFor(bindings)
	al.tellShared(a, ports, size, "no Service gave it an egress IP when it started, or this node gave no blocks then, or did not answer in time")
	return al.config.Attachments().SetPorts(a.ContainerID, ports, size)
}

func (al *Allocator) reconcilePod(ctx context.Context, a attachments.Attachment) error {
	bindings := al.bindingsOf(a)
	if len(bindings) == 0 {
		return nil // for a moment, or because it ends: it keeps what it has
	}
	al.keeper.Change(a.ContainerID, sortedIPs(bindings, boundIP))
	given, _ := al.keeper.Of(a.ContainerID)
	firsts, seconds := apart(a.Ports)
	ports := portsFor(firsts, bindings, given, time.Now())
	ports = append(ports, al.secondsFor(a, seconds, ports, bindings)...)
	if _, runs := al.keeper.Of(a.ContainerID); !runs || slices.Equal(ports, a.Ports) {
		return nil // it may have ended since the list was made
	}
	al.record(ctx, a, a.Ports, ports)
	for _, p := range a.Ports {
		if !p.Shared && !slices.Contains(ports, p) {
			al.config.WarnPod(a.Pod.Namespace, a.Pod.Name, uidOf(a), portBlockLost, fmt.Sprintf(
				"the source ports %d-%d of %s are no longer this pod's own: another node has claimed them. Unless the pod has another block, it shares ports, and an address and a port no longer identify it", p.First, p.Last, p.EgressIP))
		}
	}
	err := al.config.Attachments().SetPorts(a.ContainerID, ports, a.BlockSize)
	al.config.RequestSync()
	return err
}

// uidOf returns the UID of a pod's object, or as long as that is unknown the one that the kubelet says: what is recorded has a UID.
func uidOf(a attachments.Attachment) string { return cmp.Or(a.Object, a.Pod.UID) }

// tellShared tells of a pod that shares although it was to have a block.
func (al *Allocator) tellShared(a attachments.Attachment, ports []attachments.Ports, size int, why string) {
	var of []string
	for _, p := range ports {
		if p.Shared {
			of = append(of, p.EgressIP.String())
		}
	}
	if len(of) == 0 || size == 0 {
		return
	}
	al.config.WarnPod(a.Pod.Namespace, a.Pod.Name, uidOf(a), portsShared, fmt.Sprintf(
		"this pod has no block of %d source ports of %s: %s. It shares the ports %s with other pods for as long as it runs; recreate it to try again, or give the Service more egress IPs",
		size, strings.Join(of, ", "), why, portblocks.Shared))
}
