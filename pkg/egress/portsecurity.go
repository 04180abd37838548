package egress

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/egress/tell"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/portsecurity"
)

// PortSecurity is whether other pods are kept from using the addresses of bound pods.
type PortSecurity struct {
	Enabled bool
	// Unavailable is why this kernel cannot; nil if it can.
	Unavailable error
}

// Reasons of Events about a Node.
const (
	sourcesUnchecked    plan.Reason = "PodSourcesUnchecked"
	addressClaimedTwice plan.Reason = "PodAddressClaimedTwice"
)

// portFault is why sources are not checked as they should be.
type portFault string

const (
	portsUnavailable portFault = "unavailable"   // this kernel cannot
	portsUnwritten   portFault = "unwritten"     // it cannot be written
	portsClaimed     portFault = "claimed_twice" // the address of a bound pod is behind another interface, too
	portsRedirected  portFault = "redirected"    // a tc filter takes packets past the check
)

// preparePortSecurity makes what checks the sources of what pods send, if they are to be checked and can be.
func (e *Extension) preparePortSecurity() {
	if !e.config.PortSecurity.Enabled || e.config.PortSecurity.Unavailable != nil {
		return
	}
	e.ports = portsecurity.NewKeeper(portsecurity.Config{
		Own: e.ownAddresses, Told: e.attacher.Behind, Period: e.config.SyncPeriod / 2,
		Changed: func() {
			e.events.SetTroubles(e.troubles())
			e.statusChanged()
		},
		Placed: e.placed,
	})
}

// startPortSecurity begins to check sources, until the context ends.
func (e *Extension) startPortSecurity() {
	if e.ports != nil {
		e.running.Go(func() { e.ports.Run(klog.NewContext(e.ctx, e.logger)) })
	}
}

// ownAddresses returns this node's addresses, by which other nodes reach it.
func (e *Extension) ownAddresses() (own []netip.Addr) {
	for _, name := range cluster.Families {
		if address := e.state.Primary(e.config.NodeName, name); address.IsValid() {
			own = append(own, address)
		}
	}
	return own
}

// guardSources returns when the sources of added bindings are checked, or when that has failed.
func (f *family) guardSources(ctx context.Context, ports *portsecurity.Keeper, change kernel.Change) {
	if ports != nil {
		f.unguarded = append(f.unguarded, change.Removed...)
		ports.Bind(ctx, kernel.Family(f.name), change.Added, change.Networks.ClusterCIDRs)
	}
}

// unguardSources has the sources of bindings not checked any more that have gone from the kernel.
func (f *family) unguardSources(ctx context.Context, ports *portsecurity.Keeper) {
	if ports != nil {
		ports.Unbind(ctx, f.unguarded)
		f.unguarded = nil
	}
}

// portTroubles are what is wrong with the check of sources, for people.
func (e *Extension) portTroubles() (faults []portFault, troubles []tell.Trouble) {
	var now portsecurity.Status
	if e.ports != nil {
		now = e.ports.Status()
	}
	return portTroubles(e.config.PortSecurity.Unavailable, now)
}

func portTroubles(unavailable error, now portsecurity.Status) (faults []portFault, troubles []tell.Trouble) {
	add := func(fault portFault, reason plan.Reason, format string, args ...any) {
		faults, troubles = append(faults, fault), append(troubles, tell.Trouble{Reason: reason, Note: fmt.Sprintf(format, args...)})
	}
	const unchecked = "other pods can use the addresses of this node's bound pods, because the sources of their packets are not checked: %v"
	if unavailable != nil {
		add(portsUnavailable, sourcesUnchecked, unchecked, unavailable)
	}
	if now.Fault != nil {
		add(portsUnwritten, sourcesUnchecked, unchecked, now.Fault)
	}
	for _, r := range now.Refused {
		add(portsClaimed, addressClaimedTwice, "a pod claims the address of a bound pod, and its packets with this source address are dropped: %s. See which pod it is with 'ip -details link show %s' on the node", r, r.Interface)
	}
	if names := now.Redirected; len(names) > 0 {
		add(portsRedirected, sourcesUnchecked, "the pods behind %s can use the addresses of this node's bound pods, because a tc filter redirects their packets before the check. "+
			"See 'tc filter show dev %s ingress' on the node; the CNI plugin bandwidth makes such a filter for a pod with the annotation kubernetes.io/egress-bandwidth", some(names), names[0])
	}
	return faults, troubles
}

