package steering

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// wicked are names of somebody who would like to write elements and rules, or to frighten a terminal.
var wicked = []string{
	"", "web", "#", `"`, `\`, "\\\n", "'", ",", "}", "{ }", ";", "$(reboot)", "\n", "\r\n", "\v", "\f", "\x00", "\t", "\u0085", "\u2028", "\x1b[2J", "\u009b31m", "\u202e", "\xff\xfe",
	"\n\t\t}\n\t}\n}\nflush ruleset\n", "\ndelete table ip kube-proxy\n", "\n}}; flush ruleset #", "\n10.128.0.66 . tcp : 203.0.113.66,\n", "\ninclude \"/etc/passwd\"\n", strings.Repeat("long ", 1000),
}

// hostilePlan binds two pods, both with this comment.
func hostilePlan(v4 bool, comment string) (kernel.Desired, map[kernel.Binding]string) {
	pods, egressIP, inside := []string{"fd00:10:128::11", "fd00:10:128::12"}, "2001:db8:113::5", "fd00:10:128::/48"
	if v4 {
		pods, egressIP, inside = []string{"10.128.0.11", "10.128.0.12"}, "203.0.113.5", "10.128.0.0/14"
	}
	p := kernel.Desired{Networks: kernel.Networks{ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix(inside)}}}
	comments := map[kernel.Binding]string{}
	for i, pod := range pods {
		b := kernel.Binding{Pod: netip.MustParseAddr(pod), Protocol: []kernel.Protocol{kernel.TCP, kernel.All}[i], EgressIP: netip.MustParseAddr(egressIP)}
		p.Bindings, comments[b] = append(p.Bindings, b), comment
	}
	return p, comments
}

func hostileText(t *testing.T, v4 bool, comment string) string {
	t.Helper()
	d, comments := hostilePlan(v4, comment)
	text, err := LocalText(map[bool]kernel.Family{true: kernel.IPv4, false: kernel.IPv6}[v4], d, comments)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// FuzzHostileNames: whatever a comment says, the payload has the elements and rules that it has with
// another, and the comment stays in its line, and can be read.
func FuzzHostileNames(f *testing.F) {
	for i, text := range wicked {
		f.Add(text, i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, text string, v4 bool) {
		split := func(comment string) (comments, rest []string) {
			for line := range strings.Lines(hostileText(t, v4, comment)) {
				element, comment, is := strings.Cut(line, " # ")
				if is {
					comments = append(comments, comment)
				}
				rest = append(rest, strings.TrimSuffix(element, "\n"))
			}
			return comments, rest
		}
		comments, got := split(text)
		if _, want := split("Service shop/web"); !slices.Equal(got, want) {
			t.Fatalf("the payload (-want +got):\n%s", cmp.Diff(want, got))
		}
		if text != "" && len(comments) != 2 {
			t.Errorf("%d comments on two bindings", len(comments))
		}
		for _, comment := range comments {
			text := strings.TrimSuffix(comment, "\n")
			if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("the comment %q cannot be read", comment)
			}
		}
	})
}

// TestLocal_HostileNamesAsNftReadsThem: they are nothing to it.
func TestLocal_HostileNamesAsNftReadsThem(t *testing.T) {
	onLocalNode(t, 0, func(n *localNode) {
		for _, name := range wicked {
			v4 := n.family == kernel.IPv4
			text := []byte(hostileText(t, v4, name))
			n.inside(func() error { return nft.Check(t.Context(), text) })
			file := filepath.Join(t.TempDir(), "payload")
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			n.nft("-f " + file)
			d, _ := hostilePlan(v4, name)
			n.holds(d)
			n.nft("delete table " + n.name())
		}
	})
}
