package nftables

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

	"github.com/openshift/origin-node/pkg/egress/plan"
)

// wicked are names of somebody who would like to write elements and rules, or to frighten a terminal.
var wicked = []string{
	"", "web", "#", `"`, `\`, "\\\n", "'", ",", "}", "{ }", ";", "$(reboot)", "\n", "\r\n", "\v", "\f", "\x00", "\t", "\u0085", "\u2028", "\x1b[2J", "\u009b31m", "\u202e", "\xff\xfe",
	"\n\t\t}\n\t}\n}\nflush ruleset\n", "\ndelete table ip kube-proxy\n", "\n}}; flush ruleset #", "\n10.128.0.66 . tcp : 203.0.113.66,\n", "\ninclude \"/etc/passwd\"\n", strings.Repeat("long ", 1000),
}

// hostilePlan binds two pods for Services of these names.
func hostilePlan(v4 bool, namespace, name string) plan.Plan {
	pods, egressIP, inside := []string{"fd00:10:128::11", "fd00:10:128::12"}, "2001:db8:113::5", "fd00:10:128::/48"
	if v4 {
		pods, egressIP, inside = []string{"10.128.0.11", "10.128.0.12"}, "203.0.113.5", "10.128.0.0/14"
	}
	p := plan.Plan{ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix(inside)}}
	for i, pod := range pods {
		p.Bindings = append(p.Bindings, plan.Binding{
			Pod: netip.MustParseAddr(pod), Protocol: []plan.Protocol{plan.TCP, plan.All}[i], EgressIP: netip.MustParseAddr(egressIP),
			Service: plan.Service{Namespace: namespace, Name: name},
		})
	}
	return p
}

// FuzzHostileNames: whatever a Service is called, the payload has the elements and rules that it has
// without that name, and what it says of it stays in a line that can be read.
func FuzzHostileNames(f *testing.F) {
	for i, text := range wicked {
		f.Add(text, wicked[len(wicked)-1-i], i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, namespace, name string, v4 bool) {
		split := func(p plan.Plan) (comments, rest []string) {
			for line := range strings.Lines(string(Payload(p))) {
				if strings.HasPrefix(strings.TrimSpace(line), "#") {
					comments = append(comments, line)
				} else {
					rest = append(rest, line)
				}
			}
			return comments, rest
		}
		comments, got := split(hostilePlan(v4, namespace, name))
		if _, want := split(hostilePlan(v4, "shop", "web")); !slices.Equal(got, want) {
			t.Fatalf("the payload (-want +got):\n%s", cmp.Diff(want, got))
		}
		for _, comment := range comments {
			text := strings.Trim(comment, "\t\n")
			if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("the comment %q cannot be read", comment)
			}
		}
	})
}

// TestPayload_HostileNamesAsNftReadsThem: they are nothing to it.
func TestPayload_HostileNamesAsNftReadsThem(t *testing.T) {
	onNode(t, 0, func(n *node) {
		for _, name := range wicked {
			p := hostilePlan(n.family == IPv4, name, name)
			n.inside(func() error { return Test(t.Context(), Payload(p)) })
			file := filepath.Join(t.TempDir(), "payload")
			if err := os.WriteFile(file, Payload(p), 0o600); err != nil {
				t.Fatal(err)
			}
			n.nft("-f " + file)
			n.holds(Render(p))
			n.nft("delete table " + n.name())
		}
	})
}
