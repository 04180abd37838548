package sourceports

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/cni"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/failure"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/conntrack"
	"github.com/openshift/origin-node/pkg/wake"
)

const (
	// fullLook is how often it is seen whether pods have their source ports in use, if this node tracks enough flows for that. A look takes
	// at most the fullLookShare part of the time: 2 µs for each flow that is tracked.
	fullLook      = 5 * time.Second
	fullLookShare = 20
	// widenAfter is how long after a pod got a second block it is to use it inside: then the kernel here and the holder of the egress IP know
	// it. What comes earlier is translated into the first one.
	widenAfter = time.Second
)

// fullBlocks is about pods whose blocks are in use towards one destination.
type fullBlocks struct {
	// tracked and count are those of package conntrack.
	tracked func() (int, error)
	count   func(ctx context.Context, family kernel.Family, pods map[netip.Addr]bool) (map[netip.Addr]conntrack.Busiest, error)

	// What follows is protected by the lock of the Allocator.
	//
	// settings are those of source ports in the pods' network namespaces, as far as the CNI plugin has passed them to this process, told what
	// was told of pods, both by container ID.
	settings map[string]*os.File
	told     map[string]map[fullness]bool
	// usage is what the fullest pod of each egress IP uses of its ports.
	usage map[netip.Addr]float64
	// failed is why the last look failed.
	failed failure.Streak
}

// fullness is what is told of a pod, once.
type fullness int

const (
	// unwidened: this process cannot give the pod more ports inside. unwritten: the kernel does not take them. unserved: there is no second
	// block. exhausted: it has two.
	unwidened fullness = iota
	unwritten
	unserved
	exhausted
)

func newFullBlocks() fullBlocks {
	tables := map[kernel.Family]*conntrack.Table{kernel.IPv4: conntrack.NewTable(kernel.IPv4), kernel.IPv6: conntrack.NewTable(kernel.IPv6)}
	return fullBlocks{
		tracked: conntrack.Tracked, settings: map[string]*os.File{}, told: map[string]map[fullness]bool{}, usage: map[netip.Addr]float64{},
		count: func(ctx context.Context, family kernel.Family, pods map[netip.Addr]bool) (map[netip.Addr]conntrack.Busiest, error) {
			return tables[family].Busiest(ctx, pods)
		},
	}
}

// keep forgets all that is of other pods than these. The lock must be held.
func (f *fullBlocks) keep(pods map[string]attachments.Attachment) {
	for id, setting := range f.settings {
		if _, runs := pods[id]; !runs {
			_ = setting.Close() // each write was seen to succeed
			delete(f.settings, id)
		}
	}
	maps.DeleteFunc(f.told, func(id string, _ map[fullness]bool) bool {
		_, runs := pods[id]
		return !runs
	})
}

// lastUsage is what the fullest pod of each egress IP used of its ports at the last look.
func (al *Allocator) lastUsage() map[netip.Addr]float64 {
	al.mu.Lock()
	defer al.mu.Unlock()
	return al.full.usage
}

// setting returns that of a pod's source ports; nil if this process has none.
func (al *Allocator) setting(id string) *os.File {
	al.mu.Lock()
	defer al.mu.Unlock()
	return al.full.settings[id]
}

// isNew notes that something is told of a pod, and tells whether it was not before.
func (al *Allocator) isNew(id string, what fullness) bool {
	al.mu.Lock()
	defer al.mu.Unlock()
	was := al.full.told[id][what]
	kernel.Put(al.full.told, id, what, true)
	return !was
}

// TakeLocalPorts is that of an [attach.Node]: it takes the setting of the source ports inside a pod. The file keeps no network namespace: when that has ended, writes fail.
func (al *Allocator) TakeLocalPorts(id string, setting *os.File) error {
	al.mu.Lock()
	defer al.mu.Unlock()
	if _, has := al.pods[id]; !has {
		return errors.Join(&cni.Failure{Reason: cni.NotAttached, Message: id}, setting.Close())
	}
	if before := al.full.settings[id]; before != nil {
		_ = before.Close() // nothing was written
	}
	al.full.settings[id] = setting
	return nil
}

// apart returns what a pod has first, and what it has besides.
func apart(ports []attachments.Ports) (firsts, seconds []attachments.Ports) {
	for _, p := range ports {
		if p.Second {
			seconds = append(seconds, p)
		} else {
			firsts = append(firsts, p)
		}
	}
	return firsts, seconds
}

