package journal

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/kernel"
)

var compareAddrs = cmpopts.EquateComparable(netip.Addr{})

// at is a time of the day that all tests are about.
func at(text string) time.Time {
	t, err := time.Parse(timeForm, "2026-11-27T"+text+"Z")
	if err != nil {
		panic(err)
	}
	return t
}

// assignment is one of a pod of the Service shop/web, with 512 ports from first on.
func assignment(pod string, first uint16, since time.Time) portblocks.Assignment {
	return portblocks.Assignment{
		Pod:     portblocks.Pod{Namespace: "shop", Name: pod, UID: "uid-of-" + pod, IP: netip.MustParseAddr("10.128.0.11")},
		Service: "shop/web", EgressIP: netip.MustParseAddr("203.0.113.10"), Ports: kernel.Ports{First: first, Last: first + 511}, Node: "node-a", Since: since,
	}
}

func sharing(pod string, since time.Time) portblocks.Assignment {
	a := assignment(pod, 61440, since)
	a.Ports.Last, a.Shared = 65535, true
	return a
}

func TestFormat_IsAsDocumented(t *testing.T) {
	six := assignment("web-6", 1024, at("03:00:00.000"))
	six.Service, six.EgressIP, six.Pod.IP = "bank/gate", netip.MustParseAddr("2001:db8:113::10"), netip.MustParseAddr("fd00::5")
	text := header{node: "node-a", from: at("02:00:00.000")}.appendTo(nil)
	text = header{node: "node-a", from: at("02:00:00.000"), after: at("01:00:00.000"), afterSize: 4096}.appendTo(text)
	text = appendAssigned(text, 37, assignment("web-0", 32000-32000%512, at("03:12:00.123")))
	text = appendAssigned(text, 1, sharing("web-1", at("03:12:00.000")))
	text = appendAssigned(text, 2, six)
	text = appendReleased(text, at("04:00:00.001"), 37, time.Time{})
	text = appendReleased(text, at("04:00:00.001"), 1, at("03:59:00.000"))
	text = appendAlive(text, at("04:01:00.000"))
	text = appendGap(text, at("04:03:00.000"), at("04:01:00.000"))
	const want = `origin-node-journal 1 node-a 2026-11-27T02:00:00.000Z -
origin-node-journal 1 node-a 2026-11-27T02:00:00.000Z 2026-11-27T01:00:00.000Z 4096
2026-11-27T03:12:00.123Z + 11 shop/web-0 uid-of-web-0 10.128.0.11 web 203.0.113.10 31744-32255
2026-11-27T03:12:00.000Z + 1 shop/web-1 uid-of-web-1 10.128.0.11 web 203.0.113.10 ~61440-65535
2026-11-27T03:00:00.000Z + 2 shop/web-6 uid-of-web-6 fd00::5 bank/gate 2001:db8:113::10 1024-1535
2026-11-27T04:00:00.001Z - 11
2026-11-27T04:00:00.001Z - 1 2026-11-27T03:59:00.000Z
2026-11-27T04:01:00.000Z alive
2026-11-27T04:03:00.000Z gap 2026-11-27T04:01:00.000Z
`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFormat_IsReadAsWritten: what is valid comes back.
func TestFormat_IsReadAsWritten(t *testing.T) {
	odd := assignment("web-0", 1, at("00:00:00.999"))
	odd.Service, odd.Ports, odd.Pod.IP = "", kernel.Ports{First: 65535, Last: 65535}, netip.MustParseAddr("fd00::1")
	other := sharing("a.b", at("00:00:00.000"))
	other.Service = "bank/gate"
	for _, want := range []portblocks.Assignment{assignment("web-0", 1024, at("23:59:59.999")), odd, other} {
		if err := validate(want); err != nil {
			t.Fatal(err)
		}
		text := appendAssigned(nil, 1<<40, want)
		l, err := parseLine(text[:len(text)-1])
		if err != nil || l.kind != assigned || l.ref != 1<<40 {
			t.Errorf("%s is read as %+v, %v", text, l, err)
		}
		if diff := cmp.Diff(want, l.assignment("node-a"), compareAddrs); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// TestValidate_RefusesWhatNoLineHas: it would be read as something else.
func TestValidate_RefusesWhatNoLineHas(t *testing.T) {
	good := assignment("web-0", 1024, at("03:00:00.000"))
	if err := validate(good); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*portblocks.Assignment){
		"no name":             func(a *portblocks.Assignment) { a.Pod.Name = "" },
		"no UID":              func(a *portblocks.Assignment) { a.Pod.UID = "" },
		"no namespace":        func(a *portblocks.Assignment) { a.Pod.Namespace = "" },
		"two words":           func(a *portblocks.Assignment) { a.Pod.UID = "a b" },
		"two lines":           func(a *portblocks.Assignment) { a.Pod.UID = "a\n2026-11-27T04:01:00.000Z alive" },
		"a slash":             func(a *portblocks.Assignment) { a.Pod.Namespace = "a/b" },
		"a Service of a path": func(a *portblocks.Assignment) { a.Service = "a/b/c" },
		"a very long name":    func(a *portblocks.Assignment) { a.Pod.Name = strings.Repeat("a", 600) },
		"no address":          func(a *portblocks.Assignment) { a.Pod.IP = netip.Addr{} },
		"a zone":              func(a *portblocks.Assignment) { a.EgressIP = netip.MustParseAddr("fe80::1%eth0") },
		"IPv4 in IPv6":        func(a *portblocks.Assignment) { a.EgressIP = netip.MustParseAddr("::ffff:203.0.113.10") },
		"no ports":            func(a *portblocks.Assignment) { a.Ports = kernel.Ports{} },
		"ports backwards":     func(a *portblocks.Assignment) { a.Ports = kernel.Ports{First: 2, Last: 1} },
		"no time":             func(a *portblocks.Assignment) { a.Since = time.Time{} },
	} {
		a := good
		if spoil(&a); validate(a) == nil {
			t.Errorf("%s: it is written as %s", name, appendAssigned(nil, 1, a))
		}
	}
}

func TestParse_RefusesWhatIsNoLine(t *testing.T) {
	for _, text := range []string{
		"", "2026-11-27T03:00:00.000Z", "2026-11-27T03:00:00.000Z ", "2026-11-27T03:00:00Z alive", "2026-11-27T03:00:00.000Z alive still",
		"2026-11-27T03:00:00.000Z gone", "2026-11-27T03:00:00.000Z - ", "2026-11-27T03:00:00.000Z - 1 then", "2026-11-27T03:00:00.000Z - !",
		"2026-11-27T03:00:00.000Z gap", "2026-11-27T03:00:00.000Z + 1 shop/web-0 uid 10.0.0.1 web 203.0.113.10",
		"2026-11-27T03:00:00.000Z + 1 shop/web-0 uid 10.0.0.1 web 203.0.113.10 1024-1535 more",
		"2026-11-27T03:00:00.000Z + 1 web-0 uid 10.0.0.1 web 203.0.113.10 1024-1535",
		"2026-11-27T03:00:00.000Z + 1 shop/web-0 uid 10.0.0.1 web 203.0.113.10 1535-1024",
		"2026-11-27T03:00:00.000Z + 1 shop/web-0 uid 10.0.0.1 web 203.0.113.10 1024-65536",
		"2026-11-27T03:00:00.000Z + 1 shop/web-0 uid 10.0.0.1 web 203.0.113.10 1024",
		"2026-11-27T03:00:00.000Z + 1 shop/web-0 uid 10.0.0.1 web 203.0.113 1024-1535", "\x00\x00\x00\x00",
	} {
		if l, err := parseLine([]byte(text)); err == nil {
			t.Errorf("%q is read as %+v", text, l)
		}
	}
	for _, text := range []string{"", "origin-node-journal 2 node-a 2026-11-27T03:00:00.000Z -", "origin-node-journal 1 node-a - -", "origin-node-journal 1  2026-11-27T03:00:00.000Z -"} {
		if h, err := parseHeader([]byte(text)); err == nil {
			t.Errorf("%q is read as %+v", text, h)
		}
	}
}

// TestParseTime_IsThatOfGo, but for leap seconds.
func TestParseTime_IsThatOfGo(t *testing.T) {
	for _, text := range []string{
		"2026-11-27T03:12:00.123Z", "2024-02-29T23:59:59.999Z", "2026-02-29T00:00:00.000Z", "2026-13-01T00:00:00.000Z", "2026-00-10T00:00:00.000Z", "2026-11-00T00:00:00.000Z",
		"2026-11-31T00:00:00.000Z", "2026-11-27T24:00:00.000Z", "2026-11-27T23:60:00.000Z", "2026-11-27T23:00:60.000Z", "2026-11-27 03:12:00.123Z", "2026-11-27T03:12:00,123Z",
		"2026-11-27T03:12:00.123z", "2026-11-27T03:12:00.12aZ", "-026-11-27T03:12:00.123Z", "2026-11-27T03:12:00.123", "0000-01-01T00:00:00.000Z",
	} {
		want, wrong := time.Parse(timeForm, text)
		if text[len(text)-5] == ',' { // Go takes it
			wrong = errNoTime
		}
		got, err := parseTime([]byte(text))
		if (err == nil) != (wrong == nil) || err == nil && !got.Equal(want) {
			t.Errorf("%s: %v, %v; Go says %v, %v", text, got, err, want, wrong)
		}
	}
}

var errNoTime = errors.New("no time")

// TestFormat_BytesOfALife: an assignment and its end, with names as a Deployment makes them.
func TestFormat_BytesOfALife(t *testing.T) {
	a := assignment("frontend-7d9f8b6c5d-x2x4k", 32768, at("03:12:00.123"))
	a.Pod.UID, a.Pod.Namespace, a.Service = "6f1c2e7a-0b5e-4a53-9a3e-0d4a1c9d7f11", "production", "production/frontend"
	six := a
	six.EgressIP, six.Pod.IP = netip.MustParseAddr("2001:db8:113::10"), netip.MustParseAddr("fd00:10:128::1f4")
	for name, a := range map[string]portblocks.Assignment{"IPv4": a, "IPv6": six} {
		text := appendReleased(appendAssigned(nil, 36*36*36, a), at("04:00:00.001"), 36*36*36, time.Time{})
		if t.Logf("%s: %d bytes", name, len(text)); len(text) > 200 {
			t.Errorf("%s: %d bytes of at most 200:\n%s", name, len(text), text)
		}
	}
}

// FuzzRead: whatever is in a file, it is read, or an error says why not; and what is read is asked.
func FuzzRead(f *testing.F) {
	text := header{node: "node-a", from: at("02:00:00.000")}.appendTo(nil)
	text = appendAssigned(text, 1, assignment("web-0", 1024, at("03:12:00.123")))
	text = appendAssigned(text, 2, sharing("web-1", at("03:12:00.000")))
	f.Add(string(appendReleased(text, at("04:00:00.001"), 1, time.Time{})))
	f.Add(string(appendReleased(text, at("04:00:00.001"), 2, at("03:59:00.000"))))
	f.Add(string(appendGap(appendAlive(text, at("05:00:00.000")), at("06:00:00.000"), at("05:00:00.000"))))
	f.Add(string(text[:len(text)-5]))
	f.Add(strings.Repeat("x", 10_000) + "\n")
	f.Add("")
	asked := netip.MustParseAddrPort("203.0.113.10:1024")
	f.Fuzz(func(t *testing.T, text string) {
		whole, err := Read("file", strings.NewReader(text), nil)
		part, alsoErr := Read("file", strings.NewReader(text), About(asked))
		if (err == nil) != (alsoErr == nil) {
			t.Fatalf("read whole: %v, in part: %v", err, alsoErr)
		}
		if err != nil {
			return
		}
		for _, when := range []string{"02:00:00.000", "03:12:00.123", "04:00:00.000", "05:30:00.000"} {
			all, err := Join([]*File{whole}).Who(asked, at(when))
			some, alsoErr := Join([]*File{part}).Who(asked, at(when))
			if whole.damaged == nil && part.damaged == nil {
				if diff := cmp.Diff(all, some, compareAddrs); diff != "" || (err == nil) != (alsoErr == nil) {
					t.Fatalf("%s: whole: %v, in part: %v (-whole +part):\n%s", when, err, alsoErr, diff)
				}
			}
			for _, s := range all.Spans {
				if s.Since.After(at(when)) || validate(s.Assignment) != nil {
					t.Fatalf("%s: %+v", when, s)
				}
			}
		}
	})
}
