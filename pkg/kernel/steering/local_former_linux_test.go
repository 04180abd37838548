package steering

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/pkg/kernel"
)

// TestLocal_TakesOverAFormerTable: what a version before has written, with other sets, says what was bound, and is replaced.
func TestLocal_TakesOverAFormerTable(t *testing.T) {
	for name, layout := range map[string]string{"with bindings": formerTable, "with bound pods": boundTable} {
		t.Run(name, func(t *testing.T) { takesOver(t, layout) })
	}
}

func takesOver(t *testing.T, layout string) {
	onLocalNode(t, 0, func(n *localNode) {
		b := kernel.Binding{Pod: n.of("10.128.0.5", "fd00:10:128::5"), Protocol: kernel.TCP, EgressIP: n.of("203.0.113.1", "2001:db8:113::1")}
		removed := kernel.Binding{Pod: n.of("10.128.0.6", "fd00:10:128::6"), Protocol: kernel.All, EgressIP: b.EgressIP}
		text := strings.NewReplacer("TABLE", n.name(), "ADDRESS", map[kernel.Family]string{kernel.IPv4: "ipv4_addr", kernel.IPv6: "ipv6_addr"}[n.family], "POD", b.Pod.String(), "EGRESS", b.EgressIP.String(),
			"GONE", removed.Pod.String(), "IP", strings.Fields(n.name())[0]).Replace(layout)
		file := filepath.Join(t.TempDir(), "former")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		n.nft("-f " + file)
		held, _ := n.read()
		if diff := cmp.Diff(kernel.Sorted([]kernel.Binding{b, removed}), held, compareAddresses); diff != "" {
			t.Errorf("the bindings (-want +got):\n%s", diff)
		}
		if !n.write(n.plan(b)) {
			t.Error("it was left as it was")
		}
		n.holds(n.plan(b))
		if listed := n.nft("list table " + n.name()); strings.Contains(listed, "bindings") || strings.Contains(listed, "set bound") {
			t.Errorf("nft lists\n%s", listed)
		}
	})
}

const formerTable = `table TABLE {
	set exclusions { type ADDRESS; flags interval; }
	set egress-ips { type ADDRESS; elements = { EGRESS } }
	set own { type ADDRESS . inet_proto . ADDRESS; elements = { POD . tcp . EGRESS } }
	set own-pods { type ADDRESS . ADDRESS; }
	map bindings { type ADDRESS . inet_proto : ADDRESS; elements = { POD . tcp : EGRESS } }
	map pods { type ADDRESS : ADDRESS; }
	set removed { type ADDRESS . inet_proto . ADDRESS; elements = { GONE . 0 . EGRESS } }
	chain postrouting {
		type nat hook postrouting priority -197;
		IP daddr != @exclusions IP daddr != @egress-ips snat to IP saddr . meta l4proto map @bindings fully-random
	}
}
`

const boundTable = `table TABLE {
	set exclusions { type ADDRESS; flags interval; }
	set own { type ADDRESS . inet_proto . ADDRESS; elements = { POD . tcp . EGRESS } }
	set own-pods { type ADDRESS . ADDRESS; }
	set bound { type ADDRESS . inet_proto; elements = { POD . tcp } }
	set bound-pods { type ADDRESS; }
	map sources { type ADDRESS . inet_proto : ADDRESS; elements = { POD . tcp : EGRESS } }
	map pod-sources { type ADDRESS : ADDRESS; }
	set removed { type ADDRESS . inet_proto . ADDRESS; elements = { GONE . 0 . EGRESS } }
	chain postrouting {
		type nat hook postrouting priority -197;
		IP saddr . meta l4proto @bound IP saddr . meta l4proto . IP daddr != @own IP daddr != @exclusions snat to IP saddr . meta l4proto map @sources fully-random
	}
}
`
