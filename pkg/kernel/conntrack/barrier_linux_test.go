package conntrack

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// barrierOf is how nft prints the barrier of a family, without its elements.
func barrierOf(family kernel.Family) string {
	text := `table ip openshift-egress-ended {
	set flows {
		type ipv4_addr . ipv4_addr . inet_proto . inet_service . inet_service
		size 65536
		timeout 20m
	}

	set unanswered {
		type ipv4_addr . ipv4_addr . inet_proto . inet_service . inet_service
		size 16384
		timeout 20m
	}

	set unseen {
		type ipv4_addr . ipv4_addr . inet_proto . inet_service . inet_service
		size 81920
		timeout 20m
	}

	set hosts {
		type ipv4_addr . ipv4_addr . inet_proto
		size 8192
		timeout 20m
	}

	chain anew {
		ip saddr . ip daddr . meta l4proto . th sport . th dport @flows update @flows { ip saddr . ip daddr . meta l4proto . th sport . th dport timeout 1s } comment "its ports are in use again"
		ip saddr . ip daddr . meta l4proto . th sport . th dport @unanswered update @unanswered { ip saddr . ip daddr . meta l4proto . th sport . th dport timeout 1s } comment "its ports are in use again"
		accept comment "a new connection"
	}

	chain ended {
		tcp flags syn goto anew comment "a new connection from the same ports"
		ip saddr . ip daddr . meta l4proto . th sport . th dport @unseen drop comment "the far side saw another address"
		reject with tcp reset comment "of an ended connection"
		reject comment "of another ended flow"
	}

	chain prerouting {
		type nat hook prerouting priority dstnat - 1; policy accept;
		ip saddr . ip daddr . meta l4proto . th sport . th dport @flows goto ended comment "of an ended flow"
		ip saddr . ip daddr . meta l4proto . th sport . th dport @unanswered goto ended comment "of an ended flow, unanswered or over"
		meta l4proto != tcp meta l4proto != udp ip saddr . ip daddr . meta l4proto @hosts drop comment "of an ended flow without ports"
	}

	chain invalid {
		type filter hook prerouting priority dstnat - 1; policy accept;
		ct state invalid meta iiftype != loopback ip saddr . ip daddr . meta l4proto . th sport . th dport @flows drop comment "of an ended flow"
		ct state invalid meta iiftype != loopback ip saddr . ip daddr . meta l4proto . th sport . th dport @unanswered drop comment "of an ended flow, unanswered or over"
	}
}
`
	if family == kernel.IPv6 {
		text = strings.NewReplacer("table ip ", "table ip6 ", "ipv4_addr", "ipv6_addr", "ip saddr", "ip6 saddr", "ip daddr", "ip6 daddr").Replace(text)
	}
	return text
}

var elementsOfSet = regexp.MustCompile(`(?s)\t\telements = \{.*?\}\n`)

// countOfSet is how many elements a set has, which nft 1.1.4 and newer print.
var countOfSet = regexp.MustCompile(`\t# count \d+`)

// hashOfRule is the hash behind a rule's comment.
var hashOfRule = regexp.MustCompile(` \([0-9a-f]{8}\)"`)

// barred returns what nft prints of the barrier, without the elements and the hashes of rules, and the elements.
func (n *node) barred() (table string, elements string) {
	n.Helper()
	family := map[kernel.Family]string{kernel.IPv4: "ip", kernel.IPv6: "ip6"}[n.family]
	table, err := n.host.Run(n.Context(), "nft", "list", "table", family, barrierTable)
	if err != nil {
		n.Fatal(err)
	}
	rules := hashOfRule.ReplaceAllString(elementsOfSet.ReplaceAllString(table, ""), `"`)
	return countOfSet.ReplaceAllString(rules, ""), strings.Join(elementsOfSet.FindAllString(table, -1), "")
}

// wrongEntries are the wrong ones of n.entries.
func (n *node) wrongEntries() map[string]entry {
	wrong := map[string]entry{}
	for name, e := range n.entries() {
		if strings.HasPrefix(name, "wrong") {
			wrong[name] = e
		}
	}
	return wrong
}

// deleteOne deletes a flow.
func (n *node) deleteOne() {
	n.Helper()
	n.flush()
	n.holds(n.numbered(1))
	n.deletes(n.bound(), Scope{All: true}, n.left()...)
}

func TestDelete_PutsFlowsBehindTheBarrier(t *testing.T) {
	onNode(t, func(n *node) {
		w := n.network
		entries := n.wrongEntries()
		for name, e := range entries {
			if e.Protocol != tcp && e.Protocol != udp {
				e.SeenAs = e.Source
				entries[name] = e
			}
		}
		asItself := entries["wrong: UDP as the node"]
		asItself.SeenAs = asItself.Source
		entries["wrong: UDP as the pod"] = asItself
		n.holds(entries)
		n.deletes(n.bound(), Scope{All: true}, slices.Collect(maps.Keys(entries))...)
		table, elements := n.barred()
		if diff := cmp.Diff(barrierOf(n.family), table); diff != "" {
			n.Errorf("(-want +got):\n%s", diff)
		}
		// Four of TCP, both directions each; two of UDP and one of SCTP, the far side's; ESP, which has no ports;
		// no ICMP.
		if got := strings.Count(elements, " expires "); got != 4*2+3+1 {
			n.Errorf("%d elements:\n%s", got, elements)
		}
		for _, want := range []string{
			fmt.Sprintf("%s . %s . tcp . 8080 . ", w.outside, w.node), // after DNAT, as the far side answers
			fmt.Sprintf("%s . %s . tcp . ", w.pod, w.otherEgressIP),   // before, as the pod asks
			fmt.Sprintf("%s . %s . udp . 53 . ", w.outside, w.other),  // as the far side answers
			fmt.Sprintf("%s . %s . esp ", w.outside, w.other),         // without ports
			fmt.Sprintf("%s . %s . sctp . ", w.outside, w.other),      // with ports
			fmt.Sprintf("%s . %s . tcp . 443 . ", w.outside, w.pod),   // seen as itself
		} {
			if !strings.Contains(elements, want) {
				n.Errorf("no element %q:\n%s", want, elements)
			}
		}
	})
}

