package natorder

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
)

// node is a node on which nobody has rules yet.
type node struct {
	*testing.T
	host *lab.Host
}

func newNode(t *testing.T) node { return newNodeOf(t, lab.NFT) }

// newNodeOf returns one whose iptables is that of a back end.
func newNodeOf(t *testing.T, iptables lab.Backend) node {
	l := lab.ForTest(t, lab.Config{Nodes: 1, Pods: 1, IPv6: true, Backend: iptables})
	t.Setenv("PATH", l.Path())
	return node{t, l.Node()}
}

func (n node) run(command string) {
	n.Helper()
	if output, err := n.host.Run(n.Context(), "sh", "-c", command); err != nil {
		n.Fatalf("%s: %v: %s", command, err, output)
	}
}

// finds fails unless a Finder finds these chains.
func (n node) finds(what string, f *Finder, want ...string) {
	n.Helper()
	var found []string
	if err := n.host.Do(func() error {
		chains, err := f.Find(n.Context())
		found = names(chains)
		return err
	}); err != nil {
		n.Fatal(err)
	}
	if !slices.Equal(found, want) {
		n.Errorf("%s: found %q, want %q", what, found, want)
	}
}

func names(chains []Chain) (names []string) {
	for _, chain := range chains {
		names = append(names, chain.String())
	}
	return names
}

// rules are chains of others, and where they are.
var rules = map[string]struct {
	rules string
	found string // for IPv4 and the priority -198
}{
	"kindnet's": {"table inet kindnet { chain postrouting { type nat hook postrouting priority 90; masquerade; }; }", ""},
	"behind a jump": {
		"table ip a { chain masq { oifname eth0 snat to 192.0.2.7; }; chain p { type nat hook postrouting priority -199; ip saddr 10.0.0.0/8 jump masq; }; }",
		"chain p of the nftables table ip a, priority -199",
	},
	"behind a map of verdicts": {
		"table inet b { chain masq { masquerade; }; chain p { type nat hook postrouting priority -198; ip saddr vmap { 10.0.0.1 : jump masq }; }; }",
		"chain p of the nftables table inet b, priority -198",
	},
	"in a table that is named like iptables'": {
		"table ip filter { chain INPUT { type filter hook input priority 0; }; chain p { type nat hook postrouting priority -199; masquerade; }; }",
		"chain p of the nftables table ip filter, priority -199",
	},
	"one that gives nothing": {"table ip c { chain masq { masquerade; }; chain p { type nat hook postrouting priority -199; ip saddr 10.0.0.0/8 return; }; }", ""},
	"of the other family":    {"table ip6 d { chain p { type nat hook postrouting priority -199; masquerade; }; }", ""},
	"of DNAT":                {"table ip e { chain p { type nat hook prerouting priority -199; dnat to 10.0.0.1; }; }", ""},
	"a filter":               {"table ip f { chain p { type filter hook postrouting priority -199; ip saddr 10.0.0.0/8 drop; }; }", ""},
	"ours":                   {"table ip openshift-egress-steering { chain postrouting { type nat hook postrouting priority -199; masquerade; }; }", ""},
	"kube-proxy's":           {"table ip kube-proxy { chain p { type nat hook postrouting priority -198; masquerade; }; }", ""},
}

// TestFinder_NamesWhatDecidesBefore, and nothing else, as soon as it is there and as long as it is.
func TestFinder_NamesWhatDecidesBefore(t *testing.T) {
	n := newNode(t)
	n.run("iptables-nft -t nat -A POSTROUTING -j MASQUERADE")
	f := NewFinder(kernel.IPv4, -198)
	n.finds("iptables alone", f)
	for name, test := range rules {
		n.run("nft '" + test.rules + "'")
		var want []string
		if test.found != "" {
			want = []string{test.found}
		}
		n.finds(name, f, want...)
		table, _, _ := strings.Cut(strings.TrimPrefix(test.rules, "table "), " {")
		n.run("nft delete table " + table)
		n.finds(name+", which has gone", f)
	}
}

