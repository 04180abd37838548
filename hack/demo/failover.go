package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/openshift/origin-node/hack/lab"
)

const (
	// poolCIDR is where the nodes node-1, node-3 and node-4, which have the label of the pool, put egress IPs by themselves.
	poolCIDR = "192.0.2.112/28"
	// beat is how often each connection carries a byte, and a new one is made.
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
	connections, err := d.connect(ctx, pod)
	if err != nil {
		return err
	}
	if err := d.lab.SetLink(before, false); err != nil {
		return err
	}
	cut := time.Now()
	after, err := d.leavesBy(ctx, pod, outside, before)
	if err != nil {
		return err
	}
	gap := time.Since(cut)
	alive := 0
	for deadline := time.Now().Add(5 * time.Second); alive < established && time.Now().Before(deadline); time.Sleep(beat) {
		alive = 0
		for _, c := range connections {
			if time.Since(time.Unix(0, c.last.Load())) < 20*beat {
				alive++
			}
		}
	}
	fmt.Printf("The link of %s was cut: new connections leave by %s after %v; %d of %d established ones live.\n",
		d.name(before), d.name(after), gap.Round(time.Millisecond), alive, established)
	if alive < established*9/10 {
		return fmt.Errorf("only %d of %d connections live", alive, established)
	}
	return nil
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

// connection is an established one, on which a byte came last at a time.
type connection struct{ last atomic.Int64 }

// connect opens connections from a pod to the outside, on which bytes come all the time.
func (d *demo) connect(ctx context.Context, pod *lab.Host) (all []*connection, err error) {
	listener, err := d.lab.Outside().Listen(ctx, "tcp", netip.AddrPortFrom(d.lab.Outside().V4, 0).String())
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	go sendBeats(ctx, listener)
	for range established {
		conn, err := pod.DialContext(ctx, "tcp", listener.Addr().String())
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, func() { _ = conn.Close() })
		c := &connection{}
		all = append(all, c)
		go func() { _, _ = io.Copy(c, conn) }()
	}
	return all, nil
}

// Write notes that something came.
func (c *connection) Write(text []byte) (int, error) {
	c.last.Store(time.Now().UnixNano())
	return len(text), nil
}

// sendBeats sends bytes to all who connect.
func sendBeats(ctx context.Context, listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			for ticker := time.NewTicker(beat); err == nil && ctx.Err() == nil; <-ticker.C {
				_, err = conn.Write([]byte{1})
			}
		}()
	}
}
