package nft

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
)

// TestRule_AsNftReads: nft makes the same expressions of the words that rules use. It cannot be asked about a map's value in an element, whose
// types it knows by no names: what package conntrack notes shows that.
func TestRule_AsNftReads(t *testing.T) {
	l := newLab(t)
	for name, s := range map[string]Spec{
		"ip": {Name: "words", Family: kernel.IPv4}, "ip6": {Name: "words", Family: kernel.IPv6}, "netdev": {Name: "words", Family: kernel.IPv4, Ingress: true},
	} {
		t.Run(name, func(t *testing.T) {
			texts := ipTexts(s.Family)
			if s.Ingress {
				texts = netdevTexts
			}
			var rules []Rule
			for i, text := range texts {
				rules = append(rules, s.Rule(fmt.Sprint(i), text))
			}
			input := "table " + name + " words {\n" + strings.NewReplacer("ADDRESS", addressType[s.Family]).Replace(surroundings)
			for _, r := range rules {
				if r.err != nil {
					t.Error(r.err)
				}
				input += "\t\t" + r.Text + "\n"
			}
			if err := l.Node().Feed(t.Context(), input+"\t}\n}\n", "nft", "-f", "-"); err != nil {
				t.Fatalf("%v\n%s", err, input)
			}
			err := l.Node().Do(func() error { return addRules(s, rules, false) })
			if err != nil {
				t.Fatal(err)
			}
			of, want := rulesIn(t, l.Node(), s, "ours"), rulesIn(t, l.Node(), s, "words")
			if len(of) != len(want) {
				t.Fatalf("there are %d rules, nft has made %d", len(of), len(want))
			}
			for i, r := range rules {
				if of[i] != want[i] {
					t.Errorf("%s\nis here %x\nto nft  %x", r.Text, of[i], want[i])
				}
			}
		})
	}
}