// TestFinder_BesideIPTables: where the rules are in iptables' own chain, whatever has a lower priority comes before them, or the same.
func TestFinder_BesideIPTables(t *testing.T) {
	n := newNode(t)
	n.run("iptables-nft -t nat -A POSTROUTING -j MASQUERADE; nft '" + rules["kindnet's"].rules + "'")
	n.finds("beside iptables", NewFinder(kernel.IPv6, 100), "chain postrouting of the nftables table inet kindnet, priority 90")
}

// TestFinder_OtherIPTables: where the rules are in iptables' own chain, the other back end's chain has the same priority.
func TestFinder_OtherIPTables(t *testing.T) {
	for ours, test := range map[lab.Backend]struct{ other, found string }{
		lab.NFT:    {"legacy", "chain POSTROUTING of the table nat of iptables-legacy, priority 100"},
		lab.Legacy: {"nft", "chain POSTROUTING of the nftables table ip nat, priority 100"},
	} {
		t.Run(string(ours), func(t *testing.T) {
			n := newNodeOf(t, ours)
			n.run("iptables -t nat -A POSTROUTING -j MASQUERADE")
			f, before := NewFinder(kernel.IPv4, 100), NewFinder(kernel.IPv4, -198)
			n.finds("ours alone", f)
			n.run("iptables-" + test.other + " -t nat -A POSTROUTING -s 192.0.2.1 -j ACCEPT")
			n.finds("rules that give nothing", f)
			n.run("iptables-" + test.other + " -t nat -N masq; iptables-" + test.other + " -t nat -A masq -j MASQUERADE; iptables-" + test.other + " -t nat -I POSTROUTING -j masq")
			n.finds("others", f, test.found)
			n.finds("others, and ours before all of iptables", before)
			n.run("iptables-" + test.other + " -t nat -F")
			n.finds("gone", f)
		})
	}
}

// TestFinder_LegacyBesides: rules of iptables-legacy that no packet can reach from POSTROUTING give no source address, whatever their
// targets are.
func TestFinder_LegacyBesides(t *testing.T) {
	const jump = "iptables-legacy -t nat -N one; iptables-legacy -t nat -A one -s 192.0.2.1 -j RETURN; iptables-legacy -t nat -A POSTROUTING -s 192.0.2.1 -j one; "
	n := newNodeOf(t, lab.NFT)
	f := NewFinder(kernel.IPv4, 100)
	for what, rules := range map[string]string{
		"a chain that nothing leads to": jump + "iptables-legacy -t nat -N two; iptables-legacy -t nat -A two -j MASQUERADE",
		"a rule in PREROUTING":          jump + "iptables-legacy -t nat -A PREROUTING -d 192.0.2.2 -j NETMAP --to 192.0.2.3",
		"a rule in INPUT":               jump + "iptables-legacy -t nat -A INPUT -j SNAT --to 192.0.2.3",
		"a jump that is gone": jump + "iptables-legacy -t nat -N two; iptables-legacy -t nat -A two -j MASQUERADE; iptables-legacy -t nat -A POSTROUTING -j two; " +
			"iptables-legacy -t nat -F POSTROUTING",
	} {
		n.run(rules)
		n.finds(what, f)
		n.run("iptables-legacy -t nat -F; iptables-legacy -t nat -X")
	}
	n.run(jump + "iptables-legacy -t nat -N two; iptables-legacy -t nat -A one -g two; iptables-legacy -t nat -A two -j MASQUERADE")
	n.finds("two jumps", f, "chain POSTROUTING of the table nat of iptables-legacy, priority 100")
}

