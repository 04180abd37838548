package main

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openshift/origin-node/hack/lab"
)

const (
	// poolCIDR is where the nodes node-1, node-3 and node-4, which have the label of the pool, put egress IPs by themselves.
	poolCIDR = "192.0.2.112/28"
	// beat is how often a new connection is made.
	beat = 10 * time.Millisecond
	// established is how many connections there are before the fault.
	established = 20
)

// poolIP is the external IP of the Service mail.
var poolIP = netip.MustParseAddr("192.0.2.120")

// failover cuts the link of the node that has put an egress IP on itself, and prints how long the pod had no connections, and how
// many of the established ones have lived on.
func (d *demo) failover(ctx context.Context, pod *lab.Host, outside netip.AddrPort) error {
	if err := d.publish("mail.yaml"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	before, err := d.leavesBy(ctx, pod, outside, nil)
	if err != nil {
		return err
	}
	fmt.Printf("\npod-2 is behind the Service mail: it is seen as %s by %s, which has put that address on its interface.\n", poolIP, d.name(before))
	var flows [established]*lab.Flow
	for i := range flows {
		if flows[i], err = pod.Dial(ctx, "tcp4", outside, 0); err != nil {
			return err
		}
	}
	if err := d.lab.SetLink(before, false); err != nil {
		return err
	}
	cut := time.Now()
	lives := make(chan int, 1)
	go func() { lives <- answered(ctx, flows[:]) }()
	after, err := d.leavesBy(ctx, pod, outside, before)
	if err != nil {
		return err
	}
	gap := time.Since(cut)
	alive := <-lives
	fmt.Printf("The link of %s was cut: new connections leave by %s after %v; %d of %d established ones live.\n",
		d.name(before), d.name(after), gap.Round(time.Millisecond), alive, established)
	if alive < established*9/10 {
		return fmt.Errorf("only %d of %d connections live", alive, established)
	}
	return nil
}

// answered asks on some connections at once, and returns how many are answered.
func answered(ctx context.Context, flows []*lab.Flow) int {
	var count atomic.Int64
	var asked sync.WaitGroup
	for _, flow := range flows {
		asked.Go(func() {
			if seen, err := flow.Ask(ctx); err == nil && seen == poolIP {
				count.Add(1)
			}
		})
	}
	asked.Wait()
	return int(count.Load())
}

func (d *demo) name(node *lab.Host) string { return nodeName(slices.Index(d.lab.Nodes(), node)) }

// leavesBy waits until new connections are seen under the pool's address, by another node than that, and returns it.
func (d *demo) leavesBy(ctx context.Context, pod *lab.Host, to netip.AddrPort, than *lab.Host) (node *lab.Host, err error) {
	by := make(chan *lab.Host, 1)
	for ticker := time.NewTicker(beat); ; {
		go func() { // one that hangs keeps no other one waiting
			got, err := d.ask(ctx, pod, to)
			if err != nil || got.as != poolIP || got.by == nil || got.by == than {
				return
			}
			select {
			case by <- got.by:
			default:
			}
		}()
		select {
		case node := <-by:
			return node, nil
		case <-ctx.Done():
			return nil, fmt.Errorf("pod-2 is not seen as %s by another node: %w", poolIP, ctx.Err())
		case <-ticker.C:
		}
	}
}
