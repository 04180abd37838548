package egress

import (
	"fmt"
	"net/netip"
	"strings"

	"k8s.io/component-base/metrics"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/egress/tell"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/fastpath"
	"github.com/openshift/origin-node/pkg/kernel/portsecurity"
)

// fastPath returns that of established flows; nil if there is none.
func (e *Extension) fastPath() *fastpath.Path { return e.config.Ways.Kernel.Fast }

// placed tells the fast path behind which interfaces pods are.
func (e *Extension) placed(grants portsecurity.Grants) {
	if e.fastPath() == nil {
		return
	}
	places := map[netip.Addr]int{}
	for link, addresses := range grants {
		for _, address := range addresses {
			places[address] = link.Index
		}
	}
	e.fastPath().Place(places)
}

// fastStatus returns which flows take the fast path; nil if there is none.
func (e *Extension) fastStatus() *status.FastPath {
	if e.fastPath() == nil {
		return nil
	}
	return &status.FastPath{All: e.fastPath().All(), Pods: e.fastPath().Taken()}
}

// fastUsage returns what has taken the fast path since it was loaded; nil if there is none.
func (e *Extension) fastUsage() (*status.FastUsage, error) {
	if e.fastPath() == nil {
		return nil, nil
	}
	counts, err := e.fastPath().Counts()
	if err != nil {
		return nil, err
	}
	var sum status.FastUsage
	for _, c := range counts {
		for _, traffic := range []fastpath.Traffic{c.Sent, c.Left, c.Own, c.Answers} {
			sum.Packets += traffic.Packets
		}
	}
	return &sum, nil
}

// fastPart is what a verification calls the fast path, beside the IP families.
const fastPart = "fast path"

// fastWarnings returns what a verification says of the fast path. That packets take the slow path is no difference: they cost more.
func (e *Extension) fastWarnings() (lines []string) {
	if e.fastPath() == nil {
		return nil
	}
	now := e.fastPath().Status()
	const slow = "packets cost more than they need, because they take the slow path: "
	if now.Fault != nil {
		lines = append(lines, status.Warning+slow+now.Fault.Error())
	}
	for _, name := range cluster.Families {
		if why := now.Unusable[kernel.Family(name)]; why != "" {
			lines = append(lines, fmt.Sprintf("%s%s%s: %s", status.Warning, slow, name, why))
		}
	}
	if count := len(now.Refused); count > 0 {
		at := strings.Join(now.Refused[:min(count, 3)], ", ")
		if count > 3 {
			at += fmt.Sprintf(" and %d more interfaces", count-3)
		}
		lines = append(lines, fmt.Sprintf("%s%sa tc filter is at %s. See 'tc filter show dev %s ingress' on the node", status.Warning, slow, at, now.Refused[0]))
	}
	return lines
}

var (
	fastPodsDesc = tell.Metrics.GaugeDesc("fast_path_pods",
		"Addresses of pods on this node, bound or not, whose established flows take the fast path, by IP family. No series where there is no fast path.", "ip_family")
	fastPacketsDesc = tell.Metrics.CounterDesc("fast_path_packets_total",
		"Packets that took the fast path, by IP family and direction: sent to other nodes, left from here after other nodes had sent them, own, which pods of this node sent and which left from here, or answers to pods, counted where they come in and on the pod's node.", "ip_family", "direction")
	fastBytesDesc = tell.Metrics.CounterDesc("fast_path_bytes_total",
		"Bytes of the packets that took the fast path, by IP family and direction.", "ip_family", "direction")
)

// fastCollector tells what took the fast path, when somebody asks for the metrics.
type fastCollector struct{ metrics.BaseStableCollector }

func (*fastCollector) DescribeWithStability(descs chan<- *metrics.Desc) {
	for _, desc := range []*metrics.Desc{fastPodsDesc, fastPacketsDesc, fastBytesDesc} {
		descs <- desc
	}
}

func (*fastCollector) CollectWithStability(collected chan<- metrics.Metric) {
	e := current.Load()
	if e.fastPath() == nil {
		return
	}
	counts, err := e.fastPath().Counts()
	if err != nil {
		// Series that cannot be computed are omitted.
		e.logger.V(2).Info("Cannot read the counters of the fast path", "err", err)
		return
	}
	now := e.fastPath().Status()
	for _, name := range cluster.Families {
		count := counts[kernel.Family(name)]
		collected <- metrics.NewLazyConstMetric(fastPodsDesc, metrics.GaugeValue, float64(now.Pods[kernel.Family(name)]), string(name))
		for direction, traffic := range map[string]fastpath.Traffic{"sent": count.Sent, "left": count.Left, "own": count.Own, "answers": count.Answers} {
			collected <- metrics.NewLazyConstMetric(fastPacketsDesc, metrics.CounterValue, float64(traffic.Packets), string(name), direction)
			collected <- metrics.NewLazyConstMetric(fastBytesDesc, metrics.CounterValue, float64(traffic.Bytes), string(name), direction)
		}
	}
}