// secondsFor returns the ports that a pod has besides its first ones: what it had, but of those egress IPs of which it has lost it, and
// what it was given since. Where it has no first block, there is no second.
func (al *Allocator) secondsFor(a attachments.Attachment, had, firsts []attachments.Ports, bindings []plan.Binding) (seconds []attachments.Ports) {
	given, _ := al.keeper.Of(portblocks.Second(a.ContainerID))
	for _, p := range firsts {
		isSame := func(o attachments.Ports) bool { return o.IP == p.IP && o.EgressIP == p.EgressIP }
		isBound := leadTo(bindings, p.EgressIP)
		i, has := slices.IndexFunc(had, isSame), slices.Contains(given.Of, p.EgressIP)
		switch {
		case p.Shared:
		case i >= 0 && (has && had[i].First == given.Ports.First || !isBound):
			seconds = append(seconds, had[i])
		case has:
			p.First, p.Last, p.Second, p.Since = given.Ports.First, given.Ports.Last, true, time.Now().UTC().Truncate(time.Second)
			seconds = append(seconds, p)
		}
	}
	return seconds
}

// watchFull gives pods a second block before all ports of their first one are in use, until ctx ends.
func (al *Allocator) watchFull(ctx context.Context) {
	for wait := fullLook; wake.Sleep(ctx.Done(), wait); {
		began := time.Now()
		wait = fullLook
		if al.lookForFull(ctx) {
			wait = widenAfter
		}
		wait = max(wait, fullLookShare*time.Since(began))
	}
}

// lookForFull has a look at the pods that have blocks, and tells whether the next one should be soon.
func (al *Allocator) lookForFull(ctx context.Context) (soon bool) {
	pods := al.withBlocks()
	for _, a := range pods {
		al.widen(a)
	}
	busiest := al.busiest(ctx, pods)
	usage := map[netip.Addr]float64{}
	for _, a := range pods {
		isFull := false
		for _, u := range usageOf(a, busiest, al.bindingsOf(a)) {
			usage[u.egressIP] = max(usage[u.egressIP], u.ratio())
			if u.isFull() && !isFull { // one is enough: it has the same ports of all
				isFull = true
				soon = al.relieve(a, u) || soon
			}
		}
	}
	al.mu.Lock()
	al.full.usage = usage
	al.mu.Unlock()
	return soon
}

// withBlocks returns this node's pods that have ports of their own.
func (al *Allocator) withBlocks() (pods []attachments.Attachment) {
	al.mu.Lock()
	defer al.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(al.pods)) {
		if _, _, of := al.pods[id].Block(); len(of) > 0 {
			pods = append(pods, al.pods[id])
		}
	}
	return pods
}

// busiest counts the flows of pods, if there are enough that one of them may need more ports.
func (al *Allocator) busiest(ctx context.Context, pods []attachments.Attachment) map[netip.Addr]conntrack.Busiest {
	least := 1 << 16
	families := map[kernel.Family]map[netip.Addr]bool{}
	for _, a := range pods {
		first, last, _ := a.Block()
		least = min(least, int(last-first)+1)
		for _, p := range a.Ports {
			kernel.Put(families, kernel.Family(cluster.FamilyOf(p.IP)), p.IP, true)
		}
	}
	if len(pods) == 0 {
		return nil
	}
	flows, err := al.full.tracked()
	all := map[netip.Addr]conntrack.Busiest{}
	for family, addresses := range families {
		if err == nil && !nearlyAll(flows, least) {
			break
		}
		counted, failed := al.full.count(ctx, family, addresses)
		if failed != nil && ctx.Err() == nil {
			err = errors.Join(err, failed)
		}
		maps.Copy(all, counted)
	}
	al.complain(err)
	return all
}

// complain logs why it is not known which ports are in use, once.
func (al *Allocator) complain(err error) {
	al.mu.Lock()
	isNew := al.full.failed.Changes(err)
	al.mu.Unlock()
	if isNew && err != nil {
		al.config.Logger.Error(err, "Cannot count the source ports that pods use, so pods that need a second block may not get one; will retry, the same failure is not logged again")
	}
}

// nearlyAll tells whether so many of some ports are in use that the pod should have more.
func nearlyAll(used, ports int) bool { return 4*used >= 3*ports }

// blockUsage is what a pod uses of its ports of an egress IP.
type blockUsage struct {
	egressIP netip.Addr
	// ports is how many it has.
	ports   int
	busiest conntrack.Busiest
}

