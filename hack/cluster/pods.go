//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/openshift/origin-node/hack/lab"
)

// Pods are hosts of a lab that a [Kubelet] runs pods in; its Start and Stop are those
// of the Kubelet. Each host tells its clients whom it sees. The methods may be called
// from several goroutines.
type Pods struct {
	Lab *lab.Lab
	// Nodes are the hosts of the nodes, by the names of their Node objects.
	Nodes map[string]*lab.Host
	// Port is the one that pods serve at, see [Serve].
	Port int
	// Started, if not nil, is told of each pod that has been started before the API server is;
	// Stopping of each that is about to be taken away. They are set before there are pods.
	Started, Stopping func(pod *v1.Pod, host *lab.Host)

	mu    sync.Mutex
	hosts map[cache.ObjectName]*lab.Host
}

// Start gives a pod a host on its node.
func (p *Pods) Start(_ context.Context, pod *v1.Pod) ([]netip.Addr, error) {
	node := p.Nodes[pod.Spec.NodeName]
	if node == nil {
		return nil, fmt.Errorf("there is no node %q", pod.Spec.NodeName)
	}
	host, err := p.Lab.AddPodOn(node)
	if err != nil {
		return nil, err
	}
	if err := Serve(host, p.Port); err != nil {
		return nil, errors.Join(err, p.Lab.RemovePod(host))
	}
	p.mu.Lock()
	if p.hosts == nil {
		p.hosts = map[cache.ObjectName]*lab.Host{}
	}
	p.hosts[cache.MetaObjectToName(pod)] = host
	p.mu.Unlock()
	if p.Started != nil {
		p.Started(pod, host)
	}
	return valid([]netip.Addr{host.V4, host.V6}), nil
}

// Stop removes a pod's host. It does nothing if there is none.
func (p *Pods) Stop(_ context.Context, pod *v1.Pod) error {
	p.mu.Lock()
	host := p.hosts[cache.MetaObjectToName(pod)]
	delete(p.hosts, cache.MetaObjectToName(pod))
	p.mu.Unlock()
	if host == nil {
		return nil
	}
	if p.Stopping != nil {
		p.Stopping(pod, host)
	}
	return p.Lab.RemovePod(host)
}

// Host returns a pod's host; nil if the pod does not run yet, or any more.
func (p *Pods) Host(namespace, name string) *lab.Host {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hosts[cache.NewObjectName(namespace, name)]
}

// In returns the hosts of the pods in a namespace, by their names.
func (p *Pods) In(namespace string) map[string]*lab.Host {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := map[string]*lab.Host{}
	for name, host := range p.hosts {
		if name.Namespace == namespace {
			found[name.Name] = host
		}
	}
	return found
}

// Serve starts servers on a host, for TCP and UDP in the families that it has, which answer each client with the
// address that they see it from.
func Serve(host *lab.Host, port int) error {
	for addr, networks := range map[netip.Addr][]string{host.V4: {"tcp4", "udp4"}, host.V6: {"tcp6", "udp6"}} {
		if !addr.IsValid() {
			continue
		}
		for _, network := range networks {
			if _, err := host.ServeWhoami(network, port); err != nil {
				return err
			}
		}
	}
	return nil
}
