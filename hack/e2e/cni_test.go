package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/lab"
)

// inEachWay runs a test in a world for each way in which rules are written.
func inEachWay(t *testing.T, test func(r *cniRuntime)) {
	for name, s := range map[string]settings{"legacy": {backend: lab.Legacy}, "nft": {backend: lab.NFT}, "nftables": {backend: lab.NFT, nftables: true}} {
		t.Run(name, func(t *testing.T) {
			if s.backend == lab.Legacy {
				belongsTo(t, usual)
			}
			test(newCNIWorld(t, s))
		})
	}
}

// TestCNI_FirstPackets: a pod that speaks as soon as its network is there leaves from where it should, with EndpointSlices
// that are late; and so does the next one that has its address.
func TestCNI_FirstPackets(t *testing.T) {
	inEachWay(t, func(r *cniRuntime) {
		r.scenario("starts", func() { r.starts(by(t, 6, 20, 334)) })
		r.scenario("one address", func() { r.alternates(by(t, 4, 20, 167)) })
		r.scenario("kills", func() { r.kills(by(t, 2, 6, 17)) })
	})
}

// starts starts pods; every third is none of the Service's. Their EndpointSlices come when they have spoken.
func (r *cniRuntime) starts(n int) {
	r.Helper()
	list := r.list(150, 170)
	for i := range n {
		labels, as := web, r.ips(10)
		if i%3 == 2 {
			labels, as = app("db"), nil
		}
		s := r.start(list, r.create("shop", fmt.Sprintf("pod-%d", i), labels))
		r.firstPackets(s, as...)
		r.sliced(s)
		r.firstPackets(s, as...)
		r.end(list, s)
		r.holdsNoRuleFor(s.ips)
		r.delete(s.pod)
	}
	r.attached()
}

// alternates gives one address to pods of the Service and to strangers in turn. The EndpointSlice that names one comes
// while it ends, and goes while the next one speaks.
func (r *cniRuntime) alternates(n int) {
	r.Helper()
	list := r.list(199, 199)
	for i := range n {
		ours := r.start(list, r.create("shop", fmt.Sprintf("ours-%d", i), web))
		r.firstPackets(ours, r.ips(10)...)
		r.sliced(ours)
		r.end(list, ours)
		stranger := r.start(list, r.create("bank", fmt.Sprintf("stranger-%d", i), web))
		r.firstPackets(stranger)
		r.delete(ours.pod)
		r.firstPackets(stranger)
		r.sliced(stranger)
		r.end(list, stranger)
		r.delete(stranger.pod)
	}
	r.attached()
}

// kills kills the node's process or the plugins while they begin and end pods that have one address in turn.
func (r *cniRuntime) kills(n int) {
	r.Helper()
	list := r.list(198, 198)
	for i := range n {
		ours := r.create("shop", fmt.Sprintf("killed-%d", i), web)
		s := r.killed(func(ctx context.Context) (*sandbox, error) { return r.tryStart(ctx, list, ours) })
		if s == nil {
			s = r.start(list, ours)
		}
		r.firstPackets(s, r.ips(10)...)
		r.sliced(s)
		r.killed(func(ctx context.Context) (*sandbox, error) { return nil, r.tryEnd(ctx, list, s) })
		if r.runs[s.conf.ContainerID] != nil {
			r.end(list, s)
		}
		stranger := r.start(list, r.create("bank", fmt.Sprintf("next-%d", i), web))
		r.firstPackets(stranger)
		r.end(list, stranger)
		r.delete(ours)
		r.delete(stranger.pod)
	}
	r.attached()
}

// killed does something, during which either it or the node's process is killed, and returns what it started.
func (r *cniRuntime) killed(do func(context.Context) (*sandbox, error)) (started *sandbox) {
	r.Helper()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		var err error
		started, err = do(ctx)
		done <- err
	}()
	after, ofNode := time.Duration(rand.Int64N(int64(200*time.Millisecond))), rand.IntN(2) == 0
	time.Sleep(after)
	if ofNode {
		r.on.Kill()
		r.on.Printed.Reset()
		r.on.Start()
	} else {
		cancel() // kills the plugin that runs
	}
	r.Logf("killed after %s, the node's process: %v; the runtime says: %v", after, ofNode, <-done)
	r.on.Ready()
	return started
}
