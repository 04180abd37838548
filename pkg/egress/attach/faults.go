package attach

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/cni"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/failure"
)

// pluginFault is something that keeps the CNI plugin from doing its work on this node.
type pluginFault string

const (
	// unlisted: the list of plugins does not have it, so pods start without it.
	unlisted pluginFault = "unlisted"
	// unanswered: there is no socket for it, so pods of namespaces with egress IPs do not start.
	unanswered pluginFault = "unanswered"
	// unlabelled: nothing tells the labels of pods, so pods of namespaces with egress IPs do not start.
	unlabelled pluginFault = "unlabelled"
	// misplaced: it is the first of the list, so no pod starts.
	misplaced pluginFault = "misplaced"
)

// explains is what people are told of a fault.
var explains = map[pluginFault]string{
	unlisted:   "the CNI plugin " + cni.Plugin + " is missing, so the first packets of pods that start now may use a wrong source address: ",
	unanswered: "the CNI plugin " + cni.Plugin + " is not answered, so where it is installed pods of namespaces with egress IPs do not start: ",
	unlabelled: "this node does not learn the labels of its pods, so it does not install the CNI plugin " + cni.Plugin + ", and where that is installed pods of namespaces with egress IPs do not start: ",
	misplaced:  "the CNI plugin " + cni.Plugin + " is the first of its list, so no pod starts: ",
}

// Reasons of Events about a Node.
const (
	PluginFailing plan.Reason = "CNIPluginFailing"
	pluginListed  plan.Reason = "CNIPluginInstalled"
)

// pluginFaults are those that there are now, for people. Its zero value has none.
type pluginFaults struct {
	mu   sync.Mutex
	told map[pluginFault]failure.Streak
}

// set notes a fault, or with nil that there is none, and tells whether that is new.
func (f *pluginFaults) set(kind pluginFault, err error) (changed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.told == nil {
		f.told = map[pluginFault]failure.Streak{}
	}
	told := f.told[kind]
	changed = told.Changes(err)
	f.told[kind] = told
	return changed
}

func (f *pluginFaults) has(kind pluginFault) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.told[kind].Err() != nil
}

func (f *pluginFaults) all() (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, kind := range slices.Sorted(maps.Keys(f.told)) {
		if err := f.told[kind].Err(); err != nil {
			all = append(all, explains[kind]+err.Error())
		}
	}
	return all
}

// fails notes what keeps the CNI plugin from doing its work, or with nil that it does not.
func (a *Attacher) fails(kind pluginFault, err error) {
	pluginFaultGauge.WithLabelValues(string(kind)).Set(map[bool]float64{true: 1}[err != nil])
	if !a.faults.set(kind, err) {
		return
	}
	if err != nil {
		a.logger.Error(err, "The CNI plugin does not do its work; will retry, the same failure is not logged again", "fault", kind)
	}
	a.node.FaultsChanged()
}

// Problems are what keeps the CNI plugin from doing its work, for people.
func (a *Attacher) Problems() []string {
	if a == nil {
		return nil
	}
	return a.faults.all()
}

// Warnings returns what a verification says of the CNI plugin: what keeps it from doing its work, and the pods that
// have started without it. Nil if no pod has started with it, and none should.
func (a *Attacher) Warnings(ctx context.Context) []string {
	faults := a.Problems()
	if a == nil || len(faults) == 0 && !a.usesPlugin() {
		return nil
	}
	warnings := []string{}
	for _, fault := range faults {
		warnings = append(warnings, status.Warning+fault)
	}
	pods, err := a.withoutPlugin(ctx)
	if err != nil {
		return append(warnings, fmt.Sprintf("%sthe pods that started without it are unknown: %v", status.Warning, err))
	}
	for _, pod := range pods {
		warnings = append(warnings, fmt.Sprintf("%sthe pod %s (%v) started without it, so EndpointSlices alone bind it; it starts with the plugin when it is recreated", status.Warning, pod.Pod, pod.ips[0]))
	}
	return warnings
}

// usesPlugin tells whether pods start with the CNI plugin, or should.
func (a *Attacher) usesPlugin() bool {
	return a.config.Install != "" || len(a.store.All()) > 0
}

// withoutPlugin returns the pods that run on this node and are not attached, sorted by name.
func (a *Attacher) withoutPlugin(ctx context.Context) ([]podObject, error) {
	ctx, cancel := context.WithTimeout(ctx, kubeletPatience)
	defer cancel()
	pods, err := a.pods.All(ctx)
	if err != nil {
		return nil, err
	}
	attached := cluster.AddressSet{}
	for _, attachment := range a.store.All() {
		if attachment.Released.IsZero() {
			attached.Add(attachment.IPs)
		}
	}
	pods = slices.DeleteFunc(pods, func(pod podObject) bool { return pod.ended || len(pod.ips) == 0 || attached.AnyOf(pod.ips) })
	slices.SortFunc(pods, func(a, b podObject) int { return cmp.Compare(a.Pod.String(), b.Pod.String()) })
	return pods, nil
}