func (u blockUsage) isFull() bool { return nearlyAll(u.busiest.Ports, u.ports) }

func (u blockUsage) ratio() float64 { return float64(u.busiest.Ports) / float64(u.ports) }

// usageOf returns what a pod with these bindings uses of the ports of its own that it can use inside, by egress IP.
func usageOf(a attachments.Attachment, busiest map[netip.Addr]conntrack.Busiest, bindings []plan.Binding) (all []blockUsage) {
	for _, p := range a.Ports {
		if p.Shared || p.Second && !a.Widened || !leadTo(bindings, p.EgressIP) {
			continue
		}
		size := int(p.Last-p.First) + 1
		if i := slices.IndexFunc(all, func(u blockUsage) bool { return u.egressIP == p.EgressIP }); i >= 0 {
			all[i].ports += size
			continue
		}
		all = append(all, blockUsage{p.EgressIP, size, busiest[p.IP]})
	}
	return all
}

// relieve has a pod get a second block whose first one is nearly full, or tells that it gets no more. It tells whether something more is to
// be done soon.
func (al *Allocator) relieve(a attachments.Attachment, u blockUsage) (soon bool) {
	id := a.ContainerID
	_, _, second := a.SecondBlock()
	switch {
	case len(second) > 0 && !slices.Contains(second, u.egressIP):
		al.tellFull(a, u, exhausted, "its second block could not be had of this egress IP")
		return false
	case len(second) > 0 && a.Widened:
		al.tellFull(a, u, exhausted, "it has two blocks already, and gets no third one")
		return false
	case al.setting(id) == nil:
		al.tellFull(a, u, unwidened, "this process of the node cannot give it more: the pod has started before it, or the CNI plugin is an older one")
		return false
	case len(second) > 0:
		return false // it has just been widened, or that has failed
	}
	before, tried := al.keeper.Of(portblocks.Second(id))
	al.keeper.AddSecond(id)
	after, decided := al.keeper.Of(portblocks.Second(id))
	if len(after.Of) == 0 && (decided || tried && len(before.Of) == 0) {
		al.tellFull(a, u, unserved, "there is no second block: few are free, or none could be claimed")
		return false
	}
	return true
}

// tellFull tells, once, that a pod will not be able to connect to a destination when all of its ports are in use.
func (al *Allocator) tellFull(a attachments.Attachment, u blockUsage, what fullness, why string) {
	if !al.isNew(a.ContainerID, what) {
		return
	}
	al.config.WarnPod(a.Pod.Namespace, a.Pod.Name, uidOf(a), portBlockFull, fmt.Sprintf(
		"this pod uses %d of its %d source ports of %s towards tcp %s, and %s. When all are in use it cannot connect there any more. Let it reuse connections, or give its Service larger blocks (the annotation network.openshift.io/egress-port-block) or more egress IPs, and start the pod again",
		u.busiest.Ports, u.ports, u.egressIP, u.busiest.Destination, why))
}

// widen lets a pod use its second block inside, once. A pod that has set the range itself keeps it: what leaves from other ports than its
// own is translated.
func (al *Allocator) widen(a attachments.Attachment) {
	first, last, _ := a.Block()
	secondFirst, secondLast, of := a.SecondBlock()
	setting := al.setting(a.ContainerID)
	if len(of) == 0 || setting == nil || a.Widened {
		return
	}
	has := kernel.Ports{First: first, Last: last}
	var now kernel.Ports
	text := make([]byte, 64)
	n, _ := setting.ReadAt(text, 0) // it ends with EOF
	if _, err := fmt.Sscan(string(text[:n]), &now.First, &now.Last); err != nil {
		return // it has ended
	}
	wide := portblocks.Widened(has, kernel.Ports{First: secondFirst, Last: secondLast})
	var err error
	if now == has {
		_, err = setting.WriteAt(fmt.Appendf(nil, "%d %d", wide.First, wide.Last), 0)
	}
	if err == nil {
		err = al.config.Attachments().SetWidened(a.ContainerID)
	}
	if err != nil {
		if al.isNew(a.ContainerID, unwritten) {
			al.config.Logger.Error(err, "A pod cannot be given the source ports of its second block; will retry, further failures are not logged", "pod", a.Pod, "ports", wide)
		}
		return
	}
	al.config.Logger.Info("A pod uses a second block of source ports", "pod", a.Pod, "ports", wide, "first", has, "second", kernel.Ports{First: secondFirst, Last: secondLast})
}
