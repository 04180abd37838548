package egress

import (
	"slices"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/proxy"
)

// provider is a proxy.Provider that lets an Extension see what the proxier is told.
type provider struct {
	proxy.Provider
	extension *Extension
	// told counts the kinds of objects of which the proxier knows that it knows them all.
	told atomic.Int32
}

// Wrap returns a Provider to be run in the place of proxier, which serves these IP
// families. It must be called once, before the Provider is told anything.
func (e *Extension) Wrap(proxier proxy.Provider, served ...v1.IPFamily) proxy.Provider {
	e.proxier, e.served = proxier, served
	e.state.setServed(served)
	return &provider{Provider: proxier, extension: e}
}

func (p *provider) OnServiceAdd(service *v1.Service) {
	p.extension.noteChange(p.extension.state.setService(service), time.Now())
	p.Provider.OnServiceAdd(service)
}

func (p *provider) OnServiceUpdate(oldService, service *v1.Service) {
	p.extension.noteChange(p.extension.state.setService(service), time.Now())
	p.Provider.OnServiceUpdate(oldService, service)
}

func (p *provider) OnServiceDelete(service *v1.Service) {
	p.extension.noteChange(p.extension.state.deleteService(service), time.Now())
	p.Provider.OnServiceDelete(service)
}

// OnServiceSynced notes it first: our rules need not wait for all of the proxier's.
func (p *provider) OnServiceSynced() {
	p.extension.noteKnown(services)
	p.Provider.OnServiceSynced()
	p.retryFirstSync()
}

func (p *provider) OnEndpointSliceAdd(slice *discovery.EndpointSlice) {
	p.setSlice(slice)
	p.Provider.OnEndpointSliceAdd(slice)
}

func (p *provider) OnEndpointSliceUpdate(oldSlice, slice *discovery.EndpointSlice) {
	p.setSlice(slice)
	p.Provider.OnEndpointSliceUpdate(oldSlice, slice)
}

func (p *provider) OnEndpointSliceDelete(slice *discovery.EndpointSlice) {
	p.extension.noteChange(p.extension.state.deleteSlice(slice), time.Now())
	p.Provider.OnEndpointSliceDelete(slice)
}

func (p *provider) OnEndpointSlicesSynced() {
	p.extension.noteKnown(slicesKind)
	p.Provider.OnEndpointSlicesSynced()
	p.retryFirstSync()
}

// retryFirstSync is called when the proxier has been told that it knows all objects of a kind. With
// the last of two it syncs, outside of its runner: if that failed, it would not be tried again for
// an hour. The two come side by side; the sync may have been in either, and both are over when the
// second is here.
func (p *provider) retryFirstSync() {
	failed := func(family v1.IPFamily) bool { return !p.extension.syncers[family].hasProxierSynced() }
	if p.told.Add(1) == 2 && slices.ContainsFunc(p.extension.served, failed) {
		p.Provider.Sync()
	}
}

func (p *provider) OnTopologyChange(labels map[string]string) {
	p.extension.setTopology(labels)
}

// SyncLoop runs the proxier's loop, which does not return, and the extension's beside it.
func (p *provider) SyncLoop() {
	p.extension.loop.Go(p.extension.run)
	p.Provider.SyncLoop()
}

func (p *provider) setSlice(slice *discovery.EndpointSlice) {
	changed, err := p.extension.state.setSlice(slice)
	if err != nil {
		p.extension.logger.Error(err, "EndpointSlice has addresses that cannot be bound", "endpointSlice", klog.KObj(slice))
	}
	p.extension.noteChange(changed, changeTime(slice))
}

// changeTime returns when what an EndpointSlice tells of came about, as its controller
// says, or now.
func changeTime(slice *discovery.EndpointSlice) time.Time {
	now := time.Now()
	at, err := time.Parse(time.RFC3339Nano, slice.Annotations[v1.EndpointsLastChangeTriggerTime])
	if err != nil || at.Before(started) || at.After(now) {
		return now // not said, before this process could act, or another clock's
	}
	return at
}

var started = time.Now()
