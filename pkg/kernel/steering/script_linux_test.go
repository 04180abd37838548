package steering

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/openshift/origin-node/pkg/kernel"
)

// TestScript_MakesWhatAWriterMakes: the shell turns it into what a Writer would have written, which then finds nothing to
// change, and packets go by the holder.
func TestScript_MakesWhatAWriterMakes(t *testing.T) {
	onRealPaths(t, func(c *cluster, d kernel.Desired) {
		n := c.nodes[0]
		script := func() (text string) {
			n.inside(func() error {
				bytes, _, err := Script(t.Context(), n.config(), d)
				text = string(bytes)
				return err
			})
			return text
		}
		before := c.run(n.host, "nft list ruleset") + c.run(n.host, "ip rule") + c.run(n.host, "ip link")
		text := script()
		if after := c.run(n.host, "nft list ruleset") + c.run(n.host, "ip rule") + c.run(n.host, "ip link"); after != before {
			t.Errorf("printing it has changed the node from\n%s\nto\n%s", before, after)
		}
		if err := n.host.Feed(t.Context(), text, "sh", "-e"); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		var lines []string
		n.inside(func() (err error) {
			_, lines, err = newPath(n.config()).glance(t.Context(), map[int]netip.Addr{1: c.nodes[1].ip})
			return err
		})
		if len(lines) > 0 {
			t.Errorf("the path differs:\n%s\nafter\n%s", strings.Join(lines, "\n"), text)
		}
		c.sees("by the script", c.lab.Pod(1), "tcp", c.outside(), c.egressIP)
		c.sees("by the script", c.lab.Pod(1), "udp", c.outside(), c.another)
		printed := n.nft("list table %s", n.name())
		n.write(d)
		if written := n.nft("list table %s", n.name()); withoutCounts(written) != withoutCounts(printed) {
			t.Errorf("the Writer makes\n%s\nof\n%s", written, printed)
		}
		if again := script(); withoutCounts(again) != withoutCounts(text) {
			t.Errorf("beside a path it prints\n%s\nnot\n%s", again, text)
		}
	})
}

// TestScript_UnknownHardwareAddress: without a tunnel, a reader is told what the table lacks.
func TestScript_UnknownHardwareAddress(t *testing.T) {
	onCluster(t, func(c *cluster) {
		c.use(Direct)
		n := c.nodes[0]
		d := c.desired(c.bind(1, kernel.TCP, c.egressIP))
		d.Steering = n.steering(nil)
		line := fmt.Sprintf("# The hardware address of the node %s is not known yet", c.nodes[1].ip)
		for _, known := range []bool{true, false} {
			if !known {
				d.Steering.Senders = nil
			}
			n.inside(func() error {
				text, _, err := Script(t.Context(), n.config(), d)
				if strings.Contains(string(text), line) == known {
					c.Errorf("known: %v:\n%s", known, text)
				}
				return err
			})
		}
	})
}

// withoutCounts leaves what was counted out of a listing.
func withoutCounts(listing string) string {
	var lines []string
	for line := range strings.Lines(listing) {
		if !strings.Contains(line, "packets ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}
