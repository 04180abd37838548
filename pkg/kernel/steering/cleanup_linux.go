package steering

import (
	"context"
	"errors"
	"time"

	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
	"github.com/openshift/origin-node/pkg/wake"
)

const (
	// silence is how long other nodes have to send nothing here until they have heard that this node steers nothing.
	silence = 2 * time.Second
	// silencePatience is when they are not waited for any more.
	silencePatience = 15 * time.Second
	// betweenDrops is how often the drops are looked at.
	betweenDrops = 100 * time.Millisecond
)

// Cleanup removes everything that steers, of both families, whatever there is, and puts settings of interfaces back. The
// guard goes last: what other nodes still send here would leave as somebody masquerades it. Through a tunnel nothing
// comes any more when the device has gone; without one, Cleanup waits until they have heard.
func Cleanup(ctx context.Context) error {
	if err := errors.Join(Halt(ctx), cleanupPath(ctx)); err != nil {
		return err
	}
	writers := map[kernel.Family]*nft.Writer{}
	held := map[kernel.Family]nft.Held{}
	var errs []error
	arrives := false
	for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
		w := nft.NewWriter(nft.Spec{Name: Table, Family: family, Sets: sets, Counters: counters})
		defer w.Close()
		found, _, err := w.Inspect(ctx)
		if errors.Is(err, nft.ErrNone) { // a kernel without nftables holds nothing
			continue
		}
		if err != nil { // what is there has the record of settings, and other nodes may send here
			errs = append(errs, err)
			continue
		}
		writers[family], held[family] = w, found
		arrives = arrives || len(found.Sets[sendersSet]) > 0
	}
	if arrives {
		awaitSilence(ctx, writers)
	}
	for family, w := range writers {
		putBack(ctx, recordOf(held[family]))
		_, err := w.Write(ctx, nft.State{})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// awaitSilence waits until other nodes send nothing here that no binding takes, as long as there is patience.
func awaitSilence(ctx context.Context, writers map[kernel.Family]*nft.Writer) {
	began := time.Now()
	quietSince, before := began, uint64(0)
	for time.Since(quietSince) < silence {
		stale := uint64(0)
		for _, w := range writers {
			drops, err := w.Counters(ctx)
			if err != nil {
				return // there is nothing left that would drop it
			}
			stale += drops[staleCounter]
		}
		if stale != before {
			quietSince, before = time.Now(), stale
		}
		if time.Since(began) > silencePatience {
			klog.FromContext(ctx).Error(nil, "Other nodes still send packets of their pods to this node; from now on these packets leave as the network plugin decides. Run 'openshift egress addresses' on the other nodes to see what they know of this node, and delete this node's Lease if it still names egress IPs")
			return
		}
		if !wake.Sleep(ctx.Done(), betweenDrops) {
			return
		}
	}
}
