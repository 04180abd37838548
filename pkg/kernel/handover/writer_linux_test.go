package handover

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
)

// two are nodes of which the former one sends a pod's packets under an egress IP. The next one has it, and the network sends
// the answers there.
type two struct {
	*testing.T
	former, next *node
	pod, outside *lab.Host
	family       kernel.Family
	ip, server   netip.Addr
}

// node is one of them.
type node struct {
	*lab.Host
	*Writer
	// stop has the writer end, ended is closed when it has.
	stop  context.CancelFunc
	ended chan struct{}
}

func newNode(t *testing.T, host *lab.Host, family kernel.Family) *node {
	ctx, stop := context.WithCancel(context.Background())
	n := &node{host, NewWriter(family), stop, make(chan struct{})}
	go func() {
		defer close(n.ended)
		if err := host.Do(func() error { n.Writer.Run(ctx); return nil }); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { stop(); <-n.ended })
	return n
}

func onTwo(t *testing.T, test func(n *two)) {
	for family, ip := range map[kernel.Family]string{kernel.IPv4: "192.0.2.99", kernel.IPv6: "2001:db8:0:2::99"} {
		t.Run(string(family), func(t *testing.T) {
			l := lab.ForTest(t, lab.Config{Nodes: 2, Pods: 1, IPv6: true, AnswersByARP: true})
			n := &two{
				T: t, former: newNode(t, l.Nodes()[0], family), next: newNode(t, l.Nodes()[1], family),
				pod: l.Pod(1), outside: l.Outside(), family: family, ip: netip.MustParseAddr(ip),
			}
			n.server = n.of(n.outside)
			for _, protocol := range []string{"tcp", "udp"} {
				n.must(n.serve(protocol))
			}
			n.nft(n.former, fmt.Sprintf("add table inet test; add chain inet test nat { type nat hook postrouting priority 0; }; "+
				"add rule inet test nat %s saddr %s snat %[1]s to %[3]s", n.header(), n.of(n.pod), n.ip))
			for _, one := range []*node{n.former, n.next} {
				n.nft(one, "add table inet counted; add chain inet counted arrivals { type filter hook prerouting priority -300; }; add rule inet counted arrivals udp dport 9 counter")
			}
			n.must(n.next.TakeAddr(n.ip))
			test(n)
		})
	}
}

func (n *two) serve(protocol string) error {
	_, err := n.outside.ServeWhoami(n.network(protocol), 8080)
	return err
}

func (n *two) network(protocol string) string {
	if n.family == kernel.IPv6 {
		return protocol + "6"
	}
	return protocol + "4"
}

func (n *two) header() string {
	if n.family == kernel.IPv6 {
		return "ip6"
	}
	return "ip"
}

func (n *two) must(err error) {
	n.Helper()
	if err != nil {
		n.Fatal(err)
	}
}

func (n *two) of(h *lab.Host) netip.Addr {
	if n.family == kernel.IPv6 {
		return h.V6
	}
	return h.V4
}

func (n *two) nft(on *node, command string) string {
	n.Helper()
	out, err := on.Host.Run(n.Context(), "nft", command)
	n.must(err)
	return out
}

// asks tells whether an answer to the pod comes at once.
func (n *two) asks(protocol string) bool {
	n.Helper()
	ctx, stop := context.WithTimeout(n.Context(), 500*time.Millisecond)
	defer stop()
	seen, err := n.pod.Ask(ctx, n.network(protocol), netip.AddrPortFrom(n.server, 8080), 0)
	if err == nil && seen != n.ip {
		n.Fatalf("the pod is seen as %s, want %s", seen, n.ip)
	}
	return err == nil
}

// pass has a node pass on what it does not track, on a machine that may have other things to do.
func (n *two) pass(from, to *node) {
	n.Helper()
	n.eventually(func() error { return from.Pass(map[netip.Addr]netip.Addr{n.ip: n.of(to.Host)}) })
}

func (n *two) leave(node *node) {
	n.Helper()
	n.eventually(func() error { return node.Leave([]netip.Addr{n.ip}) })
}

func (n *two) eventually(done func() error) {
	n.Helper()
	for deadline := time.Now().Add(lab.Stretch(10 * time.Second)); ; time.Sleep(10 * time.Millisecond) {
		err := done()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			n.Fatal(err)
		}
	}
}

// gone waits until nodes have no table any more.
func (n *two) gone(nodes ...*node) {
	n.Helper()
	for _, one := range nodes {
		n.eventually(func() error {
			if strings.Contains(n.nft(one, "list tables"), tableName) {
				return errors.New("the table stays")
			}
			return nil
		})
	}
}

// TestWriter_AnswersReachTheFormerHolder for a moment. Then nothing is left.
func TestWriter_AnswersReachTheFormerHolder(t *testing.T) {
	onTwo(t, func(n *two) {
		protocols := []string{"tcp", "udp"}
		for _, protocol := range protocols {
			if n.asks(protocol) {
				n.Fatalf("%s works without the new holder's help; the network should send the answers to it", protocol)
			}
		}
		for _, protocol := range protocols {
			n.eventually(func() error {
				n.leave(n.former) // what it tracks counts all the same
				n.pass(n.next, n.former)
				if !n.asks(protocol) {
					return fmt.Errorf("%s does not work; the new holder has\n%s", protocol, n.nft(n.next, "list ruleset"))
				}
				return nil
			})
		}
		n.gone(n.next, n.former)
	})
}