func newLab(t *testing.T) *lab.Lab {
	t.Helper()
	l, err := lab.New(t.Context(), lab.Config{Nodes: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

var addressType = map[kernel.Family]string{kernel.IPv4: "ipv4_addr", kernel.IPv6: "ipv6_addr"}

// surroundings are sets, maps and chains for the rules.
const surroundings = `
	counter dropped { }
	set addresses { type ADDRESS; flags interval; }
	set pods { type ADDRESS . inet_proto; }
	set hosts { type ADDRESS . ADDRESS . inet_proto; size 100; flags dynamic; }
	set arrivals { type ifname . ADDRESS; }
	set from { type ADDRESS . ifname; }
	set ports { type inet_service; }
	set senders { type ether_addr; }
	set homes { type ADDRESS . ether_addr; }
	set flows { type ADDRESS . ADDRESS . inet_proto . inet_service . inet_service; size 100; flags dynamic,timeout; timeout 5m; }
	map chains { type ADDRESS : verdict; }
	map pod-chains { type ADDRESS . inet_proto : verdict; }
	map nodes { type ADDRESS : ADDRESS; }
	map blocks { type ADDRESS . inet_proto : interval ADDRESS . inet_service; }
	map port-pods { type ADDRESS . inet_service : ADDRESS; flags interval; }
	set pod-ports { type ADDRESS . inet_service; flags interval; }
	map ways { type ADDRESS : classid; }
	map pod-ways { type ADDRESS . inet_proto : classid; }
	chain other { accept; }
	chain ours { }
	chain words {
`

func ipTexts(family kernel.Family) []string {
	address, others := "192.0.2.1", []string{"ip ttl > 1", "tcp dport @ports dnat to 192.0.2.1:10263", "ip daddr 192.0.2.128/25 accept", "ip saddr != 10.0.0.0/9 accept"}
	if family == kernel.IPv6 {
		address, others = "2001:db8::1", []string{"ip6 hoplimit > 1", "tcp dport @ports dnat to [2001:db8::1]:10263", "ip6 daddr 2001:db8::/33 accept"}
	}
	return append(strings.Split(strings.ReplaceAll(`IP saddr ADDRESS accept
IP daddr != ADDRESS return
IP saddr @addresses IP daddr != @addresses counter name dropped drop
IP saddr . meta l4proto @pods goto other
IP saddr . ct protocol != @pods jump other
IP saddr . IP daddr . meta l4proto @hosts accept
IP daddr . IP saddr . meta l4proto . th dport . th sport @flows drop
IP saddr vmap @chains
IP saddr . meta l4proto vmap @pod-chains
ct state new accept
ct state invalid,new,related accept
ct status snat accept
ct status & confirmed == 0 accept
ct state & untracked == 0 drop
ct direction reply accept
meta l4proto ICMP accept
meta l4proto != tcp meta l4proto != udp accept
meta l4proto sctp accept
meta mark & 0x7e == 0x2 accept
meta mark & 0x7e != 0x0 accept
meta mark set meta mark & 0xffffff81
meta mark set meta mark & 0xffffff81 | 0x42
meta skuid != 4294967295 accept
meta iifname "steer0" accept
meta oifname "steer0" accept
meta iiftype != loopback accept
meta priority 2:200 accept
meta priority set 0:0
meta priority set IP saddr map @ways goto other
meta priority set IP saddr . meta l4proto map @pod-ways goto other
ether saddr @senders accept
udp dport 4798 accept
tcp dport @ports accept
meta l4proto tcp tcp dport 7948 accept
th dport 53 accept
tcp flags & (syn | rst | ack) == syn accept
tcp flags & (syn | rst | ack) != syn drop
tcp flags & (syn | ack) == (syn | ack) tcp option maxseg size set 1360
tcp flags syn accept
@th,176,48 0x025a00000001 accept
@nh,16,16 0x8100 drop
fib daddr type local accept
fib daddr type != unicast drop
fib daddr type multicast return
fib saddr type != local drop
rt IP nexthop @addresses accept
socket transparent 0 return
socket transparent 1 return
notrack
fib saddr . iif oif exists accept
fib saddr . iif oif missing drop
ct state new ether saddr @senders IP saddr . ether saddr != @homes drop
meta priority set IP saddr . ct protocol map @pod-ways goto other
ct status confirmed ct status snat ct status dnat accept
dup to IP daddr map @nodes
add @hosts { IP saddr . IP daddr . meta l4proto }
snat to ADDRESS
snat to ADDRESS fully-random
snat to IP saddr
meta l4proto tcp snat to ADDRESS : 61440-65535
snat to IP saddr map @nodes
meta l4proto tcp snat to IP saddr : th sport
dnat to IP daddr . th dport map @port-pods
meta l4proto udp IP daddr . th dport @pod-ports drop
socket wildcard 0 return
reject with tcp reset
reject with ICMP type port-unreachable
reject with ICMP type admin-prohibited
update @flows { IP daddr . IP saddr . meta l4proto . th dport . th sport }
update @flows { IP daddr . IP saddr . meta l4proto . th dport . th sport timeout 1s }`, "ADDRESS", address), "\n"), others...)
}

var netdevTexts = []string{
	"ip saddr 192.0.2.1 accept",
	"ip6 saddr 2001:db8::1 accept",
	"ip saddr @addresses counter name dropped drop",
	"meta protocol 8021q goto other",
	"meta protocol 8021ad goto other",
	"@nh,16,16 0x8100 counter name dropped drop",
	"goto other",
}

// TestRule_SourceNATByMap: nft prints the rule as its text is. What it makes of that is not taken for the rule.
func TestRule_SourceNATByMap(t *testing.T) {
	l := newLab(t)
	for name, family := range map[string]kernel.Family{"ip": kernel.IPv4, "ip6": kernel.IPv6} {
		s := Spec{Name: "words", Family: family}
		rule := s.Commented("gives ports", "meta l4proto tcp meta mark & 0x0000007e == 0x00000002 meta mark set meta mark & 0xffffff81 snat IP to IP saddr . meta l4proto map @blocks")
		printed := printsItsText(t, l, name, s, rule)
		ask, change := slices.IndexFunc(rule.Exprs, isLookup), slices.IndexFunc(rule.Exprs, func(e expr.Any) bool {
			m, is := e.(*expr.Meta)
			return is && m.SourceRegister
		})
		if ask < 0 || change < ask {
			t.Errorf("%s: the rule changes the mark before it asks the map", name)
		}
		err := l.Node().Feed(t.Context(), "flush chain "+name+" words ours\n"+printed, "nft", "-f", "-")
		if family == kernel.IPv6 { // nft 1.0.6 to 1.1.3
			t.Logf("nft reads its listing of IPv6: %v", err)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var marks []string
		err = l.Node().Do(func() error {
			c, err := Open(t.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			all, err := c.marks(&nftables.Table{Name: s.Name, Family: languageOf(s).table})
			marks = all["ours"]
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(marks) != 1 || !strings.Contains(marks[0], rule.Comment) || marks[0] == rule.Mark {
			t.Errorf("%s: of a listing of the rule %q nft has made %q", name, rule.Mark, marks)
		}
	}
}

// TestRule_MapInFront: a rule asks the map of its source NAT in front of its matches, loads no field again that a register has, and nft prints it
// as its text is.
func TestRule_MapInFront(t *testing.T) {
	l := newLab(t)
	for matches, loads := range map[string]int{
		"IP daddr != @addresses IP saddr . IP daddr . meta l4proto != @hosts": 3,
		"meta iifname . IP saddr @arrivals IP saddr @addresses":               4,
		"IP saddr . meta iifname @from IP daddr @addresses":                   4,
		"IP saddr @addresses": 1,
		"IP saddr . meta l4proto @pods IP saddr != @addresses":                           2,
		"IP daddr @addresses IP saddr . meta l4proto @pods":                              4,
		"IP daddr . meta l4proto @pods IP daddr @addresses":                              3,
		"IP daddr @addresses meta mark & 0x0000007e == 0x00000002 IP daddr @addresses":   4, // a comparison may change the first register
		"IP saddr . IP daddr . meta l4proto @hosts meta l4proto tcp IP daddr @addresses": 5,
	} {
		for name, family := range map[string]kernel.Family{"ip": kernel.IPv4, "ip6": kernel.IPv6} {
			s := Spec{Name: "words", Family: family}
			rule := s.Rule("1", matches+" snat to IP saddr map @nodes fully-random")
			first, is := rule.Exprs[slices.IndexFunc(rule.Exprs, isLookup)].(*expr.Lookup)
			if !is || first.SetName != "nodes" {
				t.Errorf("%s: the rule asks %+v first", name, first)
			}
			if got := len(rule.Exprs) - len(slices.DeleteFunc(slices.Clone(rule.Exprs), isLoad)); got != loads {
				t.Errorf("%s: %s: %d loads, want %d", name, rule.Text, got, loads)
			}
			printsItsText(t, l, name, s, rule)
		}
	}
	for name, s := range map[string]Spec{"ip": {Name: "words", Family: kernel.IPv4}, "ip6": {Name: "words", Family: kernel.IPv6}} {
		network := map[kernel.Family]string{kernel.IPv4: "192.0.2.0/24", kernel.IPv6: "2001:db8::/64"}[s.Family]
		printsItsText(t, l, name, s, s.Rule("3", "IP daddr "+network+" goto other")) // of whole bytes, of which nft loads no more
	}
	changed := Spec{Name: "words", Family: kernel.IPv4}.Rule("2", "meta mark set meta mark & 0xffffff81 dnat to IP daddr map @nodes")
	if last := slices.IndexFunc(changed.Exprs, isLookup); last != len(changed.Exprs)-2 {
		t.Errorf("a rule that has changed the packet asks its map as expression %d of %d", last, len(changed.Exprs))
	}
}

func isLoad(e expr.Any) bool {
	switch e.(type) {
	case *expr.Payload, *expr.Meta, *expr.Ct:
		return true
	}
	return false
}

// printsItsText writes a rule of a new table, and returns how nft lists its chain: with the rule's text.
func printsItsText(t *testing.T, l *lab.Lab, name string, s Spec, rule Rule) string {
	t.Helper()
	table := "table " + name + " words {\n" + strings.NewReplacer("ADDRESS", addressType[s.Family]).Replace(surroundings) + "}\n}\n"
	if err := l.Node().Feed(t.Context(), table, "nft", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	if err := l.Node().Do(func() error { return addRules(s, []Rule{rule}, true) }); err != nil {
		t.Fatal(err)
	}
	printed, err := l.Node().Command(t.Context(), "nft", "list", "chain", name, "words", "ours").Output()
	if err != nil || !strings.Contains(string(printed), strings.ReplaceAll(rule.Text, "meta iifname", "iifname")) {
		t.Errorf("%s: %v\n%s\nnot\n%s", name, err, printed, rule.Text)
	}
	return string(printed)
}

func isLookup(e expr.Any) bool {
	_, is := e.(*expr.Lookup)
	return is
}

// addRules writes rules beside those of nft.
func addRules(s Spec, rules []Rule, marked bool) error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	chain := &nftables.Chain{Name: "ours", Table: &nftables.Table{Name: s.Name, Family: languageOf(s).table}}
	for _, r := range rules {
		rule, err := r.In(chain)
		if err != nil {
			return err
		}
		if !marked {
			rule.UserData = nil
		}
		c.AddRule(rule)
	}
	return c.Flush()
}

// rulesIn returns what the kernel tells of a chain's rules.
func rulesIn(t *testing.T, node *lab.Host, s Spec, chain string) (rules []string) {
	t.Helper()
	err := node.Do(func() error {
		r, err := OpenReader(t.Context(), s.Family)
		if err != nil {
			return err
		}
		defer r.Close()
		r.family = languageOf(s).table
		_, err = r.Rules(s.Name, chain, func(rule ListedRule) { rules = append(rules, string(rule.Content)) })
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// TestRule_Unreadable: a text that is not understood is an error that names it, and nothing is written.
func TestRule_Unreadable(t *testing.T) {
	s := Spec{Name: "words", Family: kernel.IPv4}
	for text, want := range map[string]string{
		"":                        "",
		"accept":                  "",
		"IP saddr":                `the nftables rule "ip saddr": the text ends too early`,
		"IP saddr 2001:db8::1":    `the nftables rule "ip saddr 2001:db8::1": "2001:db8::1" is no value here`,
		"IP saddr . IP daddr foo": `several fields are found in a set alone, not so before "foo"`,
		"ct state sleeping":       `"sleeping" is no value here`,
		"IP saddr 192.0.2.1/24":   `"192.0.2.1/24" is no network`,
		"masquerade":              `"masquerade" is no statement that is known`,
		"counter dropped":         `"name" is expected before "dropped"`,
		"goto":                    "the text ends too early",
		"@nh,4,4 1":               "@nh,4,4 are no whole bytes of a packet",
		"tcp sequence 1":          "nothing is compared with this field",
		"ct state set new":        "this field cannot be set",
		"reject with icmp type x": "an unknown way to reject",
		"update flows { }":        "a set's name begins with @",
		"snat to IP saddr : 9-1":  `"9-1" are no ports: expected two numbers, 32000-32511 for example`,

		"add @heard { IP saddr : tcp sequence }": `"meta l4proto tcp" is needed in front`,
		`meta iifname "bondIP" accept`:           "",
		`meta iifname "eth(0)" accept`:           "",
		`meta iifname "" accept`:                 `"\"\"" is no value here`,
	} {
		r := s.Commented("purpose", text)
		switch {
		case want == "" && r.err != nil:
			t.Errorf("%q: %v", text, r.err)
		case want != "" && (r.err == nil || !strings.Contains(r.err.Error(), want)):
			t.Errorf("%q: the error is %v, want %s", text, r.err, want)
		}
	}
}

// TestRule_NamesStay: what is between quotation marks is nobody's word.
func TestRule_NamesStay(t *testing.T) {
	for _, name := range []string{"bondIP", "eth(0)", "ICMP", "IP"} {
		r := Spec{Name: "words", Family: kernel.IPv6}.Rule("", `meta iifname "`+name+`" accept`)
		compared, is := r.Exprs[1].(*expr.Cmp)
		if !is || strings.TrimRight(string(compared.Data), "\x00") != name {
			t.Errorf("%s: %s, %#v", name, r.Text, r.Exprs)
		}
	}
}
