package holders

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

// TestExchange_Refused: who is not believed is told after a minute, if it is not the lesser part of those that speak.
func TestExchange_Refused(t *testing.T) {
	others := map[string]netip.Addr{}
	// The same however many nodes there are: another text is another Event.
	const told = "half of the other nodes that are heard, or more (for example node-b at 192.0.2.98), have sent nothing that is signed with a key of this node: either"
	for _, name := range []string{"node-b", "node-c", "node-d", "node-e"} {
		others[name] = netip.AddrFrom4([4]byte{192, 0, 2, name[len(name)-1]})
	}
	for name, test := range map[string]struct {
		refused, accepted []string
		until             int // the second when the last one comes
		want              string
	}{
		"all":                     {[]string{"node-b", "node-c", "node-d", "node-e"}, nil, 100, told},
		"one, and no other":       {[]string{"node-d"}, nil, 100, "(for example node-d at"},
		"half":                    {[]string{"node-b", "node-c"}, []string{"node-d", "node-e"}, 100, told},
		"the lesser part":         {[]string{"node-b"}, []string{"node-d", "node-e"}, 100, ""},
		"forged, beside all":      {[]string{"node-b", "node-c"}, []string{"node-b", "node-c"}, 100, ""},
		"not yet":                 {[]string{"node-b"}, nil, 59, ""},
		"somebody else":           {[]string{"node-x", "node-a"}, nil, 100, ""},
		"none":                    {nil, []string{"node-d"}, 100, ""},
		"it ceases":               {[]string{"node-b"}, nil, 200, ""},
		"there are other keys":    {[]string{"node-b"}, nil, 101, ""},
		"the node gets other key": {[]string{"node-b"}, nil, 102, ""},
		"the node is deleted":     {[]string{"node-b"}, nil, 103, ""},
	} {
		x := newExchange(ofAddresses, "node-a", func() uint64 { return 1 })
		x.setPeers(others)
		var got error
		for second := range test.until + 1 {
			for _, node := range test.refused {
				if second <= 100 {
					x.refuse(others[node], at(second))
				}
			}
			for _, node := range test.accepted {
				x.accept(node, at(second))
			}
			switch test.until - second {
			case 0:
				switch name {
				case "there are other keys":
					x.forgive()
				case "the node gets other key":
					x.accept("node-b", at(second))
				case "the node is deleted":
					x.setPeers(nil)
					second += int(judgeAgain / time.Second)
				}
			}
			got = x.judge(at(second))
		}
		if (got == nil) != (test.want == "") || got != nil && !strings.Contains(got.Error(), test.want) {
			t.Errorf("%s: told %v, want %q", name, got, test.want)
		}
	}
}

// TestAnnouncer_OtherKeys: a node whose keys are not those of the others tells it after a minute, until it hears one that it believes.
func TestAnnouncer_OtherKeys(t *testing.T) {
	a := NewAnnouncer(me, announcePort, NewKeyring(ours))
	var failing error
	a.Failing = func(err error) { failing = err }
	a.exchange.setPeers(v4)
	hear := func(from string, port uint16, keys Keys) verdict {
		content := datagram{kind: question, node: from, session: 7, nonce: 7}.encode(keys.For("announcements"))
		return a.hear(t.Context(), packet{content: content, from: netip.AddrPortFrom(v4[from], port)})
	}
	other := Keys{[]byte("another key")}
	minuteLater := func() time.Time { return time.Now().Add(refusedTime) }
	if v := hear("node-c", 1, other); v != unauthenticated {
		t.Errorf("another program's datagram is %s", v)
	}
	if a.judge(minuteLater()); failing != nil || !a.dueAt().IsZero() {
		t.Errorf("another program of that node: it tells %v", failing)
	}
	hear("node-c", announcePort, other)
	hear("node-d", announcePort, other)
	if a.judge(time.Now()); failing != nil || a.dueAt().IsZero() {
		t.Errorf("it tells %v at once, and looks again at %s", failing, a.dueAt())
	}
	for _, name := range []string{"node-c", "node-d"} {
		a.exchange.peers[name].refusedSince = time.Now().Add(-refusedTime)
	}
	a.exchange.judgeAt = time.Now()
	if a.judge(time.Now()); failing == nil || !strings.Contains(failing.Error(), "(for example node-c at 192.0.2.3)") || !strings.Contains(failing.Error(), "egress-snat-key-file") {
		t.Errorf("after a minute it tells %v", failing)
	}
	a.ring.Set(Keys{ours[0], other[0]})
	if v := hear("node-c", announcePort, other); v != accepted {
		t.Errorf("with the same key it is %s", v)
	}
	hear("node-d", announcePort, other)
	if a.judge(time.Now()); failing != nil {
		t.Errorf("with the same key it tells %v", failing)
	}
}
