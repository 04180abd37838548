package attach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/cni"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/kernel/portsecurity"
	"github.com/openshift/origin-node/pkg/wake"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// Pods tells of the pods on this node.
type Pods interface {
	// Known returns a pod if it is known now.
	Known(pod attachments.Pod) (podObject, bool)
	// Find waits a while for a pod that is not known, or until ctx ends, and says why it is not known then.
	Find(ctx context.Context, pod attachments.Pod) (podObject, error)
	// All returns those of the node.
	All(ctx context.Context) ([]podObject, error)
	// Available returns why no pod's labels could be told now, or nil.
	Available(ctx context.Context) error
}

const (
	// keepReleased is how long it is remembered that a pod gave its address back: an EndpointSlice that is late names it
	// after its end. It bounds what a wrong word of an end can do.
	keepReleased = 10 * time.Minute
	// youngest is how old an attachment is at least that a runtime's list of sandboxes can be without.
	youngest = 2 * time.Minute
	// sweepWait is how long a sweep waits for the kernel.
	sweepWait = 5 * time.Second
)

// Attacher decides what the CNI plugin asks. It is a [cni.Node].
type Attacher struct {
	ctx    context.Context
	logger klog.Logger
	config Config
	node   Node
	faults pluginFaults

	state *cluster.State
	store *attachments.Store
	pods  Pods
	// released is the folder in which the plugin leaves notes.
	released string
	claims   *claimsFile
	// exists tells whether there is a network namespace, as far as this process sees.
	exists func(netns string) bool
	// seesProcesses tells whether this process sees all others of the machine.
	seesProcesses func() bool
	// leading returns those of interfaces that lead to a pod, each to one.
	leading func(interfaces []string) []string
	// unnamedSince has since when containers are bound by their labels alone, as the last sweep found them.
	unnamedSince map[string]time.Time
	// claimed has a value when other namespaces may have claims than are noted; nil if nobody waits for it.
	claimed wake.Signal
}

// load tells the state of all attachments that an earlier process knew. Call it before the first plan.
func (a *Attacher) load() error {
	err := a.takeLeft(time.Now())
	a.follow()
	return err
}

// takeLeft takes what the plugin has noted of pods that have ended.
func (a *Attacher) takeLeft(now time.Time) error {
	taken, err := a.store.TakeLeft(a.released, now)
	if len(taken) > 0 {
		a.follow()
	}
	return err
}

// follow brings the state's attachments in line with the store's, and tells the node of all. Call it after each change that the state or the
// node has to know of. Lists have numbers, so it does not matter who comes first. Its cost is linear in the number of attachments.
func (a *Attacher) follow() {
	number, all := a.store.Numbered()
	var planned []plan.Attachment
	for ip, owner := range attachments.ByAddress(all) {
		planned = append(planned, plan.Attachment{
			Addr: ip, Pod: plan.Pod{Namespace: owner.Pod.Namespace, Name: owner.Pod.Name}, UID: uidOf(owner), Node: a.state.Config.NodeName,
			Labels: owner.Labels, Ended: owner.Ended, Released: !owner.Released.IsZero(),
		})
	}
	a.state.SetAttachments(number, planned)
	if a.node.Follow != nil {
		a.node.Follow(number, all)
	}
}

// uidOf returns the UID of a pod's object in the API; empty if it is unknown.
func uidOf(a attachments.Attachment) string {
	if a.Static {
		return a.Object
	}
	return cmp.Or(a.Object, a.Pod.UID)
}

// put takes an attachment, unless ctx has ended: the runtime may have told of the pod's end since. A process that hung may
// learn of both at once.
func (a *Attacher) put(ctx context.Context, attachment attachments.Attachment) error {
	attachment.Interfaces = a.leading(attachment.Interfaces) // asks the kernel, which may take a while
	err := a.store.Put(ctx, attachment)
	if errors.Is(err, attachments.ErrEnded) {
		return &cni.Failure{Reason: cni.Invalid, Message: fmt.Sprintf("the container %s has ended; a pod that starts again has another one", attachment.ContainerID)}
	}
	a.follow()
	return err
}

