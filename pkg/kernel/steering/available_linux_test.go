package steering

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
)

// newMarker returns a node on which others mark packets, and a way to have iptables-legacy-restore read lines for its table nat.
func newMarker(t *testing.T) (host *lab.Host, restore func(lines ...string)) {
	host = lab.ForTest(t, lab.Config{Nodes: 1}).Node()
	return host, func(lines ...string) {
		t.Helper()
		if out, err := host.Run(t.Context(), "sh", "-c", fmt.Sprintf("printf '%%s\n' '*nat' '%s' COMMIT | iptables-legacy-restore -w", strings.Join(lines, "' '"))); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
}

// TestMarkUsers_LegacyRulesAllocateNothing: there may be tens of thousands that use no bit of ours, and they are looked at every second.
func TestMarkUsers_LegacyRulesAllocateNothing(t *testing.T) {
	host, restore := newMarker(t)
	var allocations []float64
	for _, rules := range []int{10, 2000} {
		restore(slices.Repeat([]string{"-A OUTPUT -p tcp -m mark --mark 0x4000/0x4000 -j ACCEPT"}, rules)...)
		if err := host.Do(func() (err error) {
			allocations = append(allocations, testing.AllocsPerRun(5, func() { _, err = legacyMarkConflicts(kernel.IPv4, 0x7e) }))
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if more := allocations[1] - allocations[0]; more > 20 {
		t.Errorf("2,000 rules take %.0f allocations more than 10", more)
	}
}

// TestMarkUsers_LegacyChains: each chain is told once, but for those of kube-proxy, whose bits are others.
func TestMarkUsers_LegacyChains(t *testing.T) {
	const rule = " -j MARK --set-xmark 0x2/0x2"
	host, restore := newMarker(t)
	restore(":KUBE-MARK - [0:0]", ":mine - [0:0]", "-A KUBE-MARK"+rule, "-A mine"+rule, "-A mine"+rule, "-A OUTPUT"+rule)
	var found conflict
	if err := host.Do(func() (err error) {
		found, err = legacyMarkConflicts(kernel.IPv4, 0x7e)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(found) != 2 || !strings.Contains(found[0], "chain OUTPUT of the table nat of iptables-legacy") || !strings.Contains(found[1], "chain mine of the table nat of iptables-legacy") {
		t.Errorf("found %q, want one of OUTPUT and one of mine", found)
	}
}

// TestMarkUsers_OneLookFails: what the other one finds is told, and what was found before where it cannot look.
func TestMarkUsers_OneLookFails(t *testing.T) {
	const rule = " -j MARK --set-xmark 0x2/0x2"
	host, restore := newMarker(t)
	restore("-A OUTPUT" + rule)
	users := &MarkUsers{Mask: 0x7e}
	find := func(works bool, want int) {
		t.Helper()
		do := host.DoWithoutRawSockets
		if works {
			do = host.Do
		}
		if err := do(func() error {
			found, err := users.Find(t.Context())
			if len(found) != want || (err == nil) != works {
				t.Errorf("looking works: %v; found %q, %v; want %d", works, found, err, want)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	find(true, 1)
	if out, err := host.Run(t.Context(), "iptables-nft", strings.Fields("-t mangle -A OUTPUT"+rule)...); err != nil {
		t.Fatal(err, out)
	}
	find(false, 2)
	restore()
	find(false, 2)
	find(true, 1)
}

// TestMarkUsers_NFTChains: each chain is told, but for kube-proxy's and ours.
func TestMarkUsers_NFTChains(t *testing.T) {
	const rule = " -j MARK --set-xmark 0x2/0x2"
	host, _ := newMarker(t)
	for _, command := range []string{
		"iptables-nft -t mangle -N mine; iptables-nft -t mangle -A mine" + rule + "; iptables-nft -t mangle -N second; iptables-nft -t mangle -A second -g mine; iptables-nft -t mangle -A FORWARD -j second",
		"nft 'add chain ip mangle unusual { type filter hook forward priority 7; }'; nft add rule ip mangle unusual meta mark set 0x2",
		"iptables-nft -t mangle -N alone; iptables-nft -t mangle -A alone" + rule,
		"iptables-nft -t mangle -N KUBE-MARK; iptables-nft -t mangle -A KUBE-MARK" + rule + "; iptables-nft -t mangle -A OUTPUT -j KUBE-MARK",
		"nft 'table inet a { chain marks { meta mark set 0x2; }; chain p { type filter hook forward priority 0; ip saddr vmap { 10.0.0.1 : jump marks }; }; }'",
		"nft 'table ip6 filter { chain p { type filter hook forward priority 0; meta mark and 0x2 == 0x2 drop; }; }'",
	} {
		if out, err := host.Run(t.Context(), "sh", "-ec", command); err != nil {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
	}
	var found []string
	if err := host.Do(func() (err error) {
		found, err = findMarkUsers(t.Context(), "", 0x7e)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for i, message := range found {
		message, _, _ = strings.Cut(message, " uses bits")
		found[i] = strings.TrimPrefix(message, "a rule in the nftables ")
	}
	slices.Sort(found)
	if want := []string{"chain alone of the table ip mangle", "chain marks of the table inet a", "chain mine of the table ip mangle", "chain p of the table ip6 filter", "chain unusual of the table ip mangle"}; !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
}
