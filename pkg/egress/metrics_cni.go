package egress

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"k8s.io/component-base/metrics"

	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/cni"
)

var (
	cniDuration = exported.Histogram("cni_duration_seconds",
		"Time that the CNI plugin waited for an answer, by request (add or del) and result: bound, unbound, released, or the reason of a refusal.", metrics.ExponentialBuckets(0.002, 2, 14), "request", "result")
	cniWaiting = exported.Gauge("cni_waiting",
		"Requests of the CNI plugin that wait for an answer, by request (add or del).", "request")
	cniUnconfirmed = exported.Gauge("cni_unconfirmed_pods",
		"Pods that are bound by their labels alone for more than 60 s: no EndpointSlice names them.")
)

// confirmedWithin is how long EndpointSlices may take to name a pod.
const confirmedWithin = time.Minute

// observedNode is an attacher whose answers are counted.
type observedNode struct{ *attacher }

// Attach is part of [cni.Node].
func (o observedNode) Attach(ctx context.Context, attachment attachments.Attachment) (decision cni.Decision, err error) {
	defer observeRequest("add", time.Now(), func() string { return resultOf(decision.Decision, err) })()
	return o.attacher.Attach(ctx, attachment)
}

// Detach is part of [cni.Node].
func (o observedNode) Detach(ctx context.Context, containerID string) (err error) {
	defer observeRequest("del", time.Now(), func() string { return resultOf("released", err) })()
	return o.attacher.Detach(ctx, containerID)
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

// unconfirmed counts the attachments that EndpointSlices do not confirm in time.
func (a *attacher) unconfirmed(now time.Time) (count int) {
	unnamed := a.state.unconfirmed()
	for _, attachment := range a.store.All() {
		for _, ip := range attachment.IPs {
			if unnamed[ip] && attachment.Released.IsZero() && now.Sub(attachment.Since) > confirmedWithin {
				count++
				break
			}
		}
	}
	return count
}

// unconfirmed returns the attached addresses that are bound although no EndpointSlice names them.
func (s *state) unconfirmed() map[netip.Addr]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	result := map[netip.Addr]bool{}
	for _, planner := range s.planners {
		for _, ip := range planner.Unconfirmed() {
			result[ip] = true
		}
	}
	return result
}
