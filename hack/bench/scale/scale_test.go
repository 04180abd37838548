package scale

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/hack/lab"
)

func TestAuditLog_ReadsWhatIsNew(t *testing.T) {
	log := auditLog{file: filepath.Join(t.TempDir(), "audit.log")}
	write := func(text string) {
		t.Helper()
		f, err := os.OpenFile(log.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	reads := func(want map[string]requests) {
		t.Helper()
		got, err := log.read()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	const patch = `{"verb":"patch","user":{"username":"a"},"objectRef":{"resource":"leases","name":"node-0"},"requestURI":"/x"}` + "\n"
	write(patch + patch + `{"verb":"get","user":{"username":"b"},"requestURI":"/apis/networking.k8s.io/v1?timeout=32s"}` + "\n" + patch[:20])
	reads(map[string]requests{"a": {"patch leases": 2}, "b": {"get /apis/networking.k8s.io/v1": 1}})
	reads(map[string]requests{})
	write(patch[20:])
	reads(map[string]requests{"a": {"patch leases": 1}})
	write("no JSON\n")
	if _, err := log.read(); err == nil {
		t.Error("a line that is no event is no error")
	}
}

func TestLastEpoch_OfPiecesOfAWatch(t *testing.T) {
	for text, want := range map[string]uint64{
		"": 0,
		`{"192.0.2.20":{"epoch":7},"198.18.0.1":{"epoch":8}}`:                    0,
		`{"192.0.2.200":{"epoch":7},"198.18.0.1":{"epoch":8}}`:                   7,
		"\x0a{\"192.0.2.200\":{\"epoch\":7}}\x00{\"192.0.2.200\":{\"epoch\":12}": 12,
		`{"192.0.2.200":{"epoch":1`:                                              0, // the rest comes later
	} {
		if got := lastEpoch([]byte(text)); got != want {
			t.Errorf("%q has %d, want %d", text, got, want)
		}
	}
}

func TestParseSent_AsNftPrintsIt(t *testing.T) {
	const text = `{"nftables": [{"metainfo": {"version": "1.0.6"}}, {"set": {"family": "ip", "name": "sent", "table": "scale", "type": "ipv4_addr",
"elem": [{"elem": {"val": "192.0.2.2", "counter": {"packets": 3, "bytes": 250}}}, {"elem": {"val": "192.0.2.3", "counter": {"packets": 1, "bytes": 52}}}]}}]}`
	got, err := parseSent(text)
	want := map[netip.Addr]float64{netip.MustParseAddr("192.0.2.2"): 250, netip.MustParseAddr("192.0.2.3"): 52}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestAddresses_OfTheLargestCluster(t *testing.T) {
	nodes := full.objects.Nodes
	if last := podCIDR(nodes - 1); !lab.ClusterV4.Contains(last.Addr()) || last == podCIDR(nodes-2) {
		t.Errorf("the last node's pods are in %s, want a network of its own in %s", last, lab.ClusterV4)
	}
	if last := standInAddress(nodes - 1); !standInNetwork.Contains(last) {
		t.Errorf("the last Node has %s, want an address in %s", last, standInNetwork)
	}
	size := full.objects
	pods, external := map[string]bool{}, map[string]bool{}
	for i := range size.Services {
		for _, e := range size.Replace(size.Slice(i), i, "").Endpoints {
			pods[e.Addresses[0]] = true
		}
		for _, ip := range size.Service(i).Spec.ExternalIPs {
			external[ip] = true
			if !poolNetwork.Contains(netip.MustParseAddr(ip)) {
				t.Errorf("the egress IP %s is not in the pool's network", ip)
			}
		}
	}
	for node := range 8 {
		if own := above(poolNetwork.Addr(), node).String(); external[own] {
			t.Errorf("%s is an egress IP and a node's own address", own)
		}
		for _, p := range []probe{moved, changed} {
			for _, changes := range []int{0, 100} {
				if pod := p.pod(node, changes); pods[pod.String()] || !lab.ClusterV4.Contains(pod) {
					t.Errorf("the pod %s of probe %s is another's too, or not in the cluster", pod, p.name)
				}
			}
		}
	}
}
