package attach

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/cni"
	"github.com/openshift/origin-node/pkg/egress/kubelet"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/socket"
	"github.com/openshift/origin-node/pkg/failure"
	"github.com/openshift/origin-node/pkg/kernel/portsecurity"
	"github.com/openshift/origin-node/pkg/wake"
)

// Config is how the CNI plugin is answered. Its zero value is: not at all.
type Config struct {
	// Socket is the plugin's; empty for none. Attachments are kept beside it.
	Socket string
	// Kubelet is the socket on which the kubelet is asked for the labels of its pods; empty for none.
	Kubelet string
	// WatchPods: the API server is asked for them, too.
	WatchPods bool
	// Lists is the folder with the lists of CNI plugins; empty if it is none of this node's business.
	Lists string
	// Install is the folder with the plugins. The node then keeps ours in the list; empty to say only if it is missing.
	Install string
}

const (
	// sweepPeriod is how often it is seen whether pods have ended without a word, and whether other namespaces have claims.
	sweepPeriod = 2 * time.Second
	// labelPatience is how long nothing may tell the labels of pods before that is a fault: kubelets restart. When half of it
	// has gone by it is seen whether anything does; not more often, because the kubelet logs each question.
	labelPatience = 2 * time.Minute
	// listenAgain is how long to wait before the socket is made again after a failure.
	listenAgain = time.Second
)

// Node is what an Attacher asks of its node, and tells it.
type Node struct {
	// Missing returns the kinds of objects that are not known yet.
	Missing func() []string
	// Failure is why the last sync of one of these IP families failed.
	Failure func(families []v1.IPFamily) error
	// Await returns when a sync that began after the call has succeeded in each of these IP families. With look it has looked
	// at what the kernel holds.
	Await func(ctx context.Context, families []v1.IPFamily, look bool) error
	// Via returns the node that packets are sent to for an egress IP; empty for this one.
	Via func(egressIP netip.Addr) string
	// Assign returns the source ports that a pod with these bindings has of its egress IPs, within a bounded time, and the number of those
	// in a block; no ports if pods have none of their own. Nil: they have not.
	Assign func(ctx context.Context, attachment attachments.Attachment, bindings []plan.Binding) (ports []attachments.Ports, blockSize int, err error)
	// Recorded returns when the ports that Assign returned for a pod have been written down, or ctx ends. The writing goes on while
	// the ports are written into the kernel. If they cannot be written down, the pod does not wait for long. Nil: nobody writes them
	// down.
	Recorded func(ctx context.Context, containerID string)
	// TakeLocalPorts takes the setting of source ports in the network namespace of a pod with ports of its own, open for reading and writing;
	// the file is its own then, also after an error. Nil: nobody needs it.
	TakeLocalPorts func(containerID string, file *os.File) error
	// Follow is told all attachments after each change, before the caller that changed something goes on. No lock is held, so calls
	// may overtake each other: one whose number is not higher than that of an earlier call is to be ignored. Nil: nobody has to be
	// told.
	Follow func(number uint64, all []attachments.Attachment)
	// Attached returns when it is known behind which interface a pod is that the plugin has told of.
	Attached func(context.Context)
	// Changed is told whether plans may change, and since when.
	Changed func(changed bool, at time.Time)
	// FaultsChanged is told that the Problems are others.
	FaultsChanged func()
	// Event tells something about this node, once.
	Event func(reason plan.Reason, note string)
	// Explain adds to an error of the API server what an operator needs to act on it.
	Explain func(error) error
}

// New returns one that knows what an earlier process has kept, until ctx ends; nil if nobody asks.
func New(ctx context.Context, config Config, state *cluster.State, node Node) *Attacher {
	socket := config.Socket
	if socket == "" {
		return nil
	}
	logger := klog.FromContext(ctx)
	store, err := attachments.Open(attachments.Folder(socket))
	if err != nil {
		logger.Error(err, "Cannot read some files about pods. For each file that was renamed to .corrupt, delete the pod that it names, then the file")
	}
	a := &Attacher{
		ctx: ctx, logger: logger, config: config, state: state, node: node,
		store: store, released: attachments.Released(socket), claims: openClaims(attachments.Claims(socket)),
		claimed: wake.New(), leading: portsecurity.LeadToPods, seesProcesses: seesProcesses,
		exists: func(netns string) bool {
			_, err := os.Lstat(netns)
			return netns != "" && !os.IsNotExist(err)
		},
	}
	if err := a.load(); err != nil {
		logger.Error(err, "Cannot find out which pods ended while no node process ran; their bindings stay until EndpointSlices no longer name the pods")
	}
	return a
}

