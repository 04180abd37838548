package usage

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/kernel"
)

// counting is a Counter without egress IPs, and how often it has asked what is in the kernel.
type counting struct {
	*Counter
	asked, packets int
	failing        error
}

func newCounting() *counting {
	c := &counting{}
	c.Counter = New(Config{
		NodeName: "node-a",
		Written: func(v1.IPFamily) kernel.Desired {
			c.asked++
			return kernel.Desired{}
		},
		Ports: func() []portblocks.Assignment { return nil },
		Fast: func() (*status.FastUsage, error) {
			c.packets += 10
			return &status.FastUsage{Packets: uint64(c.packets)}, c.failing
		},
	})
	return c
}

// inHost calls do in a host's network namespace, with a clock that waits for nobody.
func inHost(t *testing.T, do func(ctx context.Context)) {
	t.Helper()
	host := lab.ForTest(t, lab.Config{Nodes: 1}).Node()
	synctest.Test(t, func(t *testing.T) {
		if err := host.Do(func() error { do(t.Context()); return nil }); err != nil {
			t.Error(err)
		}
	})
}

// TestCounter_ALookIsGoodForAMoment, however many ask, and the next one tells what has come since.
func TestCounter_ALookIsGoodForAMoment(t *testing.T) {
	inHost(t, func(ctx context.Context) {
		c := newCounting()
		look := func() status.Usage {
			u, err := c.Count(ctx)
			if err != nil {
				t.Fatal(err)
			}
			return u
		}
		first := look()
		if first.Node != "node-a" || first.Seconds != 0 || first.FastPath != nil {
			t.Errorf("the first look: %+v", first)
		}
		asked := c.asked
		if again := look(); !again.Time.Equal(first.Time) || c.asked != asked {
			t.Errorf("at once: %+v, and it has asked %d times, want %d", again, c.asked, asked)
		}
		time.Sleep(2 * time.Second)
		if second := look(); second.Seconds != 2 || second.FastPath == nil || second.FastPath.Packets != 10 {
			t.Errorf("two seconds later: %+v", second)
		}
		time.Sleep(looksKept + time.Second)
		if late := look(); late.Seconds != 0 || late.FastPath != nil {
			t.Errorf("much later: %+v, want a first look", late)
		}
		c.failing = errors.New("no map")
		time.Sleep(leastBetweenLooks)
		if _, err := c.Count(ctx); !errors.Is(err, c.failing) {
			t.Errorf("without counters: %v", err)
		}
	})
}

// TestCounter_ScrapersCostNoMoreDumps than one in ten seconds.
func TestCounter_ScrapersCostNoMoreDumps(t *testing.T) {
	inHost(t, func(ctx context.Context) {
		c := newCounting()
		for range 3 {
			c.count(ctx)
		}
		if c.asked != 2 {
			t.Errorf("three scrapes have asked %d times, want one for each IP family", c.asked)
		}
		time.Sleep(countedFor)
		if c.count(ctx); c.asked != 4 {
			t.Errorf("with one ten seconds later they have asked %d times, want 4", c.asked)
		}
	})
}
