package egress

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	discovery "k8s.io/api/discovery/v1"

	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/cni"
	"github.com/openshift/origin-node/pkg/egress/plan"
)

// Pods tells of the pods on this node.
type Pods interface {
	// Pod returns a pod's labels, never nil, and whether its phase is terminal. known is false if the pod is not known
	// within a while, or until ctx ends.
	Pod(ctx context.Context, pod attachments.Pod) (labels map[string]string, ended, known bool)
}

const (
	// keepReleased is how long it is remembered at least that a pod gave its address back: an EndpointSlice that is late
	// names it after its end.
	keepReleased = 10 * time.Minute
	// youngest is how old an attachment is at least that a runtime's list of sandboxes can be without.
	youngest = 2 * time.Minute
)

// attacher decides what the CNI plugin asks. It is a [cni.Node].
type attacher struct {
	state *state
	store *attachments.Store
	pods  Pods
	// released is the folder in which the plugin leaves notes, claims the file that it reads.
	released, claims string
	// missing returns the kinds of objects that are not known yet.
	missing func() []string
	// await returns when a sync that began after the call has succeeded in both IP families. With look it has looked at
	// what the kernel holds.
	await func(ctx context.Context, look bool) error

	mu sync.Mutex // one change of the store is told to the state before the next
	// written are the namespaces in the file; nil before it was written.
	written []string
}

// load tells the state of all attachments that an earlier process knew. Call it before the first plan.
func (a *attacher) load() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, err := a.store.TakeLeft(a.released, time.Now())
	a.tell()
	return err
}

// tell brings the state's attachments in line with the store's. It costs what there is of them, and tells the planners of
// changes only.
func (a *attacher) tell() {
	owners := attachments.ByAddress(a.store.All())
	for _, ip := range a.state.attachedAddresses() {
		if _, known := owners[ip]; !known {
			a.state.deleteAttachment(ip)
		}
	}
	for ip, owner := range owners {
		a.state.setAttachment(plan.Attachment{
			Addr: ip, Pod: plan.Pod{Namespace: owner.Pod.Namespace, Name: owner.Pod.Name}, UID: owner.Pod.UID, Node: a.state.config.NodeName,
			Labels: owner.Labels, Ended: owner.Ended, Released: !owner.Released.IsZero(),
		})
	}
}

// put takes an attachment, and what was left of those before it.
func (a *attacher) put(attachment attachments.Attachment) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.store.TakeLeft(a.released, time.Now()); err != nil {
		return err
	}
	defer a.tell()
	return a.store.Put(attachment)
}

// Attach is part of [cni.Node].
func (a *attacher) Attach(ctx context.Context, attachment attachments.Attachment) (cni.Decision, error) {
	if err := a.Ready(); err != nil {
		return cni.Decision{}, err
	}
	if err := a.WriteClaims(); err != nil {
		return cni.Decision{}, err
	}
	labels, ended, known := a.pods.Pod(ctx, attachment.Pod)
	attachment.Labels, attachment.Ended = labels, ended
	if err := a.put(attachment); err != nil {
		return cni.Decision{}, err
	}
	if known { // SetPod may have come before put
		if labels, ended, known = a.pods.Pod(ctx, attachment.Pod); known {
			if _, err := a.SetPod(attachment.Pod, labels, ended); err != nil {
				return cni.Decision{}, err
			}
		}
	}
	if !known && slices.Contains(a.state.claimingNamespaces(), attachment.Pod.Namespace) {
		return cni.Decision{}, &cni.Failure{Reason: cni.PodUnknown, Message: fmt.Sprintf(
			"the labels of the pod %s are not known, and Services of its namespace may claim it", attachment.Pod)}
	}
	return a.decide(ctx, attachment.IPs, false)
}

// decide returns what the kernel holds for addresses after a sync that begins now.
func (a *attacher) decide(ctx context.Context, ips []netip.Addr, look bool) (cni.Decision, error) {
	if err := a.await(ctx, look); err != nil {
		return cni.Decision{}, &cni.Failure{Reason: cni.NotWritten, Message: err.Error()}
	}
	var bindings []cni.Binding
	for _, ip := range ips {
		for _, b := range a.state.bindingsOf(ip) {
			bindings = append(bindings, cni.Binding{IP: b.Pod, Protocol: string(b.Protocol), EgressIP: b.EgressIP, Service: b.Service.String()})
		}
	}
	return cni.Decide(bindings), nil
}

// Detach is part of [cni.Node].
func (a *attacher) Detach(ctx context.Context, containerID string) error {
	a.mu.Lock()
	_, known, err := a.store.Release(containerID, time.Now())
	a.tell()
	a.mu.Unlock()
	if !known || err != nil {
		return err
	}
	if err := a.await(ctx, false); err != nil {
		return &cni.Failure{Reason: cni.NotWritten, Message: err.Error()}
	}
	return nil
}