// Attach is part of [cni.Node].
func (a *Attacher) Attach(ctx context.Context, attachment attachments.Attachment) (cni.Decision, error) {
	if err := a.takeLeft(time.Now()); err != nil {
		return cni.Decision{}, err
	}
	if !a.exists(attachment.Netns) {
		attachment.Netns = "" // so nothing follows from that it does not exist later
	}
	namespace := attachment.Pod.Namespace
	object, known := a.pods.Known(attachment.Pod)
	missing := a.waits()
	unknown := errNotAsked
	if !known && missing == nil && a.state.ClaimsIn(namespace) {
		object, unknown = a.pods.Find(ctx, attachment.Pod)
		known = unknown == nil
	}
	if known {
		object.describe(&attachment)
	}
	if err := a.put(ctx, attachment); err != nil {
		return cni.Decision{}, err
	}
	a.node.Attached(ctx)
	if object, known := a.pods.Known(attachment.Pod); known { // it may have changed before put
		if _, err := a.setPod(object); err != nil {
			return cni.Decision{}, err
		}
	}
	switch claimed := a.state.ClaimsIn(namespace); {
	case missing != nil:
		return cni.Decision{}, missing
	case claimed && !known:
		return cni.Decision{}, &cni.Failure{Reason: cni.PodUnknown, Message: fmt.Sprintf(
			"the labels of the pod %s are not known, and Services of its namespace may claim it: %v", attachment.Pod, unknown)}
	case claimed:
		if err := a.addClaims(); err != nil && !a.claims.has(namespace) {
			return cni.Decision{}, &cni.Failure{Reason: cni.NotNoted, Message: err.Error()}
		}
	}
	if err := a.assign(ctx, attachment.ContainerID); err != nil {
		return cni.Decision{}, err
	}
	decision, err := a.decide(ctx, attachment.ContainerID, attachment.IPs, false)
	if a.node.Recorded != nil {
		a.node.Recorded(ctx, attachment.ContainerID)
	}
	if err == nil {
		err = context.Cause(ctx) // perhaps it is not written down
	}
	return decision, err
}

// decide returns what the kernel holds for a pod's addresses after a sync that begins now.
func (a *Attacher) decide(ctx context.Context, id string, ips []netip.Addr, look bool) (cni.Decision, error) {
	if err := a.awaitKernel(ctx, familiesOf(ips), look); err != nil {
		return cni.Decision{}, err
	}
	attachment, _ := a.store.Get(id)
	var bindings []cni.Binding
	for _, ip := range ips {
		for _, b := range a.state.BindingsOf(ip) {
			binding := cni.Binding{IP: b.Pod, Protocol: string(b.Protocol), EgressIP: b.EgressIP, Service: b.Service.String(), Via: a.node.Via(b.EgressIP)}
			for _, p := range attachment.Ports {
				if p.IP == b.Pod && p.EgressIP == b.EgressIP && !p.Second {
					binding.Ports = &cni.Ports{First: p.First, Last: p.Last, Shared: p.Shared}
				}
			}
			bindings = append(bindings, binding)
		}
	}
	return cni.Decide(bindings), nil
}

// awaitKernel waits for these IP families alone: where one cannot be written, pods of the other one start and end all the same.
func (a *Attacher) awaitKernel(ctx context.Context, families []v1.IPFamily, look bool) error {
	if err := a.node.Await(ctx, families, look); err != nil {
		return &cni.Failure{Reason: cni.NotWritten, Message: errors.Join(err, a.node.Failure(families)).Error()}
	}
	return nil
}

// familiesOf returns the IP families that addresses are of.
func familiesOf(ips []netip.Addr) (families []v1.IPFamily) {
	for _, ip := range ips {
		if family := cluster.FamilyOf(ip); !slices.Contains(families, family) {
			families = append(families, family)
		}
	}
	return families
}

// Detach is part of [cni.Node].
func (a *Attacher) Detach(ctx context.Context, containerID string) error {
	return a.detach(ctx, []string{containerID}, time.Now())
}

// detach releases attachments, and returns when nothing in the kernel is for them any more.
func (a *Attacher) detach(ctx context.Context, ids []string, now time.Time) error {
	uncleared, ips, err := a.release(ids, now)
	if len(uncleared) == 0 {
		return err
	}
	if err := errors.Join(err, a.awaitKernel(ctx, familiesOf(ips), false)); err != nil {
		return err
	}
	return a.clear(uncleared)
}

// release returns those of these attachments that the kernel may hold something for, and their addresses.
func (a *Attacher) release(ids []string, now time.Time) (uncleared []string, ips []netip.Addr, err error) {
	defer a.follow()
	for _, id := range ids {
		attachment, known, failed := a.store.Release(id, now)
		if err = errors.Join(err, failed); known && !attachment.Cleared {
			uncleared, ips = append(uncleared, id), append(ips, attachment.IPs...)
		}
	}
	return uncleared, ips, err
}

func (a *Attacher) clear(ids []string) (err error) {
	for _, id := range ids {
		_, failed := a.store.Change(id, func(attachment *attachments.Attachment) { attachment.Cleared = !attachment.Released.IsZero() })
		err = errors.Join(err, failed)
	}
	return err
}

// Check is part of [cni.Node].
func (a *Attacher) Check(ctx context.Context, containerID string) (cni.Decision, error) {
	attachment, known := a.store.Get(containerID)
	if !known || !attachment.Released.IsZero() {
		return cni.Decision{}, &cni.Failure{Reason: cni.NotAttached, Message: containerID}
	}
	if err := a.waits(); err != nil {
		return cni.Decision{}, err
	}
	decision, err := a.decide(ctx, containerID, attachment.IPs, true)
	if err != nil && a.node.Failure(familiesOf(attachment.IPs)) == nil {
		return cni.Decision{}, &cni.Failure{Reason: cni.Late, Message: err.Error()}
	}
	return decision, err
}

