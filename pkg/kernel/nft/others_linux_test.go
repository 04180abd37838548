package nft

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/nftables"
)

// TestChains_RootsAndWhereTheyLead: whatever has rules is there, and all that a packet may meet behind a root.
func TestChains_RootsAndWhereTheyLead(t *testing.T) {
	node := newLab(t).Node()
	if out, err := node.Run(t.Context(), "nft", `table inet a {
		chain empty { }
		chain d { accept; }
		chain c { goto d; }
		chain b { jump c; }
		chain base { type filter hook forward priority 0; ip saddr 10.0.0.1 jump b; jump empty; }
		chain mapped { type filter hook input priority 0; ip saddr vmap { 10.0.0.2 : jump d }; }
		chain addresses { type nat hook prerouting priority 0; dnat ip to ip daddr map { 10.0.0.3 : 10.0.0.4 }; }
	}`); err != nil {
		t.Fatal(err, out)
	}
	var all Chains
	if err := node.Do(func() error {
		c, err := Open(t.Context())
		if err != nil {
			return err
		}
		defer c.Close()
		all, err = c.Chains(&nftables.Table{Name: "a", Family: nftables.TableFamilyINet}, nil)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	is := func(what string, got []string, want ...string) {
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	is("all", all.Names(), "addresses", "b", "base", "c", "d", "mapped")
	is("roots", all.Roots(), "addresses", "base", "mapped")
	is("from base", all.From("base"), "b", "base", "c", "d")
	is("from mapped", all.From("mapped"), all.Names()...)
	is("from addresses", all.From("addresses"), "addresses")
}

// TestChains_OfALargeTable: of one of iptables those are there that its base chains lead to, but by what is left out; all of them if a map of
// verdicts may lead anywhere.
func TestChains_OfALargeTable(t *testing.T) {
	node := newLab(t).Node()
	run := func(command string) {
		t.Helper()
		if out, err := node.Run(t.Context(), "sh", "-ec", command); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	chains := func() (names []string) {
		t.Helper()
		if err := node.Do(func() error {
			c, err := Open(t.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			tables, err := c.OtherTables(nftables.TableFamilyIPv4)
			if err != nil || len(tables) != 1 {
				return errors.Join(err, fmt.Errorf("%d tables", len(tables)))
			}
			all, err := c.Chains(tables[0], func(chain string) bool { return strings.HasPrefix(chain, "KUBE-") })
			names = all.Names()
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return names
	}
	const many = mostRead + 1
	run(fmt.Sprintf(`(echo '*filter'; seq -f ':KUBE-%%g - [0:0]' %d; echo ':mine - [0:0]'; seq -f '-A KUBE-%%g -j RETURN' %d; echo '-A INPUT -j KUBE-1'
		echo '-A FORWARD -j mine'; echo '-A mine -j ACCEPT'; echo COMMIT) | iptables-nft-restore`, many, many))
	if got, want := chains(), []string{"FORWARD", "INPUT", "mine"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	run(`nft add rule ip filter INPUT ip saddr vmap '{ 10.0.0.1 : jump mine }'`)
	if got := len(chains()); got != many+3 {
		t.Errorf("with a map of verdicts %d chains, want %d", got, many+3)
	}
}