// TestFinder_OneLookFails: what is found elsewhere is told, and what was found before where nobody can look.
func TestFinder_OneLookFails(t *testing.T) {
	const legacy, kindnet = "chain POSTROUTING of the table nat of iptables-legacy, priority 100", "chain postrouting of the nftables table inet kindnet, priority 90"
	n := newNodeOf(t, lab.NFT)
	f := NewFinder(kernel.IPv4, 100)
	n.run("iptables -t nat -A POSTROUTING -j MASQUERADE; iptables-legacy -t nat -A POSTROUTING -j MASQUERADE")
	n.finds("all", f, legacy)
	n.run("nft '" + rules["kindnet's"].rules + "'")
	n.findsSome("without raw sockets", f, n.host.DoWithoutRawSockets, kindnet, legacy)
	n.run("nft delete table inet kindnet")
	n.finds("all again", f, legacy)
	n.run("nft '" + rules["kindnet's"].rules + "'")
	path := os.Getenv("PATH")
	t.Setenv("PATH", t.TempDir())
	n.findsSome("without iptables", f, n.host.Do, kindnet, legacy)
	n.findsSome("without iptables at the start", NewFinder(kernel.IPv4, 100), n.host.Do, kindnet)
	t.Setenv("PATH", path)
	n.finds("all at the end", f, kindnet, legacy)
}

// findsSome fails unless a Finder finds these chains and returns an error.
func (n node) findsSome(what string, f *Finder, do func(func() error) error, want ...string) {
	n.Helper()
	if err := do(func() error {
		chains, err := f.Find(n.Context())
		if found := names(chains); err == nil || !slices.Equal(found, want) {
			n.Errorf("%s: found %q, %v; want %q and an error", what, found, err, want)
		}
		return nil
	}); err != nil {
		n.Fatal(err)
	}
}

// TestFinder_IPTablesChanges: as soon as the programs on PATH write rules by the other back end, those of the former one are others'.
func TestFinder_IPTablesChanges(t *testing.T) {
	for ours, test := range map[lab.Backend]struct{ next, found string }{
		lab.NFT:    {"legacy", "chain POSTROUTING of the nftables table ip nat, priority 100"},
		lab.Legacy: {"nft", "chain POSTROUTING of the table nat of iptables-legacy, priority 100"},
	} {
		t.Run(string(ours), func(t *testing.T) {
			n := newNodeOf(t, ours)
			f := NewFinder(kernel.IPv4, 100)
			n.run("iptables -t nat -A POSTROUTING -j MASQUERADE")
			n.finds("before", f)
			program, err := exec.LookPath("iptables-" + test.next)
			dir := t.TempDir()
			if err := errors.Join(err, os.Symlink(program, filepath.Join(dir, "iptables"))); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
			n.run("iptables-" + test.next + " -t nat -A POSTROUTING -j MASQUERADE")
			n.settles(f, test.found)
			n.run("iptables-" + string(ours) + " -t nat -F")
			n.finds("after", f)
		})
	}
}

// settles fails unless the second look at the latest finds these chains: the first one may find out that ours are by the other
// iptables now.
func (n node) settles(f *Finder, want ...string) {
	n.Helper()
	if err := n.host.Do(func() error {
		_, err := f.Find(n.Context())
		return err
	}); err != nil {
		n.Fatal(err)
	}
	n.finds("changed", f, want...)
}

// TestFinder_KubeProxysChains cost nothing: there may be a hundred thousand, and the ruleset changes with each Service.
func TestFinder_KubeProxysChains(t *testing.T) {
	n := newNode(t)
	n.run("iptables -t nat -A POSTROUTING -j MASQUERADE; iptables -t mangle -N KUBE-KUBELET-CANARY")
	var allocations []float64
	for _, before := range []string{
		"true",
		`(echo '*nat'; seq -f ':KUBE-SVC-%g - [0:0]' 2000; seq -f '-A KUBE-SVC-%g -j RETURN' 2000; echo COMMIT) | iptables-restore -n
		(echo 'table ip kube-proxy {'; seq -f 'chain service-%g { accept; }' 2000; echo '}') | nft -f -`,
	} {
		n.run(before)
		f := NewFinder(kernel.IPv4, 100)
		if err := n.host.Do(func() (err error) {
			defer f.Close()
			allocations = append(allocations, testing.AllocsPerRun(5, func() {
				f.found.Forget()
				_, err = f.Find(t.Context())
			}))
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if more := allocations[1] - allocations[0]; more > 500 {
		t.Errorf("4,000 chains of kube-proxy take %.0f allocations more than none, which takes %.0f", more, allocations[0])
	}
}
