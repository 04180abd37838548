package nft

import (
	"slices"
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
		all, err = c.Chains(&nftables.Table{Name: "a", Family: nftables.TableFamilyINet})
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