// TestDelete_RepairsTheBarrier: what somebody else did to the table is gone with the next deletion.
func TestDelete_RepairsTheBarrier(t *testing.T) {
	onNode(t, func(n *node) {
		family := map[kernel.Family]string{kernel.IPv4: "ip", kernel.IPv6: "ip6"}[n.family]
		for _, damage := range []string{
			"flush table " + family + " " + barrierTable,
			"delete table " + family + " " + barrierTable,
			"insert rule " + family + " " + barrierTable + " " + barrierChain + " drop",
		} {
			n.deleteOne()
			if _, err := n.host.Run(n.Context(), "nft", damage); err != nil {
				n.Fatal(err)
			}
			n.deleteOne()
			table, _ := n.barred()
			if diff := cmp.Diff(barrierOf(n.family), table); diff != "" {
				n.Errorf("after %q (-want +got):\n%s", damage, diff)
			}
		}
	})
}

// TestDelete_WithABarrierThatWasRestored: somebody has saved the ruleset, and loads it again with nft.
func TestDelete_WithABarrierThatWasRestored(t *testing.T) {
	onNode(t, func(n *node) {
		n.deleteOne()
		saved, err := n.host.Run(n.Context(), "nft", "list", "ruleset")
		if err != nil {
			n.Fatal(err)
		}
		if err := n.host.Feed(n.Context(), "flush ruleset\n"+saved, "nft", "-f", "-"); err != nil {
			n.Fatal(err)
		}
		n.deleteOne()
		table, _ := n.barred()
		if diff := cmp.Diff(barrierOf(n.family), table); diff != "" {
			n.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestDelete_AfterAKillBehindTheBarrier: the entries that a process had put behind the barrier, but not deleted, are deleted
// by the next.
func TestDelete_AfterAKillBehindTheBarrier(t *testing.T) {
	onNode(t, func(n *node) {
		n.holds(n.wrongEntries())
		err := n.host.Do(func() error {
			k, err := open(n.family)
			if err != nil {
				return err
			}
			defer k.close()
			if err := k.makeBarrier(); err != nil {
				return err
			}
			var entries []*doomed
			err = k.lookAt(n.Context(), everyone, func(t *tracked) { entries = append(entries, &doomed{ends: t.ends, verdict: Ends}) })
			return errors.Join(err, k.barrier.add(flowsSet, entries))
		})
		if err != nil {
			n.Fatal(err)
		}
		n.deletes(n.bound(), Scope{All: true}, n.namesWith("wrong")...)
	})
}

// TestDeleter_WithoutBarrier: where the kernel cannot have one, entries are deleted all the same.
func TestDeleter_WithoutBarrier(t *testing.T) {
	onNode(t, func(n *node) {
		n.holds(n.wrongEntries())
		err := n.host.Do(func() error {
			k, err := open(n.family)
			if err != nil {
				return err
			}
			defer k.close()
			d, err := k.newDeleter()
			if err != nil {
				return err
			}
			defer d.close()
			d.noBarrier = barrierError(barrierTable, unix.EOPNOTSUPP)
			err = k.lookAt(n.Context(), everyone, func(t *tracked) { d.do(t, Ends) })
			return errors.Join(err, d.finish())
		})
		if left := n.left(); err != nil || len(left) > 0 {
			n.Errorf("error %v, left %v", err, left)
		}
		if tables, err := n.host.Run(n.Context(), "nft", "list", "tables"); err != nil || strings.Contains(tables, "openshift") {
			n.Errorf("error %v, tables %s", err, tables)
		}
	})
}

func TestBarrierError_TellsWhatTheKernelLacks(t *testing.T) {
	for err, lacks := range map[error]bool{
		unix.EOPNOTSUPP: true, nft.ErrNone: true, unix.ENOENT: true, unix.EPERM: false, unix.ENOMEM: false,
	} {
		if got := barrierError(barrierTable, fmt.Errorf("flush: %w", err)); errors.Is(got, errNoBarrier) != lacks || !errors.Is(got, err) {
			t.Errorf("%v: %v; want errNoBarrier: %t", err, got, lacks)
		}
	}
	if err := barrierError(barrierTable, nil); err != nil {
		t.Error(err)
	}
}

// TestCleanup_RemovesTheTables: that of the barrier, and that of somebody who was killed while he listened.
func TestCleanup_RemovesTheTables(t *testing.T) {
	onNode(t, func(n *node) {
		n.deleteOne()
		n.barred()
		err := n.host.Do(func() error {
			k, err := open(n.family)
			if err != nil {
				return err
			}
			defer k.close()
			_, err = k.listen(pairs{}, firstPackets)
			return err
		})
		if err != nil {
			n.Fatal(err)
		}
		for range 2 { // the second time there is nothing
			if err := n.host.Do(func() error { return Cleanup(n.Context()) }); err != nil {
				n.Fatal(err)
			}
			if tables, err := n.host.Run(n.Context(), "nft", "list", "tables"); err != nil || strings.Contains(tables, "openshift") {
				n.Errorf("error %v, tables %s", err, tables)
			}
		}
	})
}
