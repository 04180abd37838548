package e2e

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/lab"
)

// TestChangingIdentities_WhoPodsMayBeSeenAs: the other tests judge their traffic by this.
func TestChangingIdentities_WhoPodsMayBeSeenAs(t *testing.T) {
	pod, old, present := &lab.Host{}, "198.51.100.1", "198.51.100.2"
	at := func(seconds int) time.Time { return time.Now().Add(time.Duration(seconds) * time.Second) }
	ask := func(seen string, start int, network string, kept bool) lab.Question {
		return lab.Question{
			From: pod, Network: network, Kept: kept, To: netip.MustParseAddrPort("192.0.2.1:8080"),
			Seen: netip.MustParseAddr(seen), Start: at(start), End: at(start + 1),
		}
	}
	unanswered := ask("203.0.113.66", 1, "udp4", false)
	unanswered.Err = errors.New("timeout")
	for _, test := range []struct {
		name    string
		settled bool
		asked   []lab.Question
		wrong   bool // the last one is, and the others are not
	}{
		{"the old one until all have heard of the change", false, []lab.Question{ask(old, 1, "tcp4", false)}, false},
		{"the new one", false, []lab.Question{ask(present, 1, "tcp4", false)}, false},
		{"somebody else", false, []lab.Question{ask("203.0.113.66", 1, "tcp4", false)}, true},
		{"somebody else in a kept flow", false, []lab.Question{ask("203.0.113.66", 1, "udp4", true)}, true},
		{"the old one when all have", true, []lab.Question{ask(old, 1, "tcp4", false)}, true},
		{"the old one when all have, in a kept flow", true, []lab.Question{ask(old, 1, "tcp4", true)}, true},
		{"the old one, asked before that", true, []lab.Question{ask(old, -5, "tcp4", false)}, false},
		{"the old one after the new one", false, []lab.Question{ask(present, 1, "tcp4", false), ask(old, 3, "tcp4", false)}, true},
		{"the old one asked beside the new one", false, []lab.Question{ask(present, 1, "tcp4", false), ask(old, 1, "tcp4", false)}, false},
		{"an old kept connection after the new one", false, []lab.Question{ask(present, 1, "tcp4", true), ask(old, 3, "tcp4", true)}, false},
		{"no answer", true, []lab.Question{unanswered}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var g changingIdentities
			g.next([]string{old, "2001:db8::1"}, pod)
			g.next([]string{present, "2001:db8::2"}, pod)
			if test.settled {
				g.settle(pod)
			}
			for i, q := range test.asked {
				if err := g.check(q); (err != nil) != (test.wrong && i == len(test.asked)-1) {
					t.Errorf("%s: got %v", q, err)
				}
			}
		})
	}
}

// TestChangingIdentities_BrokenRulesExcuseNewFlowsOnly: while rules are broken, a new flow may be seen as anybody, but not one from
// before.
func TestChangingIdentities_BrokenRulesExcuseNewFlowsOnly(t *testing.T) {
	pod, right, wrong := &lab.Host{}, netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("192.0.2.2")
	var g changingIdentities
	g.next([]string{right.String()}, pod)
	before := time.Now()
	ask := func(opened time.Time, seen netip.Addr) error {
		now := time.Now()
		return g.check(lab.Question{From: pod, Network: "udp4", Kept: true, To: netip.MustParseAddrPort("192.0.2.1:8080"), Seen: seen, Opened: opened, Start: now, End: now})
	}
	g.excuse(false)
	during := time.Now()
	if err := ask(during, wrong); err != nil {
		t.Errorf("a flow that began while rules were broken: %v", err)
	}
	if ask(before, wrong) == nil {
		t.Error("a flow from before the damage may have a wrong source address")
	}
	if got := g.judge(); !strings.HasPrefix(got, "1 answers to 192.0.2.2, which was wrong") {
		t.Errorf("judge says %q, want one wrong answer", got)
	}
	if ask(during, wrong) == nil {
		t.Error("after the repair a flow may still have a wrong source address")
	}
	if err := ask(during, right); err != nil {
		t.Error(err)
	}
}
