package pool

import (
	"net/netip"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/hack/lab"
)

// TestTransport_NodesThatAreSwitchedOff: the kernel keeps what is sent to them for three seconds, which keeps nothing for others waiting.
func TestTransport_NodesThatAreSwitchedOff(t *testing.T) {
	host := lab.ForTest(t, lab.Config{Nodes: 1}).Nodes()[0]
	if err := host.Do(func() error {
		g := newGuard(host.V4, 7947)
		g.nodeAt = func(netip.Addr) (string, bool) { return "off", true }
		transport, err := listen(klog.Background(), testKeys, g, transportEvents{})
		if err != nil {
			return err
		}
		began := time.Now()
		for range 200 {
			for _, off := range []string{"192.0.2.121", "192.0.2.122", "192.0.2.123", "192.0.2.124"} {
				if err := transport.send(netip.MustParseAddr(off), stateText, make([]byte, 1000)); err != nil {
					return err
				}
			}
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("800 datagrams took %v", took)
		}
		return transport.Shutdown()
	}); err != nil {
		t.Fatal(err)
	}
}