// TestWriter_AnswersReachNobodyElse: who would give the new holder's packets to another pod by their ports does so when the former holder
// does not have the connection any more. A datagram may come at once.
func TestWriter_AnswersReachNobodyElse(t *testing.T) {
	onTwo(t, func(n *two) {
		ports := n.header() + " daddr " + n.ip.String()
		n.nft(n.next, fmt.Sprintf("add table %[1]s ports; add chain %[1]s ports nat { type nat hook prerouting priority -98; }; add rule %[1]s ports nat %[2]s counter dnat to %[3]s",
			n.header(), ports, n.of(n.next.Host)))
		n.eventually(func() error {
			n.pass(n.next, n.former)
			if !n.asks("tcp") {
				return errors.New("tcp does not work")
			}
			return nil
		})
		n.gone(n.next)
		if n.asks("udp") || !strings.Contains(n.nft(n.next, "list chain "+n.header()+" ports nat"), "packets 1 ") {
			t.Error("a datagram does not come to whom its port is for")
		}
	})
}

// TestWriter_NothingGoesInCircles that no node tracks, also if an address goes to and fro; and where a node does not heed
// that, no packet goes on for ever.
func TestWriter_NothingGoesInCircles(t *testing.T) {
	for name, test := range map[string]struct {
		handOver func(n *two)
		most     int
	}{
		"one way": {func(n *two) {
			n.leave(n.former)
			n.pass(n.next, n.former)
		}, 1},
		"to and fro": {func(n *two) {
			n.leave(n.former)
			n.pass(n.next, n.former)
			n.pass(n.former, n.next)
		}, 1},
		"both pass": {func(n *two) {
			n.pass(n.next, n.former)
			n.pass(n.former, n.next)
		}, 255},
	} {
		t.Run(name, func(t *testing.T) {
			onTwo(t, func(n *two) {
				conn, err := n.outside.DialContext(n.Context(), "udp", netip.AddrPortFrom(n.ip, 9).String())
				n.must(err)
				defer func() { _ = conn.Close() }()
				sent := 0
				n.eventually(func() error { // what is passed on counts for a moment, on a machine that may have other things to do
					test.handOver(n)
					sent++
					if _, err := conn.Write([]byte("stray")); err != nil {
						return err
					}
					n.gone(n.next, n.former)
					if n.counted(n.former) == 0 {
						return errors.New("nothing is passed on")
					}
					return nil
				})
				for _, one := range []*node{n.next, n.former} {
					if got := n.counted(one); got > sent*test.most {
						t.Errorf("%s has had %d packets %d times, want at most %d for each", one.Name, sent, got, test.most)
					}
				}
			})
		})
	}
}

var counter = regexp.MustCompile(`packets (\d+)`)

// counted is how many packets have come to a node.
func (n *two) counted(at *node) int {
	n.Helper()
	found := counter.FindStringSubmatch(n.nft(at, "list table inet counted"))
	if found == nil {
		n.Fatal("there is no counter")
	}
	count, err := strconv.Atoi(found[1])
	n.must(err)
	return count
}

// tcpStrays is the rule for TCP as nft 1.0.0 to 1.0.9 print it, then as those before and behind do.
var tcpStrays = regexp.MustCompile(`ct state invalid,new tcp flags (!= syn / syn,rst,ack|& \(?[a-z |]+\)? != syn) goto strays`)

// TestWriter_Table: nft prints it as the package's comment shows it.
func TestWriter_Table(t *testing.T) {
	onTwo(t, func(n *two) {
		other := n.ip.Next()
		var listed string
		n.eventually(func() error { // elements count for a moment
			if err := n.next.Leave([]netip.Addr{other}); err != nil {
				return err
			}
			n.pass(n.next, n.former)
			if listed = strings.Join(strings.Fields(n.nft(n.next, "list ruleset")), " "); strings.Count(listed, "elements = {") < 2 {
				return fmt.Errorf("elements are missing in\n%s", listed)
			}
			return nil
		})
		header, field, ttl := "ip", "ip daddr", "ip ttl"
		if n.family == kernel.IPv6 {
			header, field, ttl = "ip6", "ip6 daddr", "ip6 hoplimit"
		}
		for _, want := range []string{
			"table " + header + " " + tableName + " {", "type filter hook prerouting priority dstnat + 2; policy accept;",
			"elements = { " + n.ip.String() + " ", " : " + n.of(n.former.Host).String(), "elements = { " + other.String() + " ",
			"ct state invalid,new meta l4proto udp goto strays",
			field + " @left drop", ttl + " > 1 dup to " + field + " map @former drop",
		} {
			if !strings.Contains(listed, want) {
				n.Errorf("no %q in\n%s", want, listed)
			}
		}
		if !tcpStrays.MatchString(listed) {
			n.Errorf("no %q in\n%s", tcpStrays, listed)
		}
	})
}

