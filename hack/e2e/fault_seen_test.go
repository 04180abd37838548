package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// printsItsTables: on each node, the holder among them.
func (w *steeredWorld) printsItsTables() {
	w.Helper()
	sorted := func(text string) []string { // chains are in the order in which they were made, and what was removed last may be on record
		return slices.Sorted(slices.Values(lines(strings.TrimSpace(record.ReplaceAllString(passing.ReplaceAllString(text, ""), "")))))
	}
	for _, m := range w.members {
		out, errs, status := m.Openshift("start", "node", "--config="+m.Config(), "--dry-run")
		if status != 0 || errs != "" {
			w.Errorf("%s: status %d: %s", m.Name, status, errs)
		}
		for _, family := range w.families {
			head := map[v1.IPFamily]string{v1.IPv4Protocol: "ip", v1.IPv6Protocol: "ip6"}[family]
			name := "table " + head + " " + steeringTable
			_, printed, _ := strings.Cut(out, "\n"+name)
			printed, _, _ = strings.Cut(printed, "\nEND\n")
			nft := m.Host.Command(w.Context(), "unshare", "--net", "sh", "-ec", "nft -f - ; nft list "+name)
			nft.Stdin = strings.NewReader(name + printed)
			read, err := nft.CombinedOutput()
			if err != nil {
				w.Errorf("%s: nft does not read what the dry run prints: %v: %s", m.Name, err, read)
			}
			listed, err := m.Host.Run(w.Context(), "nft", "list", "table", head, steeringTable)
			w.must(err)
			if diff := cmp.Diff(sorted(listed), sorted(string(read))); diff != "" {
				w.Errorf("%s: the dry run prints another table than the kernel has (-want +got):\n%s", m.Name, diff)
			}
		}
	}
}

// TestSteering_IsSeenAndRemoved: what steers is verified, printed, reported where something is in its way, and removed
// without a trace, together with the connections that it carried.
func TestSteering_IsSeenAndRemoved(t *testing.T) {
	t.Run("iptables", func(t *testing.T) { isSeenAndRemoved(newSteeredWorld(t, settings{}, nil)) })
	t.Run("nftables", func(t *testing.T) {
		belongsTo(t, usual)
		w := newSteeredWorld(t, settings{nftables: true}, nil)
		w.scenario("one table has the bindings", w.oneTable)
		isSeenAndRemoved(w)
	})
}

// oneTable: with steering, the nftables mode has no other table of bindings, and the commands say so.
func (w *steeredWorld) oneTable() {
	w.Helper()
	for i, m := range w.members {
		tables, err := m.Host.Run(w.Context(), "nft", "list", "tables")
		w.must(err)
		if slices.Contains(lines(tables), "table ip "+steering.LocalTable) || !slices.Contains(lines(tables), "table ip "+steeringTable) {
			w.Errorf("%s has the tables\n%s", m.Name, tables)
		}
		out, errs, status := m.Openshift("start", "node", "--config="+m.Config(), "--dry-run")
		pod := w.pods[i].V4.String()
		if want := "# pod " + pod + " leaves from " + w.egressIPs[0] + " for tcp: Service shop/web\n"; status != 0 || !strings.Contains(out, want) || strings.Contains(out, "table ip "+steering.LocalTable+" {") {
			w.Errorf("%s: status %d, %s: the dry run lacks %q, or has a second table:\n%s", m.Name, status, errs, want, out)
		}
		out, errs, status = m.Openshift("egress", "explain", pod, "--protocol=tcp", "--socket="+m.Socket())
		want := fmt.Sprintf("table %s: ip saddr . meta l4proto vmap @sources, with { %s . tcp : goto from-%s }", steeringTable, pod, w.egressIPs[0])
		if status != 0 || !strings.Contains(out, want) {
			w.Errorf("%s: status %d, %s: the explanation lacks %q:\n%s", m.Name, status, errs, want, out)
		}
	}
}

func isSeenAndRemoved(w *steeredWorld) {
	source := w.members[1]
	traffic := w.crowd(50)
	verify := func() (out string, status int) {
		out, errs, status := source.Openshift("egress", "verify", "--socket="+source.Socket())
		return out + errs, status
	}
	w.scenario("it agrees", func() {
		if out, status := verify(); status != 0 {
			w.Errorf("status %d: %s", status, out)
		}
	})
	w.scenario("differences are told", func() {
		w.eventually(func() error { // the node may be faster
			_, err := source.Host.Run(w.Context(), "ip", "rule", "del", "pref", "901")
			w.must(err)
			out, status := verify()
			w.eventually(func() error { // until it is repaired
				if rules, err := source.Host.Run(w.Context(), "ip", "rule"); err != nil || !strings.Contains(rules, "901:") {
					return errors.Join(err, errors.New("the rule is missing"))
				}
				return nil
			})
			if status != 1 || !strings.Contains(out, "IPv4: ip rule pref 901 fwmark 0x2/0x7e lookup 7701 proto 77: is missing") {
				return fmt.Errorf("status %d: %s", status, out)
			}
			return nil
		})
	})
	w.scenario("it is printed", func() {
		out, errs, status := source.Openshift("start", "node", "--config="+source.Config(), "--dry-run")
		for _, want := range []string{
			"ip link add steer0 address 02:57:", "# Number 1 is the node " + w.holder.Host.V4.String(), "ip rule add pref 901 fwmark 0x2/0x7e lookup 7701",
			"table ip " + steeringTable + " {", "table ip6 " + steeringTable + " {",
		} {
			if status != 0 || !strings.Contains(out, want) {
				w.Errorf("status %d, %s: the dry run lacks %q:\n%s", status, errs, want, out)
			}
		}
	})
	w.scenario("what is printed is what the kernel has", w.printsItsTables)
	w.scenario("somebody takes bits of the mark", func() {
		_, err := source.Host.Run(w.Context(), "ip", "rule", "add", "pref", "100", "fwmark", "0x40/0x40", "lookup", "5")
		w.must(err)
		says := func() string {
			_, errs, _ := source.Openshift("egress", "addresses", "--socket="+source.Socket())
			return errs
		}
		w.eventually(func() error {
			if errs := says(); !strings.Contains(errs, "ip rule 100, with fwmark 0x40/0x40, uses bits of egress SNAT's mark 0x7e") {
				return fmt.Errorf("the node says %q", errs)
			}
			return nil
		})
		w.answered()
		_, err = source.Host.Run(w.Context(), "ip", "rule", "del", "pref", "100")
		w.must(err)
		w.eventually(func() error {
			if errs := says(); strings.Contains(errs, "fwmark") {
				return fmt.Errorf("the node still says %q", errs)
			}
			return nil
		})
	})
	w.noneWrong(traffic)
	w.clean(100)
	w.scenario("it is removed", func() {
		source.Stop()
		for range 2 {
			if _, errs, status := source.Openshift("start", "node", "--config="+source.Config(), "--cleanup"); status != 0 {
				w.Errorf("status %d: %s", status, errs)
			}
			if left := source.steering(w.world); strings.TrimSpace(left) != "" {
				w.Errorf("the clean-up leaves\n%s", left)
			}
		}
		for _, pod := range w.pods {
			if pod.Node != source.Host {
				continue
			}
			flows, err := source.Host.Run(w.Context(), "conntrack", "-L", "-s", pod.V4.String())
			w.must(err)
			for _, to := range w.everywhere() {
				if strings.Contains(flows, "dst="+to.Addr().String()+" ") {
					w.Errorf("a connection of %s to %s is left:\n%s", pod.V4, to, flows)
				}
			}
		}
	})
}
