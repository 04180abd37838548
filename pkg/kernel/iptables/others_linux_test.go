package iptables

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
)

// TestLegacyRules_OfAllTables: in chains of hooks and in others, with their matches and targets.
func TestLegacyRules_OfAllTables(t *testing.T) {
	for family, tool := range map[kernel.Family]string{kernel.IPv4: "iptables-legacy", kernel.IPv6: "ip6tables-legacy"} {
		t.Run(string(family), func(t *testing.T) {
			host := lab.ForTest(t, lab.Config{Nodes: 1, IPv6: true}).Node()
			for _, command := range []string{
				"-t mangle -N mine", "-t mangle -A mine -p udp -m udp --dport 9 -m mark --mark 0x40/0x7e -j MARK --set-xmark 0x40/0x40", "-t mangle -A PREROUTING -j mine",
				"-t nat -A POSTROUTING -o eth0 -j MASQUERADE",
			} {
				if out, err := host.Run(t.Context(), "sh", "-c", tool+" "+command); err != nil {
					t.Fatalf("%s: %v: %s", command, err, out)
				}
			}
			var found []string
			err := host.Do(func() error {
				return LegacyRules(family, func(r LegacyRule) {
					text := r.Table + " " + r.Chain
					for _, p := range r.Parts {
						text += " " + string(p.Name)
						if strings.EqualFold(string(p.Name), "mark") {
							text += fmt.Sprintf("=%x", p.Info[:8])
						}
					}
					if len(r.Parts) > 1 || len(r.Parts[0].Name) > 0 { // policies and jumps have targets without a name
						found = append(found, text)
					}
				})
			})
			want := []string{"mangle mine udp mark=400000007e000000 MARK=4000000040000000", "nat POSTROUTING MASQUERADE"}
			if diff := cmp.Diff(want, found); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestCleanup_BesideATableOfOthers: a table nat that iptables-nft cannot show keeps nothing from being cleaned up, unless a chain of ours is in it.
func TestCleanup_BesideATableOfOthers(t *testing.T) {
	for _, backend := range []lab.Backend{lab.NFT, lab.Legacy} {
		t.Run(string(backend), func(t *testing.T) {
			l := lab.ForTest(t, lab.Config{Nodes: 1, IPv6: true, Backend: backend})
			t.Setenv("PATH", l.Path())
			t.Setenv("XTABLES_LOCKFILE", filepath.Join(t.TempDir(), "lock"))
			cleanUp := func() (err error) {
				_ = l.Node().Do(func() error {
					_, err = Withdraw(t.Context())
					err = errors.Join(err, Cleanup(t.Context(), Egress))
					return nil
				})
				return err
			}
			nft := func(command string) {
				t.Helper()
				if out, err := l.Node().Run(t.Context(), "nft", command); err != nil {
					t.Fatalf("%s: %v: %s", command, err, out)
				}
			}
			nft("table ip nat { chain POSTROUTING { type nat hook postrouting priority 100; meta mark set numgen random mod 3; }; }")
			if err := cleanUp(); err != nil {
				t.Errorf("the table is others': %v", err)
			}
			nft("add chain ip nat " + RootChain)
			if err := cleanUp(); !errors.Is(err, ErrIncompatible) {
				t.Errorf("with a chain of ours: %v", err)
			}
		})
	}
}
