package attach

import (
	"context"
	"errors"
	"time"

	"k8s.io/component-base/metrics"

	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/cni"
	"github.com/openshift/origin-node/pkg/egress/tell"
)

var (
	cniDuration = tell.Metrics.Histogram("cni_duration_seconds",
		"Time that the CNI plugin waited for an answer, by request (add or del) and result: bound, unbound, released, or the reason of a refusal.", metrics.ExponentialBuckets(0.002, 2, 14), "request", "result")
	cniWaiting = tell.Metrics.Gauge("cni_waiting",
		"Requests of the CNI plugin that wait for an answer, by request (add or del).", "request")
	cniUnconfirmed = tell.Metrics.Gauge("cni_unconfirmed_pods",
		"Pods that are bound by their labels alone for more than 60 s: no EndpointSlice names them.")
	pluginFaultGauge = tell.Metrics.Gauge("cni_plugin_fault",
		"1 if something keeps the CNI plugin from doing its work on this node, else 0, by reason: unlisted (the list of plugins does not have it), unanswered (the node has no socket for it), unlabelled (nothing tells the labels of pods) or misplaced (it is the first of its list).", "reason")
	listWrites = tell.Metrics.Counter("cni_list_writes_total",
		"How often this node has put the CNI plugin into the list of plugins.")
)

// ZeroMetrics has the series whose first increase counts.
func ZeroMetrics() {
	cniUnconfirmed.WithLabelValues()
	listWrites.WithLabelValues()
}

// confirmedWithin is how long EndpointSlices may take to name a pod.
const confirmedWithin = time.Minute

// observedNode is an Attacher whose answers are counted.
type observedNode struct{ *Attacher }

// Attach is part of [cni.Node].
func (o observedNode) Attach(ctx context.Context, attachment attachments.Attachment) (decision cni.Decision, err error) {
	defer observeRequest("add", time.Now(), func() string { return resultOf(decision.Decision, err) })()
	return o.Attacher.Attach(ctx, attachment)
}

// Detach is part of [cni.Node].
func (o observedNode) Detach(ctx context.Context, containerID string) (err error) {
	defer observeRequest("del", time.Now(), func() string { return resultOf("released", err) })()
	return o.Attacher.Detach(ctx, containerID)
}

// observeRequest counts a request as waiting, until what it returns is called.
func observeRequest(request string, began time.Time, result func() string) (answered func()) {
	cniWaiting.WithLabelValues(request).Inc()
	return func() {
		cniWaiting.WithLabelValues(request).Dec()
		cniDuration.WithLabelValues(request, result()).Observe(time.Since(began).Seconds())
	}
}

func resultOf(done string, err error) string {
	var failure *cni.Failure
	switch {
	case errors.As(err, &failure):
		return string(failure.Reason)
	case err != nil:
		return string(cni.NotWritten) // as the plugin is told
	}
	return done
}

// unconfirmed counts the attachments that EndpointSlices do not confirm in time. It is for the goroutine that sweeps.
func (a *Attacher) unconfirmed(now time.Time) (count int) {
	_, unnamed := a.state.Unconfirmed()
	since := map[string]time.Time{}
	for _, attachment := range a.store.All() {
		if !unnamed.AnyOf(attachment.IPs) || !attachment.Released.IsZero() {
			continue
		}
		id := attachment.ContainerID
		if since[id] = now; !a.unnamedSince[id].IsZero() {
			since[id] = a.unnamedSince[id]
		}
		if now.Sub(since[id]) > confirmedWithin {
			count++
		}
	}
	a.unnamedSince = since
	return count
}
