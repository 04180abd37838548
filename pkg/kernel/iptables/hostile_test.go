package iptables

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/openshift/origin-node/pkg/kernel"
)

// FuzzHostilePlan: whatever names, protocols and addresses a plan has, what is written for it
// is something that iptables-restore takes, says what the plan says and nothing else, and
// touches nothing of anybody else's.
func FuzzHostilePlan(f *testing.F) {
	for seed := range uint64(30) {
		f.Add(randomBytes(seed, int(seed)*200), seed%2 == 0)
	}
	f.Fuzz(func(t *testing.T, data []byte, v4 bool) {
		h := &hostile{data: data, v4: v4}
		p, comments := h.plan()
		q, _ := h.plan()
		empty := newTable(v4)
		maps.DeleteFunc(empty.chains, func(name string, _ []string) bool { return Egress.owns(name) || name == "SOMEBODY" })
		empty.restore(t, Payload(p, comments))
		empty.holds(t, p)

		table := newTable(v4)
		table.restore(t, Transaction(Render(p), table.kernel(t), nil))
		table.holds(t, p)

		// The way to another plan, with what goes on record.
		_, removed := kernel.Diff(q.Bindings, p.Bindings)
		want := Render(q)
		want.Record(removed)
		table.restore(t, Transaction(want, table.kernel(t), nil))
		if got, all := table.kernel(t).Bindings(), slices.Concat(q.Bindings, removed); !slices.Equal(got, said(all)) {
			t.Fatalf("the kernel has the bindings and the journal\n%v, want\n%v", got, said(all))
		}
		table.restore(t, Transaction(Render(q), table.kernel(t), nil))
		table.holds(t, q)
		table.restore(t, Transaction(Ruleset{}, table.kernel(t), nil))
		table.holds(t, kernel.Desired{})
	})
}

func randomBytes(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 4))
	var data []byte
	for range n {
		data = append(data, byte(r.Uint32()))
	}
	return data
}

// hostile makes plans of one IP family out of bytes, which somebody may have chosen.
type hostile struct {
	data []byte
	v4   bool
}

// n returns a number below limit: 0 when there are no bytes left.
func (h *hostile) n(limit int) int {
	var next [2]byte
	h.data = h.data[copy(next[:], h.data):]
	return int(binary.BigEndian.Uint16(next[:])) % limit
}