// Check is part of [cni.Node].
func (a *attacher) Check(ctx context.Context, containerID string) (cni.Decision, error) {
	attachment, known := a.store.Get(containerID)
	if !known || !attachment.Released.IsZero() {
		return cni.Decision{}, &cni.Failure{Reason: cni.NotAttached, Message: containerID}
	}
	return a.decide(ctx, attachment.IPs, true)
}

// Collect is part of [cni.Node].
func (a *attacher) Collect(ctx context.Context, valid []string, at time.Time) error {
	return a.detachAll(ctx, attachments.Gone(a.store.All(), valid, at.Add(-youngest)))
}

func (a *attacher) detachAll(ctx context.Context, ids []string) error {
	var errs []error
	for _, id := range ids {
		errs = append(errs, a.Detach(ctx, id))
	}
	return errors.Join(errs...)
}

// Ready is part of [cni.Node].
func (a *attacher) Ready() error {
	if missing := a.missing(); len(missing) > 0 {
		return &cni.Failure{Reason: cni.WaitingFor, Missing: missing}
	}
	return nil
}

// Sweep detaches pods whose network namespace is gone without a word from the runtime, and forgets released
// attachments that no EndpointSlice names any more.
func (a *attacher) Sweep(ctx context.Context, exists func(netns string) bool, now time.Time) error {
	var gone []string
	var errs []error
	for _, attachment := range a.store.All() {
		switch released := attachment.Released; {
		case released.IsZero() && attachment.Netns != "" && !exists(attachment.Netns):
			gone = append(gone, attachment.ContainerID)
		case !released.IsZero() && now.Sub(released) > keepReleased && !a.state.names(attachment.Pod):
			errs = append(errs, a.forget(attachment.ContainerID))
		}
	}
	return errors.Join(append(errs, a.detachAll(ctx, gone), a.WriteClaims())...)
}

func (a *attacher) forget(containerID string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.tell()
	return a.store.Forget(containerID)
}

// SetPod takes a pod's newest labels and phase, and tells whether plans may change.
func (a *attacher) SetPod(pod attachments.Pod, labels map[string]string, ended bool) (changed bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.tell()
	for _, attachment := range a.store.All() {
		if attachment.Pod != pod || !attachment.Released.IsZero() || attachment.Ended == ended && attachment.Labels != nil && maps.Equal(attachment.Labels, labels) {
			continue
		}
		attachment.Labels, attachment.Ended = labels, ended
		changed, err = true, errors.Join(err, a.store.Put(attachment))
	}
	return changed, err
}

// WriteClaims writes the namespaces with claims, if they are others than before. Until all objects are known it leaves
// the file of the process before.
func (a *attacher) WriteClaims() error {
	if a.Ready() != nil {
		return nil
	}
	namespaces := a.state.claimingNamespaces()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.written != nil && slices.Equal(a.written, namespaces) {
		return nil
	}
	if err := attachments.WriteClaims(a.claims, namespaces); err != nil {
		return err
	}
	a.written = append([]string{}, namespaces...)
	return nil
}

// awaitAll returns when each loop has made a sync that began after the call.
func awaitAll(ctx context.Context, loops ...func(context.Context) error) error {
	errs := make([]error, len(loops))
	var waiting sync.WaitGroup
	for i, await := range loops {
		waiting.Go(func() { errs[i] = await(ctx) })
	}
	waiting.Wait()
	return errors.Join(errs...)
}

// awaitSyncs returns when a sync that began after the call has succeeded in both IP families.
func (e *Extension) awaitSyncs(ctx context.Context, look bool) error {
	var loops []func(context.Context) error
	for _, f := range e.families {
		if look {
			f.reconciler.RequestLook()
		}
		loops = append(loops, f.loop.Await)
	}
	return awaitAll(ctx, loops...)
}

// attachedAddresses returns the addresses of all attachments.
func (s *state) attachedAddresses() []netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.attachments))
}

// bindingsOf returns those of a pod's address as of the last update.
func (s *state) bindingsOf(ip netip.Addr) []plan.Binding {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.planners[familyOf(ip)].BindingsOf(ip)
}

// claimingNamespaces returns the namespaces of Services with claims, sorted.
func (s *state) claimingNamespaces() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	namespaces := map[string]bool{}
	for name, svc := range s.services {
		if svc.claims(netip.Addr.IsValid) {
			namespaces[name.Namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(namespaces))
}

// names tells whether an EndpointSlice names a pod.
func (s *state) names(pod attachments.Pod) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for owner, list := range s.slices {
		if owner.Namespace == pod.Namespace && slices.ContainsFunc(list, func(slice *discovery.EndpointSlice) bool { return namesPod(slice, pod) }) {
			return true
		}
	}
	return false
}

func namesPod(slice *discovery.EndpointSlice, pod attachments.Pod) bool {
	return slices.ContainsFunc(slice.Endpoints, func(e discovery.Endpoint) bool {
		return e.TargetRef != nil && e.TargetRef.Kind == "Pod" && string(e.TargetRef.UID) == pod.UID
	})
}
