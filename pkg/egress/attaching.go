package egress

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/netip"
	"os"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/cni"
	"github.com/openshift/origin-node/pkg/egress/kubelet"
	"github.com/openshift/origin-node/pkg/kernel/portsecurity"
)

// Attaching is how the CNI plugin is answered. Its zero value is: not at all.
type Attaching struct {
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

// newAttacher returns the attacher of an Extension that has no plan yet; nil if nobody asks.
func newAttacher(e *Extension) *attacher {
	socket := e.config.Attaching.Socket
	if socket == "" {
		return nil
	}
	store, err := attachments.Open(attachments.Folder(socket))
	if err != nil {
		e.logger.Error(err, "Some files about pods cannot be read. Where they are called .corrupt now, delete the pods that they name and then these files")
	}
	a := &attacher{
		state: e.state, store: store, released: attachments.Released(socket), claims: attachments.Claims(socket),
		claimed: make(chan struct{}, 1), leading: portsecurity.LeadToPods,
		attached: func(ctx context.Context) {
			if e.ports != nil { // Watch sets it
				e.ports.Look(ctx)
			}
		},
		missing: e.barrier.Missing, failure: e.lastFailure, await: e.awaitSyncs,
		via: func(egressIP netip.Addr) string { return e.steerer.via(egressIP) }, // Watch sets the steerer
		exists: func(netns string) bool {
			_, err := os.Lstat(netns)
			return netns != "" && !os.IsNotExist(err)
		},
	}
	if err := a.load(); err != nil {
		e.logger.Error(err, "Some pods that ended while no node process ran are not known; their bindings end with their EndpointSlices")
	}
	return a
}

// ForgetAttachments removes what is kept for a CNI plugin that asks at a socket, which may be empty for none: the plugin
// then lets pods start although nobody answers.
func ForgetAttachments(socket string) error {
	if socket == "" {
		return nil
	}
	if err := attachments.Remove(socket); err != nil {
		return fmt.Errorf("removing what is kept for the CNI plugin: %w", err)
	}
	return nil
}

// attach answers the CNI plugin, and follows this node's pods, until the context ends.
func (e *Extension) attach(client kubernetes.Interface) {
	if e.attacher == nil {
		return
	}
	sources := podSources{}
	if socket := e.config.Attaching.Kubelet; socket != "" {
		var err error
		if sources.kubelet, err = kubelet.New(socket); err != nil {
			e.logger.Error(err, "The kubelet is not asked for the labels of its pods")
		} else {
			e.running.Go(func() { e.refreshPods(sources) })
		}
	}
	if e.config.Attaching.WatchPods {
		sources.watch = newPodWatch(client, e.config.NodeName)
		e.running.Go(func() { e.watchPods(sources.watch) })
	}
	e.attacher.pods = sources
	e.running.Go(e.sweep)
	e.running.Go(e.noteClaims)
	e.running.Go(e.answerPlugin)
	if e.config.Attaching.Lists != "" {
		e.running.Go(e.followList)
	}
}

// answerPlugin answers the CNI plugin until the context ends.
func (e *Extension) answerPlugin() {
	errorLog := log.New(attachingErrors{e.logger}, "", 0)
	for {
		err := cni.Serve(e.ctx, e.config.Attaching.Socket, observedNode{e.attacher}, errorLog, func() { e.pluginFails(unanswered, nil) })
		if e.ctx.Err() != nil {
			return
		}
		e.pluginFails(unanswered, err)
		select {
		case <-e.ctx.Done():
			return
		case <-time.After(listenAgain):
		}
	}
}

// lastFailure returns why the last sync of an IP family failed, or nil.
func (e *Extension) lastFailure() error {
	var errs []error
	for _, name := range cluster.Families {
		errs = append(errs, e.families[name].reconciler.Status().Failure)
	}
	return errors.Join(errs...)
}

// attachingErrors lets net/http log through a logger.
type attachingErrors struct{ logger klog.Logger }

func (w attachingErrors) Write(line []byte) (int, error) {
	w.logger.Info("Answering the CNI plugin", "err", string(line))
	return len(line), nil
}

// noteClaims notes claims as soon as there are others, until the context ends. After a failure the sweep tries again, and tells
// of it.
func (e *Extension) noteClaims() {
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-e.attacher.claimed:
			_ = e.attacher.addClaims()
		}
	}
}

// sweep sweeps until the context ends. Of errors that last it tells the first.
func (e *Extension) sweep() {
	complained, labelled := "", time.Now()
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-time.After(sweepPeriod):
		}
		text := ""
		cniUnconfirmed.WithLabelValues().Set(float64(e.attacher.unconfirmed(time.Now())))
		if err := e.attacher.Sweep(e.ctx, time.Now()); err != nil {
			if text = err.Error(); text != complained && e.ctx.Err() == nil {
				e.logger.Error(err, "Following the ends of pods failed; will retry, further failures are not logged")
			}
		}
		complained = text
		labelled = e.checkLabels(labelled, time.Now())
	}
}

// checkLabels tells if nothing has told the labels of pods since a time, and returns when that was possible last.
func (e *Extension) checkLabels(since, now time.Time) time.Time {
	if now.Sub(since) < labelPatience/2 {
		return since
	}
	var err error
	if e.usesPlugin() {
		err = e.attacher.pods.Available(e.ctx)
	}
	switch {
	case e.ctx.Err() != nil:
		return since
	case err == nil:
		since = now
	case now.Sub(since) < labelPatience:
		return since
	}
	e.pluginFails(unlabelled, err)
	return since
}