// TestWriter_Repairs: somebody flushes the kernel's ruleset in a handover, or the table's rules; the next change writes again what is missing.
func TestWriter_Repairs(t *testing.T) {
	onTwo(t, func(n *two) {
		table := "ip " + tableName
		if n.family == kernel.IPv6 {
			table = "ip6 " + tableName
		}
		for _, damage := range []string{"flush ruleset", "flush table " + table, "flush chain " + table + " strays"} {
			n.eventually(func() error { // elements count for a moment, and the table is gone when there are none
				n.pass(n.next, n.former)
				n.nft(n.next, damage)
				if err := n.next.Leave([]netip.Addr{n.ip.Next()}); err != nil {
					return fmt.Errorf("%s: the next change fails: %w", damage, err)
				}
				listed := n.nft(n.next, "list ruleset")
				if rules := strings.Count(listed, "goto strays") + strings.Count(listed, "@left drop"); rules != 3 {
					return fmt.Errorf("%s: %d of three rules are there again:\n%s", damage, rules, listed)
				}
				if strings.Count(listed, "elements = {") < 3 {
					return fmt.Errorf("%s: elements are missing in\n%s", damage, listed)
				}
				return nil
			})
		}
	})
}

// TestWriter_EndsWhenNothingIsPassed: a process that ends earlier would leave packets to go in circles, or a table behind.
func TestWriter_EndsWhenNothingIsPassed(t *testing.T) {
	onTwo(t, func(n *two) {
		began := time.Now()
		n.pass(n.next, n.former)
		n.next.stop()
		<-n.next.ended
		if took := time.Since(began); took < Time-patience {
			t.Errorf("it ended after %v, want %v", took, Time)
		}
		if tables := n.nft(n.next, "list tables"); strings.Contains(tables, tableName) {
			t.Errorf("there is %s", tables)
		}
		if err := n.next.Leave([]netip.Addr{n.ip}); !errors.Is(err, errLate) {
			t.Errorf("after the end: %v, want %v", err, errLate)
		}
	})
}

// TestWriter_TakesThousandsOfAddresses at once, as many as the drain of a large node moves.
func TestWriter_TakesThousandsOfAddresses(t *testing.T) {
	const many = 3000
	onTwo(t, func(n *two) {
		former, left := map[netip.Addr]netip.Addr{}, []netip.Addr{}
		for ip := n.ip; len(left) < many; ip = ip.Next() {
			former[ip], left = n.of(n.former.Host), append(left, ip)
		}
		n.eventually(func() error { // elements count for a moment
			for _, err := range []error{n.next.Pass(former), n.next.Leave(left)} {
				if err != nil && !errors.Is(err, errLate) { // a machine may be slow
					return err
				}
			}
			listed := n.nft(n.next, "list ruleset")
			if got := strings.Count(listed, "expires"); got != 2*many {
				return fmt.Errorf("the kernel has %d elements, want %d", got, 2*many)
			}
			return nil
		})
	})
}

// TestWriter_WritesAgainWhatFailed: without its table a former holder sends packets back that are passed on to it. A table that
// cannot be removed holds nobody up.
func TestWriter_WritesAgainWhatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, fails, has := NewWriter(kernel.IPv4), errors.New("the kernel does not do it"), content{}
		attempts, failing := 0, atomic.Bool{}
		failing.Store(true)
		write := func(c content) error {
			if attempts++; failing.Load() {
				return fails
			}
			has = c
			return nil
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); w.run(ctx, write) }()
		synctest.Wait()
		expect := func(when string, after time.Duration, want int) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if len(has.left) != want {
				t.Errorf("%s: the kernel has %d addresses, want %d", when, len(has.left), want)
			}
		}
		if err := w.Leave([]netip.Addr{netip.MustParseAddr("192.0.2.99")}); !errors.Is(err, fails) {
			t.Errorf("got %v, want %v", err, fails)
		}
		expect("it fails", 3*again+again/2, 0)
		if attempts != 4 {
			t.Errorf("it was tried %d times, want 4", attempts)
		}
		failing.Store(false)
		expect("it works again", again, 1)
		failing.Store(true)
		expect("it cannot be removed", remembered, 1)
		failing.Store(false)
		expect("it can be removed", again, 0)
		if err := w.Leave([]netip.Addr{netip.MustParseAddr("192.0.2.99")}); err != nil {
			t.Error(err)
		}
		failing.Store(true)
		stop()
		time.Sleep(remembered + again)
		<-ended
	})
}

func TestCleanup_RemovesTheTable(t *testing.T) {
	onTwo(t, func(n *two) {
		if err := n.next.Do(func() error { return Available(n.family) }); err != nil {
			n.Fatal(err)
		}
		n.gone(n.next)
		n.pass(n.next, n.former)
		for range 2 { // the second time there is nothing
			if err := n.next.Do(func() error { return Cleanup(context.Background()) }); err != nil {
				n.Fatal(err)
			}
			if tables := n.nft(n.next, "list tables"); strings.Contains(tables, tableName) {
				n.Errorf("there is %s", tables)
			}
		}
	})
}