// ForgetAttachments removes what is kept for a CNI plugin that asks at a socket: the plugin then lets pods start although nobody answers. An
// empty socket, for none, stands for the default one, unless a process answers there: that is another node's, with another network.
func ForgetAttachments(socket string) error {
	if socket == "" {
		socket = attachments.DefaultSocket
		conn, err := net.Dial("unix", socket)
		switch {
		case err == nil:
			return conn.Close()
		case !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, fs.ErrNotExist): // perhaps a process that is busy
			return fmt.Errorf("find out whether a process uses what is kept for the CNI plugin: %w", err)
		}
	}
	if err := attachments.Remove(socket); err != nil {
		return fmt.Errorf("removing what is kept for the CNI plugin: %w", err)
	}
	return nil
}

// Run begins to answer the CNI plugin, and to follow this node's pods, until the context ends.
func (a *Attacher) Run(running *sync.WaitGroup, client kubernetes.Interface) {
	if a == nil {
		return
	}
	sources := podSources{}
	if socket := a.config.Kubelet; socket != "" {
		var err error
		if sources.kubelet, err = kubelet.New(socket); err != nil {
			a.logger.Error(err, "Cannot ask the kubelet for the labels of its pods")
		}
	}
	if a.config.WatchPods {
		sources.watch = newPodWatch(client, a.state.Config.NodeName)
	}
	a.pods = sources
	if sources.kubelet != nil {
		running.Go(func() { a.refreshPods(sources) })
	}
	if sources.watch != nil {
		running.Go(func() { a.watchPods(sources.watch) })
	}
	running.Go(a.sweepAgain)
	running.Go(a.noteClaims)
	running.Go(a.answerPlugin)
	if a.config.Lists != "" {
		running.Go(a.followList)
	}
}

// answerPlugin answers the CNI plugin until the context ends.
func (a *Attacher) answerPlugin() {
	errorLog := slog.NewLogLogger(logr.ToSlogHandler(klog.LoggerWithName(a.logger, "cni-plugin")), slog.LevelInfo)
	socket.Answer(a.ctx, a.config.Socket, listenAgain, cni.Handler(observedNode{a}), errorLog, func(err error) { a.fails(unanswered, err) })
}

// noteClaims notes claims as soon as there are others, until the context ends. After a failure the sweep tries again, and tells
// of it.
func (a *Attacher) noteClaims() {
	a.claimed.Follow(a.ctx, func() { _ = a.addClaims() })
}

// sweepAgain sweeps until the context ends. Of errors that last it tells the first.
func (a *Attacher) sweepAgain() {
	failed, labelled := failure.Streak{}, time.Now()
	for wake.Sleep(a.ctx.Done(), sweepPeriod) {
		cniUnconfirmed.WithLabelValues().Set(float64(a.unconfirmed(time.Now())))
		if err := a.Sweep(a.ctx, time.Now()); failed.Changes(err) && err != nil && a.ctx.Err() == nil {
			a.logger.Error(err, "Cannot find out which pods have ended; will retry, the same failure is not logged again")
		}
		labelled = a.checkLabels(labelled, time.Now())
	}
}

// checkLabels tells if nothing has told the labels of pods since a time, and returns when that was possible last.
func (a *Attacher) checkLabels(since, now time.Time) time.Time {
	if now.Sub(since) < labelPatience/2 {
		return since
	}
	var err error
	if a.usesPlugin() {
		err = a.pods.Available(a.ctx)
	}
	switch {
	case a.ctx.Err() != nil:
		return since
	case err == nil:
		since = now
	case now.Sub(since) < labelPatience:
		return since
	}
	a.fails(unlabelled, err)
	return since
}
