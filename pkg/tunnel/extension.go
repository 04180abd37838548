package tunnel

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/extension"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
	"github.com/openshift/origin-node/pkg/tunnel/plan"
)

// Config is what an Extension has to know beside the objects.
type Config struct {
	// NodeName is the name of this node's Node object.
	NodeName string
	// Secure and Insecure are the tunnel server's addresses, one of each IP family at most.
	Secure, Insecure []netip.AddrPort
	// Labels are those of a node that has the tunnel's agent: any of them.
	Labels []Label
	// ConfigMap has more ports; none has if it is zero.
	ConfigMap types.NamespacedName
	// Sources are the networks of pods whose connections through this node are redirected, too.
	Sources []netip.Prefix
	// AnyDestination: whatever is not the address of a node that is reached directly.
	AnyDestination bool
	// Backend is how rules are written. The table of nftables needs a kernel for which [redirect.Available] returns nil.
	Backend reconcile.Backend
	// MinSyncPeriod is the least time between two syncs. SyncPeriod is the time within which rules that
	// somebody else has removed are back.
	MinSyncPeriod, SyncPeriod time.Duration
}

// Label is a label with its value.
type Label struct{ Key, Value string }

// LabelKeys are the keys of Labels.
func (c Config) LabelKeys() (keys []string) {
	for _, l := range c.Labels {
		keys = append(keys, l.Key)
	}
	return keys
}

// Extension keeps the rules of a node, beside the proxier of an [extension.Host].
type Extension struct {
	ctx      context.Context
	logger   klog.Logger
	config   Config
	gate     *extension.Gate
	families []*family
	proxier  extension.Proxier
	recorder record.EventRecorder
	running  sync.WaitGroup

	mu sync.Mutex // protects what follows
	// nodes are those of the cluster by name.
	nodes map[string]plan.Node
	// ports are the kubelet's and those of the ConfigMap, portProblems what is wrong with them.
	ports        plan.Ports
	portProblems []plan.Problem
	configMap    v1.ObjectReference
	// told has the problems that people were told of, with the time of the last Event.
	told map[plan.Problem]time.Time
}

// The kinds of objects that plans depend on.
const (
	nodesKind     = "Nodes"
	configMapKind = "ConfigMap"
)

var _ extension.Extension = &Extension{}

// New returns an Extension that acts until ctx ends. Its rules stay then.
func New(ctx context.Context, config Config) *Extension {
	kinds := []string{nodesKind}
	if config.ConfigMap.Name != "" {
		kinds = append(kinds, configMapKind)
	}
	e := &Extension{
		ctx: ctx, logger: klog.LoggerWithName(klog.FromContext(ctx), "tunnel"), config: config,
		gate: extension.NewGate(kinds...), nodes: map[string]plan.Node{},
	}
	e.readPorts(plan.ConfigMap{})
	for _, name := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
		e.families = append(e.families, newFamily(e, name))
	}
	exported.Register()
	return e
}

// Attach is part of [extension.Extension].
func (e *Extension) Attach(proxier extension.Proxier) {
	e.proxier = proxier
	e.families = slices.DeleteFunc(e.families, func(f *family) bool { return !slices.Contains(proxier.Served(), v1.IPFamily(f.name)) })
}

// ProxierSynced is part of [extension.Extension]: the proxier may have put its rules in front.
func (e *Extension) ProxierSynced(name v1.IPFamily) {
	for _, f := range e.families {
		if f.name == kernel.Family(name) {
			f.loop.Wake()
		}
	}
}

// Run is part of [extension.Extension].
func (e *Extension) Run(ctx context.Context) {
	known := e.gate.Await(ctx, e.config.SyncPeriod/2, func(missing string) {
		e.logger.Error(nil, "Rules of the tunnel's ports are not written because some objects are not known yet; the rules in the kernel stay as they are", "waitingFor", missing)
	})
	if !known {
		return
	}
	var running sync.WaitGroup
	for _, f := range e.families {
		f.loop.Restart() // what came before was not due
		running.Go(func() { f.run(ctx) })
	}
	running.Wait()
}

// Wait returns when all that Watch has begun has ended.
func (e *Extension) Wait() { e.running.Wait() }

// Summary may be called at any time.
func (e *Extension) Summary() extension.Summary {
	s := extension.Summary{Name: "tunnel's ports", Ready: true, Missing: e.gate.Missing()}
	addresses, ports := 0, 0
	for _, f := range e.families {
		if due := f.loop.DueSince(); len(s.Missing) == 0 && !due.IsZero() && (s.DueSince.IsZero() || due.Before(s.DueSince)) {
			s.DueSince = due
		}
		last := f.status.Load()
		if last == nil || last.lastSync.IsZero() {
			s.Ready = false
			continue
		}
		addresses += len(last.redirects.Nodes)
		ports = max(ports, len(last.redirects.Secure.Ports)+len(last.redirects.Insecure.Ports))
	}
	s.Numbers = fmt.Sprintf("%d node addresses, %d ports", addresses, ports)
	return s
}

// changed asks for a sync of both families.
func (e *Extension) changed() {
	for _, f := range e.families {
		f.loop.Changed(time.Now())
	}
}

// input returns what plans are made from.
func (e *Extension) input() plan.Input {
	e.mu.Lock()
	defer e.mu.Unlock()
	in := e.config.input(e.ports)
	for _, name := range slices.Sorted(maps.Keys(e.nodes)) {
		in.Nodes = append(in.Nodes, e.nodes[name])
	}
	return in
}

// PlanFor returns the plan for these objects; configMap is nil if there is none.
func PlanFor(family kernel.Family, config Config, nodes []*v1.Node, configMap *v1.ConfigMap) plan.Plan {
	var c plan.ConfigMap
	if config.ConfigMap.Name != "" {
		c = config.configMapOf(configMap)
	}
	ports, problems := plan.ReadPorts(c, portsOf(config.Insecure))
	in := config.input(ports)
	for _, n := range nodes {
		in.Nodes = append(in.Nodes, config.nodeOf(n))
	}
	p := plan.Build(family, in)
	p.Problems = append(problems, p.Problems...)
	return p
}

func (c Config) input(ports plan.Ports) plan.Input {
	return plan.Input{Self: c.NodeName, Ports: ports, Secure: c.Secure, Insecure: c.Insecure, Sources: c.Sources, AnyDestination: c.AnyDestination}
}