// Collect is part of [cni.Node]. A pod whose network namespace exists has not ended, whatever the runtime says.
func (a *Attacher) Collect(ctx context.Context, valid []string, at time.Time) error {
	all := slices.DeleteFunc(a.store.All(), func(attachment attachments.Attachment) bool {
		return attachment.Netns != "" && a.exists(attachment.Netns)
	})
	return a.detach(ctx, attachments.Gone(all, valid, at.Add(-youngest)), at)
}

// waits returns what is waited for as an error of [cni.Node], or nil.
func (a *Attacher) waits() error {
	if missing := a.node.Missing(); len(missing) > 0 {
		return &cni.Failure{Reason: cni.WaitingFor, Missing: missing}
	}
	return nil
}

// Ready is part of [cni.Node].
func (a *Attacher) Ready() error {
	if err := a.node.Failure(a.state.PodFamilies()); err != nil {
		return &cni.Failure{Reason: cni.NotWritten, Message: err.Error()}
	}
	return a.waits()
}

// Sweep does what nobody asks for: it writes what could not be written, takes what the plugin has noted, detaches pods
// whose network namespace is gone without a word from the runtime, and forgets those that were released long ago.
func (a *Attacher) Sweep(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, sweepWait)
	defer cancel()
	errs := []error{a.addClaims(), a.store.Flush()}
	errs = append(errs, a.takeLeft(now))
	var gone, old []string
	for _, attachment := range a.store.All() {
		switch released := attachment.Released; {
		case released.IsZero() && a.hasEnded(attachment.Netns):
			gone = append(gone, attachment.ContainerID)
		case !released.IsZero() && now.Sub(released) > keepReleased && (attachment.Ports == nil || attachment.Recorded):
			old = append(old, attachment.ContainerID)
		case !released.IsZero() && !attachment.Cleared:
			gone = append(gone, attachment.ContainerID)
		}
	}
	return errors.Join(append(errs, a.forget(old), a.detach(ctx, gone, now), a.dropClaims(ctx))...)
}

// hasEnded tells whether a network namespace has gone. A process that does not see the folder of the others does not know: the one before,
// which has seen them, may have run beside other mounts. That of a process, in /proc, goes with its folder, if this process sees all others.
func (a *Attacher) hasEnded(netns string) bool {
	switch {
	case netns == "", a.exists(netns):
		return false
	case strings.HasPrefix(netns, "/proc/"):
		return a.seesProcesses()
	}
	return a.exists(filepath.Dir(netns))
}

// seesProcesses tells whether this process is in the machine's own PID namespace (linux/proc_ns.h: PROC_PID_INIT_INO).
func seesProcesses() bool {
	at, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && at == "pid:[4026531836]"
}

func (a *Attacher) forget(ids []string) (err error) {
	if len(ids) == 0 {
		return nil
	}
	defer a.follow()
	for _, id := range ids {
		err = errors.Join(err, a.store.Forget(id))
	}
	return err
}

// setPod takes a pod's newest labels and phase, and tells whether plans may change. They hold after an error, too.
func (a *Attacher) setPod(object podObject) (changed bool, err error) {
	known := false
	for _, attachment := range a.store.All() {
		if !object.is(attachment.Pod) || !attachment.Released.IsZero() {
			continue
		}
		known = true
		if object.describes(attachment) {
			continue
		}
		changed = true
		_, failed := a.store.Change(attachment.ContainerID, object.describe)
		err = errors.Join(err, failed)
	}
	if known { // who has changed it before may not have told the state yet
		a.follow()
	}
	return changed, err
}

// addClaims adds namespaces with claims to the file. Until all objects are known it leaves the file of the process
// before.
func (a *Attacher) addClaims() error {
	if a.waits() != nil {
		return nil
	}
	return a.claims.add(a.state.ClaimingNamespaces())
}

// ClaimsMayDiffer has claims noted at once: this process may end at any moment, and pods that start then must find theirs.
func (a *Attacher) ClaimsMayDiffer() {
	if a == nil {
		return
	}
	a.claimed.Send()
}

// dropClaims removes namespaces without claims from the file when nothing in the kernel is for them any more.
func (a *Attacher) dropClaims(ctx context.Context) error {
	noted, addition := a.claims.size()
	before := a.state.ClaimingNamespaces()
	if a.waits() != nil || len(before) >= noted {
		return nil
	}
	if err := a.awaitKernel(ctx, a.state.PodFamilies(), false); err != nil {
		return err
	}
	return a.claims.keep(append(before, a.state.ClaimingNamespaces()...), addition)
}

// Behind returns what the CNI plugin has told of who is behind which interface.
func (a *Attacher) Behind() (told []portsecurity.Told) {
	if a == nil {
		return nil
	}
	for _, attachment := range a.store.All() {
		if attachment.Released.IsZero() && len(attachment.Interfaces) > 0 {
			told = append(told, portsecurity.Told{Interfaces: attachment.Interfaces, Addresses: attachment.IPs})
		}
	}
	return told
}