// wicked are for names: of ordinary objects, and of those who would like to write rules, end
// the transaction, or frighten a terminal.
var wicked = []string{
	"", "shop", "web", " ", "-j", "-p", "--to-source", "all", "TCP", "tcp -j ACCEPT", "#", `"`, `\`, "'", "`reboot`", "$(reboot)",
	"\n", "\r\n", "\nCOMMIT\n", "\nCOMMIT\n*filter\n-P INPUT DROP\nCOMMIT\n", "\n-A POSTROUTING -j ACCEPT\n", "\n:POSTROUTING DROP [0:0]\n",
	"\n-D POSTROUTING 1\n", "\n-F\n", "\n-X OPENSHIFT-EGRESS-SNAT\n", "\x00", "\t", "\x1b[2J\x1b[1;1H", "\u009b31m", "\u202e", "\u2028", "\xff\xfe", "é",
}

// text returns a name of up to 20,000 bytes.
func (h *hostile) text() string {
	text := wicked[h.n(len(wicked))]
	switch h.n(8) {
	case 0:
		text += wicked[h.n(len(wicked))] + wicked[h.n(len(wicked))]
	case 1:
		n := min(h.n(40), len(h.data))
		text, h.data = string(h.data[:n]), h.data[n:]
	case 2:
		text = strings.Repeat("a", h.n(12000)) + text // to where lines are broken
	}
	return text
}

func (h *hostile) protocol() kernel.Protocol {
	if h.n(10) == 0 {
		return kernel.Protocol(h.text())
	}
	return everyProtocol[h.n(len(everyProtocol))]
}

// network is where most addresses are, so that there are trees.
func (h *hostile) network() netip.Prefix {
	if h.v4 {
		return clusterV4
	}
	return clusterV6
}

var oddAddresses = map[bool][]string{
	true:  {"0.0.0.0", "255.255.255.255", "127.0.0.1", "224.0.0.1", "240.0.0.1", "169.254.0.1", "203.0.113.1", "10.128.0.0"},
	false: {"::", "::1", "::ffff:203.0.113.1", "::ffff:0:0", "::1.2.3.4", "fe80::1", "ff02::1", "2001:db8:113::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
}

// addr returns an address of the family, which no rule can have in one of 30 cases or two.
func (h *hostile) addr() netip.Addr {
	bytes := h.network().Addr().AsSlice()
	switch h.n(30) {
	case 0:
		return netip.Addr{}
	case 1:
		addr, _ := netip.AddrFromSlice(bytes)
		return addr.WithZone(h.text()) // of IPv6
	case 3:
		return netip.MustParseAddr(oddAddresses[h.v4][h.n(len(oddAddresses[h.v4]))])
	case 4, 5:
		for i := range bytes {
			bytes[i] = byte(h.n(256))
		}
	default:
		bytes[len(bytes)-1], bytes[len(bytes)-2] = byte(h.n(256)), byte(h.n(3))
	}
	addr, _ := netip.AddrFromSlice(bytes)
	return addr
}

func (h *hostile) prefixes() []netip.Prefix {
	var result []netip.Prefix
	for range h.n(4) * h.n(50) {
		addr := h.addr().WithZone("")
		bits := addr.BitLen()
		if h.n(10) == 0 {
			bits = h.n(bits + 1)
		}
		result = append(result, netip.PrefixFrom(addr, bits).Masked())
	}
	slices.SortFunc(result, netip.Prefix.Compare)
	return slices.Compact(result)
}

// plan returns one that is sorted and binds nothing twice, as every plan is, with comments on its bindings.
func (h *hostile) plan() (kernel.Desired, map[kernel.Binding]string) {
	p := kernel.Desired{Networks: kernel.Networks{ClusterCIDRs: []netip.Prefix{h.network()}, Exclusions: h.prefixes()}}
	comments := map[kernel.Binding]string{}
	for range h.n(4) * h.n(80) {
		b := kernel.Binding{Pod: h.addr(), Protocol: h.protocol(), EgressIP: h.addr()}
		p.Bindings, comments[b] = append(p.Bindings, b), h.text()+"/"+h.text()
	}
	p.Bindings = boundOnce(p.Bindings)
	return p, comments
}

// said returns those of the bindings that rules can say, as the kernel knows them.
func said(bindings []kernel.Binding) []kernel.Binding {
	var result []kernel.Binding
	for _, b := range bindings {
		if b.Pod.IsValid() && b.EgressIP.IsValid() && b.Pod.Zone()+b.EgressIP.Zone() == "" && slices.Contains(everyProtocol, b.Protocol) {
			result = append(result, b)
		}
	}
	return kernel.Sorted(result)
}

// natTable is one that takes what this package writes and nothing else, by the rules of
// iptables-restore --noflush.
type natTable struct {
	chains map[string][]string
	// v4 is its IP family.
	v4 bool
}

// foreign is what others have in the table, with the one rule of theirs that leads to a chain
// of ours, which an earlier version may have had.
var foreign = map[string][]string{
	"POSTROUTING":         {`-m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING`, "-j MASQUERADE"},
	"KUBE-POSTROUTING":    {"-j RETURN"},
	"SOMEBODY":            {"-j " + ChainPrefix + "OLD"},
	ChainPrefix + "OLD":   {"-j RETURN"},
	ChainPrefix + "STALE": {"-j RETURN"},
}

func newTable(v4 bool) *natTable { return &natTable{maps.Clone(foreign), v4} }

const (
	anAddress = `[0-9a-f:.]+`
	aPrefix   = anAddress + `/[0-9]{1,3}`
	aChain    = ChainPrefix + `[A-Z0-9-]+`
)

// ruleSyntax is all that a rule of ours can be.
var (
	ruleSyntax = regexp.MustCompile(`^(-s ` + aPrefix + ` )?((! )?-d ` + aPrefix + ` )?(-p (tcp|udp|sctp) )?` +
		`(-j RETURN|-g ` + aChain + `|-j SNAT --to-source ` + anAddress + ` --random-fully)$`)
	addressSyntax = regexp.MustCompile(anAddress)
	nameSyntax    = regexp.MustCompile(`^` + aChain + `$`)
)

// restore applies the input of iptables-restore, nil for none. It fails the test if anything
// in it could be taken for something else.
func (tb *natTable) restore(t *testing.T, payload []byte) {
	t.Helper()
	if payload == nil {
		return
	}
	if err := tb.apply(string(payload)); err != nil {
		t.Fatalf("%v:\n%s", err, payload)
	}
}

func (tb *natTable) apply(payload string) error {
	text, whole := strings.CutSuffix(payload, "\nCOMMIT\n")
	text, begun := strings.CutPrefix(text, "*nat\n")
	if !whole || !begun {
		return fmt.Errorf("no transaction of the nat table")
	}
	declared := map[string]bool{}
	for i, line := range strings.Split(text, "\n") {
		if err := tb.line(line, declared); err != nil {
			return fmt.Errorf("line %d, %q: %w", i+2, line, err)
		}
	}
	return tb.whole()
}

func (tb *natTable) line(line string, declared map[string]bool) error {
	if len(line) > 1000 {
		return fmt.Errorf("%d bytes: the end of a long line counts as a line of its own", len(line))
	}
	if !utf8.ValidString(line) || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("not printable")
	}
	if strings.HasPrefix(line, "# ") {
		return nil
	}
	if name, isChain := strings.CutPrefix(line, ":"); isChain {
		name, counters, _ := strings.Cut(name, " ")
		if counters != "- [0:0]" || !nameSyntax.MatchString(name) || len(name) > 28 {
			return fmt.Errorf("no chain of ours")
		}
		tb.chains[name], declared[name] = nil, true
		return nil
	}
	return tb.command(line, declared)
}

func (tb *natTable) command(line string, declared map[string]bool) error {
	option, rest, _ := strings.Cut(line, " ")
	chain, rule, _ := strings.Cut(rest, " ")
	rules := tb.chains[chain]
	switch {
	case option == "-A" && declared[chain]:
		if !ruleSyntax.MatchString(rule) {
			return fmt.Errorf("no rule of ours")
		}
		for _, text := range addressSyntax.FindAllString(ruleAddresses(rule), -1) {
			if ip, err := netip.ParseAddr(text); err != nil || ip.Is4() != tb.v4 || addressText(ip) != text {
				return fmt.Errorf("%s is not how iptables-save prints an address of the family", text)
			}
		}
		tb.chains[chain] = append(rules, rule)
	case option == "-I" && rest == "POSTROUTING 1 "+jumpRule:
		tb.chains[chain] = slices.Insert(slices.Clone(rules), 0, jumpRule)
	case option == "-D" && chain == "POSTROUTING" && strings.Contains(rule, " -j "+ChainPrefix) && slices.Contains(rules, rule):
		i := slices.Index(rules, rule)
		tb.chains[chain] = slices.Delete(slices.Clone(rules), i, i+1)
	case option == "-X" && declared[rest] && len(rules) == 0:
		delete(tb.chains, rest)
	default:
		return fmt.Errorf("nothing that we do")
	}
	return nil
}

// ruleAddresses returns the addresses of a rule, one after another.
func ruleAddresses(rule string) string {
	var found []string
	for _, m := range regexp.MustCompile(`(?:-[sd]|--to-source) (`+anAddress+`)`).FindAllStringSubmatch(rule, -1) {
		found = append(found, m[1])
	}
	return strings.Join(found, " ")
}

// whole returns an error if a rule leads to a chain that is not there.
func (tb *natTable) whole() error {
	for name, rules := range tb.chains {
		for _, rule := range rules {
			_, to, goes := strings.Cut(rule, "-g ")
			if _, to2, jumps := strings.Cut(rule, "-j "); jumps && Egress.owns(to2) {
				to, goes = to2, true
			}
			if _, exists := tb.chains[to]; goes && !exists {
				return fmt.Errorf("a rule of %s leads to %s, which is not there: %s", name, to, rule)
			}
		}
	}
	return nil
}

// kernel is the table as this package reads it.
func (tb *natTable) kernel(t *testing.T) Kernel {
	t.Helper()
	save := "*nat\n"
	for _, name := range slices.Sorted(maps.Keys(tb.chains)) {
		save += ":" + name + " - [0:0]\n"
	}
	for _, name := range slices.Sorted(maps.Keys(tb.chains)) {
		for _, rule := range tb.chains[name] {
			save += "-A " + name + " " + rule + "\n"
		}
	}
	k, err := ParseSave(save + "COMMIT\n")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// holds fails the test unless the table holds what p says, and what others have as it was.
func (tb *natTable) holds(t *testing.T, p kernel.Desired) {
	t.Helper()
	k := tb.kernel(t)
	if differences := Differences(Render(p), k); len(differences) > 0 {
		t.Fatalf("the plan is not held: %q", differences)
	}
	bindings := said(p.Bindings)
	if got := k.Bindings(); !slices.Equal(got, bindings) {
		t.Fatalf("the kernel has the bindings\n%v, want\n%v", got, bindings)
	}
	others := maps.Clone(tb.chains)
	if len(bindings) > 0 {
		others["POSTROUTING"] = others["POSTROUTING"][1:] // the jump, as there is no difference
	}
	for name, rules := range others {
		if want := foreign[name]; !Egress.owns(name) && !slices.Equal(rules, want) {
			t.Fatalf("somebody's chain %s has the rules\n%q, want\n%q", name, rules, want)
		}
	}
	p.Bindings = bindings
	wellFormed(t, k.Chains.without(ChainPrefix+"OLD"))
	tb.packets(t, k, p)
}

// without returns r but for one chain.
func (r Ruleset) without(name string) Ruleset {
	r = maps.Clone(r)
	delete(r, name)
	return r
}

// packets fails the test unless packets leave as p says.
func (tb *natTable) packets(t *testing.T, k Kernel, p kernel.Desired) {
	t.Helper()
	if len(p.Bindings) == 0 {
		return
	}
	bound := byPod(p)
	everywhere := destinations(rand.New(rand.NewPCG(1, 1)), p)
	for _, cidr := range p.Exclusions {
		if len(everywhere) < 12 && cidr.IsValid() {
			everywhere = append(everywhere, cidr.Addr(), cidr.Addr().Next())
		}
	}
	for i, b := range p.Bindings {
		if i > 40 {
			break
		}
		for _, to := range append(everywhere, b.EgressIP) {
			for _, protocol := range everyProtocol {
				packet := Packet{b.Pod, to, protocol}
				if _, got := k.Chains.Trace(packet); got != wantedEgressIP(p, bound, packet) {
					t.Fatalf("%v leaves from %s, want %s", packet, got, wantedEgressIP(p, bound, packet))
				}
			}
		}
	}
}