// some names no more than a few: there may be one for each pod.
func some(names []string) string {
	const few = 5
	if more := len(names) - few; more > 0 {
		return fmt.Sprintf("%s and %d more interfaces", strings.Join(names[:few], ", "), more)
	}
	return strings.Join(names, ", ")
}

// uncheckedPods returns the addresses of bound pods of this node that are behind no interface that is known.
func (e *Extension) uncheckedPods(ctx context.Context) []netip.Addr {
	if e.ports == nil {
		return nil
	}
	return slices.DeleteFunc(e.ports.Unplaced(ctx), e.state.Away)
}

// portPart is what a verification calls the check of sources, beside the IP families.
const portPart = "port security"

// portDifferences returns what a verification says of the check of sources; nil if there is none.
func (e *Extension) portDifferences(ctx context.Context) (lines []string, err error) {
	_, troubles := e.portTroubles()
	if e.ports == nil && len(troubles) == 0 {
		return nil, nil
	}
	lines = []string{}
	if e.ports != nil {
		if lines, err = e.ports.Compare(ctx); err != nil {
			return nil, fmt.Errorf("compare the check of pods' sources with the kernel: %w", err)
		}
	}
	for _, t := range troubles {
		lines = append(lines, status.Warning+t.Note)
	}
	for _, address := range e.uncheckedPods(ctx) {
		lines = append(lines, fmt.Sprintf("%sother pods may be able to use the address of the bound pod %s, because it is not known behind which interface it is", status.Warning, address))
	}
	return lines, nil
}

var (
	portFaultDesc = tell.Metrics.GaugeDesc("port_security_fault",
		"1 if other pods may use the address of a bound pod, or try to, else 0, by reason. No series where port security was switched off.", "reason")
	uncheckedDesc = tell.Metrics.GaugeDesc("port_security_unchecked_pods",
		"Addresses of bound pods on this node of which it is not known behind which interface they are, by IP family.", "ip_family")
)

// portCollector tells how the check of sources stands, when somebody asks for the metrics.
type portCollector struct{ metrics.BaseStableCollector }

func (*portCollector) DescribeWithStability(descs chan<- *metrics.Desc) {
	descs <- portFaultDesc
	descs <- uncheckedDesc
}

func (*portCollector) CollectWithStability(collected chan<- metrics.Metric) {
	e := current.Load()
	if !e.config.PortSecurity.Enabled {
		return
	}
	gauge := func(desc *metrics.Desc, value float64, label string) {
		collected <- metrics.NewLazyConstMetric(desc, metrics.GaugeValue, value, label)
	}
	faults, _ := e.portTroubles()
	for _, fault := range []portFault{portsUnavailable, portsUnwritten, portsClaimed, portsRedirected} {
		gauge(portFaultDesc, map[bool]float64{true: 1}[slices.Contains(faults, fault)], string(fault))
	}
	unchecked := map[v1.IPFamily]int{}
	for _, address := range e.uncheckedPods(e.ctx) {
		unchecked[cluster.FamilyOf(address)]++
	}
	drops, err := portsecurity.Drops(e.ctx)
	if err != nil {
		// Series that cannot be computed are omitted.
		e.logger.V(2).Info("Cannot read the counters of packets with the address of another pod", "err", err)
	}
	for _, name := range cluster.Families {
		gauge(uncheckedDesc, float64(unchecked[name]), string(name))
		if packets, counted := drops[kernel.Family(name)]; counted {
			collected <- metrics.NewLazyConstMetric(dropsDesc, metrics.CounterValue, float64(packets), string(name), "spoofed")
		}
	}
}
