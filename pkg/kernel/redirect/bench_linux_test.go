package redirect

import (
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
)

// BenchmarkChange: one node more or less, of a thousand with 20 ports, by each of our ways and by that of OpenYurt's
// iptables manager v0.4.1, driven from its description: in each period it goes through all ports and all directly
// reached nodes, and for each pair has iptables check that its rule is there, or prepend it (EnsureRule); the same for
// the DNAT rule of each port, and for the jump to the port's chain. Then it runs conntrack -D for the changed node and
// each port. The thousand nodes are reached directly, as they have to be for it to have rules for them; ours are behind the
// tunnel. Its period takes minutes, so one port's share is timed, with the rules of all ports there: ns/change is that times
// their number.
func BenchmarkChange(b *testing.B) {
	const nodes, ports = 1000, 20
	for _, w := range ways {
		b.Run(w.name, func(b *testing.B) {
			bed := newBenchBed(b, w)
			want := benchRedirects(nodes, ports)
			bed.write(b, want)
			less := want
			less.Nodes = slices.Delete(slices.Clone(want.Nodes), nodes/2, nodes/2+1)
			for i := 0; b.Loop(); i++ {
				bed.write(b, []kernel.Redirects{less, want}[i%2])
			}
		})
	}
	for _, w := range ways[1:3] {
		b.Run("openyurt/"+w.name, func(b *testing.B) {
			bed := newBenchBed(b, w)
			direct := benchRedirects(nodes, ports).Nodes
			yurt := &openYurt{bed: bed, b: b}
			yurt.fill(direct[1:], ports)
			for i := 0; b.Loop(); i++ {
				yurt.sync(direct[:len(direct)-i%2], 1)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)*ports, "ns/change")
		})
	}
}

type benchBed struct {
	lab    *lab.Lab
	writer *Writer
}

func newBenchBed(b *testing.B, w way) *benchBed {
	b.Helper()
	l := lab.ForTest(b, lab.Config{Backend: w.iptables})
	b.Setenv("PATH", l.Path())
	b.Setenv("XTABLES_LOCKFILE", filepath.Join(b.TempDir(), "lock"))
	writer := NewWriter(w.backend, kernel.IPv4)
	writer.rules.tree = w.tree
	b.Cleanup(writer.Close)
	return &benchBed{l, writer}
}

func benchRedirects(nodes, ports int) kernel.Redirects {
	r := kernel.Redirects{
		Secure:   kernel.Target{To: netip.MustParseAddrPort("192.0.2.2:10263"), Ports: []uint16{10250}},
		Insecure: kernel.Target{To: netip.MustParseAddrPort("192.0.2.2:10264")},
	}
	for i := range ports - 1 {
		r.Insecure.Ports = append(r.Insecure.Ports, uint16(9100+i))
	}
	for i := range nodes {
		r.Nodes = append(r.Nodes, netip.AddrFrom4([4]byte{10, 1, byte(i / 250), byte(i%250 + 1)}))
	}
	return r
}

func (bed *benchBed) write(b *testing.B, want kernel.Redirects) {
	b.Helper()
	err := bed.lab.Node().Do(func() error {
		_, err := bed.writer.Sync(b.Context(), want)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
}

// openYurt is its manager.
type openYurt struct {
	bed *benchBed
	b   *testing.B
}

// run runs iptables, and tells whether it succeeded.
func (y *openYurt) run(args ...string) (ok bool) {
	_ = y.bed.lab.Node().Do(func() error {
		ok = exec.CommandContext(y.b.Context(), "iptables", append([]string{"-w", "5", "-t", "nat"}, args...)...).Run() == nil
		return nil
	})
	return ok
}

// ensure is EnsureRule of k8s.io/kubernetes/pkg/util/iptables: a check, and the rule if it is missing.
func (y *openYurt) ensure(how, chain string, rule ...string) {
	if !y.run(append([]string{"-C", chain}, rule...)...) && !y.run(append([]string{how, chain}, rule...)...) {
		y.b.Fatalf("%s %s %q failed", how, chain, rule)
	}
}

// fill makes the rules that it would have after its first period, at once.
func (y *openYurt) fill(direct []netip.Addr, ports int) {
	text := "*nat\n:TUNNEL-PORT - [0:0]\n-A OUTPUT -p tcp -m comment --comment \"yurttunnel server port\" -j TUNNEL-PORT\n"
	for i := range ports {
		port := strconv.Itoa(portOf(i))
		text += ":TUNNEL-PORT-" + port + " - [0:0]\n"
		text += "-A TUNNEL-PORT -p tcp -m comment --comment \"jump to port " + port + "\" -m tcp --dport " + port + " -j TUNNEL-PORT-" + port + "\n"
		for _, addr := range direct {
			text += fmt.Sprintf("-A TUNNEL-PORT-%s -d %s/32 -p tcp -m comment --comment \"return request to access node directly\" -m tcp --dport %s -j RETURN\n", port, addr, port)
		}
		text += "-A TUNNEL-PORT-" + port + " -p tcp -m comment --comment \"dnat to tunnel for access node\" -m tcp --dport " + port + " -j DNAT --to-destination 192.0.2.2:10264\n"
	}
	err := y.bed.lab.Node().Do(func() error {
		c := exec.CommandContext(y.b.Context(), "iptables-restore", "--noflush")
		c.Stdin = strings.NewReader(text + "COMMIT\n")
		return c.Run()
	})
	if err != nil {
		y.b.Fatal(err)
	}
}

func portOf(i int) int {
	if i == 0 {
		return 10250
	}
	return 9099 + i
}

// sync is one period after a change of a node.
func (y *openYurt) sync(direct []netip.Addr, ports int) {
	y.ensure("-I", "OUTPUT", "-p", "tcp", "-m", "comment", "--comment", "yurttunnel server port", "-j", "TUNNEL-PORT")
	for i := range ports {
		port := strconv.Itoa(portOf(i))
		chain := "TUNNEL-PORT-" + port
		y.ensure("-A", "TUNNEL-PORT", "-p", "tcp", "-m", "comment", "--comment", "jump to port "+port, "--dport", port, "-j", chain)
		for _, addr := range direct {
			y.ensure("-I", chain, "-d", addr.String()+"/32", "-p", "tcp", "-m", "comment", "--comment", "return request to access node directly", "--dport", port, "-j", "RETURN")
		}
		y.ensure("-A", chain, "-p", "tcp", "-m", "comment", "--comment", "dnat to tunnel for access node", "--dport", port, "-j", "DNAT", "--to-destination", "192.0.2.2:10264")
	}
	for i := range ports {
		_ = y.bed.lab.Node().Do(func() error { // its status says whether there was an entry
			return exec.CommandContext(y.b.Context(), "conntrack", "-D", "--orig-dst", direct[0].String(), "-p", "tcp", "--dport", strconv.Itoa(portOf(i))).Run()
		})
	}
}
