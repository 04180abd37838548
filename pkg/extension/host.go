package extension

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/kubernetes/pkg/proxy"
)

// Families are the IP families.
var Families = []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol}

// Extension acts beside the proxier.
type Extension interface {
	// Attach tells beside which proxier the extension acts. It is called once, before everything
	// else.
	Attach(proxier Proxier)
	// ProxierSynced tells that the proxier has written all of its rules of an IP family. It is
	// called with the proxier's lock held: it must not block, log or call the proxier.
	ProxierSynced(family v1.IPFamily)
	// Run acts until ctx ends.
	Run(ctx context.Context)
}

// Proxier is what an extension may know of the proxier.
type Proxier interface {
	// Served returns the IP families that the proxier writes rules for.
	Served() []v1.IPFamily
	// Repair has the proxier write all of its rules anew. It does not block.
	Repair()
}

// ServiceFollower is an [Extension] that follows what the proxier is told. Each object comes here
// before it comes to the proxier. The objects are the informer's own and must not be changed.
type ServiceFollower interface {
	SetService(service *v1.Service)
	DeleteService(service *v1.Service)
	// ServicesKnown tells that all Services were told.
	ServicesKnown()
	SetEndpointSlice(slice *discovery.EndpointSlice)
	DeleteEndpointSlice(slice *discovery.EndpointSlice)
	// EndpointSlicesKnown tells that all EndpointSlices were told.
	EndpointSlicesKnown()
}

// Host is the proxier as kube-proxy sees it, with extensions beside it. Give it to the proxiers
// (proxy.ContextWithSyncExtension), then Wrap them.
type Host struct {
	proxy.Provider
	ctx        context.Context
	extensions []Extension
	followers  []ServiceFollower
	served     []v1.IPFamily
	running    sync.WaitGroup

	// synced has the IP families in which the proxier has written all of its rules.
	synced [2]atomic.Bool
	// told counts the kinds of objects of which the proxier knows that it knows them all.
	told atomic.Int32

	// labels are the node's that the proxier was told last; nil if it was told none.
	labels atomic.Pointer[map[string]string]
}

var _ proxy.SyncExtension = &Host{}

// NewHost returns a Host whose extensions run until ctx ends.
func NewHost(ctx context.Context, extensions ...Extension) *Host {
	h := &Host{ctx: ctx, extensions: extensions}
	for _, e := range extensions {
		if follower, follows := e.(ServiceFollower); follows {
			h.followers = append(h.followers, follower)
		}
	}
	return h
}

// Wrap returns what is to be run in the place of proxier, which serves these IP families. It must be
// called once.
func (h *Host) Wrap(proxier proxy.Provider, served ...v1.IPFamily) proxy.Provider {
	h.Provider, h.served = proxier, served
	for _, e := range h.extensions {
		e.Attach(h)
	}
	return h
}

// AfterSync is called by the proxier, with its lock held: it only leaves notes.
func (h *Host) AfterSync(family v1.IPFamily, fullSync bool) {
	if !fullSync {
		return
	}
	h.synced[slices.Index(Families, family)].Store(true)
	for _, e := range h.extensions {
		e.ProxierSynced(family)
	}
}

// Knows tells whether the proxier knows all Services and EndpointSlices.
func (h *Host) Knows() bool { return h.told.Load() == 2 }

// SyncLoop runs the proxier's loop, which does not return, and the extensions beside it.
func (h *Host) SyncLoop() {
	for _, e := range h.extensions {
		h.running.Go(func() { e.Run(h.ctx) })
	}
	h.Provider.SyncLoop()
}

// Wait returns when all extensions have ended: after that they write nothing.
func (h *Host) Wait() { h.running.Wait() }

// Served is part of [Proxier].
func (h *Host) Served() []v1.IPFamily { return h.served }

// Repair is part of [Proxier]. A change of topology is the one occasion of the Provider interface
// for it. The proxier's lock may be held for as long as a sync takes, hence the goroutine.
func (h *Host) Repair() {
	go func() {
		for told := h.labels.Load(); ; {
			var labels map[string]string
			if told != nil {
				labels = *told
			}
			h.Provider.OnTopologyChange(labels)
			now := h.labels.Load()
			if now == told {
				return
			}
			told = now // it was told others meanwhile, perhaps before these
		}
	}()
}

// OnTopologyChange keeps the labels, for Repair.
func (h *Host) OnTopologyChange(labels map[string]string) {
	h.labels.Store(&labels)
	h.Provider.OnTopologyChange(labels)
}

// OnServiceAdd is part of proxy.Provider.
func (h *Host) OnServiceAdd(service *v1.Service) {
	h.setService(service)
	h.Provider.OnServiceAdd(service)
}

// OnServiceUpdate is part of proxy.Provider.
func (h *Host) OnServiceUpdate(oldService, service *v1.Service) {
	h.setService(service)
	h.Provider.OnServiceUpdate(oldService, service)
}

func (h *Host) setService(service *v1.Service) {
	h.tell(func(f ServiceFollower) { f.SetService(service) })
}

// tell tells all followers something.
func (h *Host) tell(what func(ServiceFollower)) {
	for _, f := range h.followers {
		what(f)
	}
}

// OnServiceDelete is part of proxy.Provider.
func (h *Host) OnServiceDelete(service *v1.Service) {
	h.tell(func(f ServiceFollower) { f.DeleteService(service) })
	h.Provider.OnServiceDelete(service)
}

// OnServiceSynced tells the extensions first: their rules need not wait for all of the proxier's.
func (h *Host) OnServiceSynced() {
	h.tell(ServiceFollower.ServicesKnown)
	h.Provider.OnServiceSynced()
	h.retryFirstSync()
}

// OnEndpointSliceAdd is part of proxy.Provider.
func (h *Host) OnEndpointSliceAdd(slice *discovery.EndpointSlice) {
	h.setEndpointSlice(slice)
	h.Provider.OnEndpointSliceAdd(slice)
}

// OnEndpointSliceUpdate is part of proxy.Provider.
func (h *Host) OnEndpointSliceUpdate(oldSlice, slice *discovery.EndpointSlice) {
	h.setEndpointSlice(slice)
	h.Provider.OnEndpointSliceUpdate(oldSlice, slice)
}

func (h *Host) setEndpointSlice(slice *discovery.EndpointSlice) {
	h.tell(func(f ServiceFollower) { f.SetEndpointSlice(slice) })
}

// OnEndpointSliceDelete is part of proxy.Provider.
func (h *Host) OnEndpointSliceDelete(slice *discovery.EndpointSlice) {
	h.tell(func(f ServiceFollower) { f.DeleteEndpointSlice(slice) })
	h.Provider.OnEndpointSliceDelete(slice)
}

// OnEndpointSlicesSynced tells the extensions first, as OnServiceSynced.
func (h *Host) OnEndpointSlicesSynced() {
	h.tell(ServiceFollower.EndpointSlicesKnown)
	h.Provider.OnEndpointSlicesSynced()
	h.retryFirstSync()
}

// retryFirstSync is called when the proxier has been told that it knows all objects of a kind. With
// the last of two it syncs, outside of its runner: if that failed, it would not be tried again for
// an hour. The two come side by side; the sync may have been in either, and both are over when the
// second is here.
func (h *Host) retryFirstSync() {
	failed := func(family v1.IPFamily) bool { return !h.synced[slices.Index(Families, family)].Load() }
	if h.told.Add(1) == 2 && slices.ContainsFunc(h.served, failed) {
		h.Provider.Sync()
	}
}
