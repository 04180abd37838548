package e2e

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mdlayher/arp"

	"github.com/openshift/origin-node/hack/lab"
)

// lookEvery is how often it is asked who answers for an address.
const lookEvery = 10 * time.Millisecond

// longestContest is how long two nodes may answer for an address.
const longestContest = 200 * time.Millisecond

// answers are who answers ARP for an address, as a host outside sees it.
type answers struct {
	client *arp.Client
	stop   func()

	mu sync.Mutex
	// rounds have the MACs that answered, by question.
	rounds []map[string]bool
}

// whoAnswers asks for an IPv4 address until the end of the test.
func (w *poolWorld) whoAnswers(ip string) *answers {
	w.Helper()
	a := &answers{}
	w.must(w.Outside().Do(func() error {
		link, err := linkWith(w.Outside().V4)
		if err != nil {
			return err
		}
		a.client, err = arp.Dial(link)
		return err
	}))
	ctx, cancel := context.WithCancel(w.Context())
	var running sync.WaitGroup
	running.Go(func() { a.listen(ctx, netip.MustParseAddr(ip)) })
	running.Go(func() {
		for ticker := time.NewTicker(lookEvery); ctx.Err() == nil; <-ticker.C {
			a.mu.Lock()
			a.rounds = append(a.rounds, map[string]bool{})
			a.mu.Unlock()
			_ = a.client.Request(netip.MustParseAddr(ip)) // a link that is down; there is another one
		}
	})
	a.stop = sync.OnceFunc(func() {
		cancel()
		_ = a.client.Close()
		running.Wait()
	})
	w.Cleanup(a.stop)
	return a
}

// linkWith is the interface with an address.
func linkWith(ip netip.Addr) (*net.Interface, error) {
	links, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	for _, link := range links {
		addresses, err := link.Addrs()
		if err != nil {
			return nil, err
		}
		for _, a := range addresses {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr() == ip {
				return &link, nil
			}
		}
	}
	return nil, fmt.Errorf("no interface has %s", ip)
}

// listen notes who answers until ctx has ended and the client is closed.
func (a *answers) listen(ctx context.Context, ip netip.Addr) {
	for ctx.Err() == nil {
		packet, _, err := a.client.Read()
		if err != nil || packet.Operation != arp.OperationReply || packet.SenderIP != ip {
			continue
		}
		a.mu.Lock()
		if n := len(a.rounds); n > 0 {
			a.rounds[n-1][packet.SenderHardwareAddr.String()] = true
		}
		a.mu.Unlock()
	}
}

// end ends the questions, prints how long nobody and how long several answered, and fails if the latter took too long.
func (a *answers) end(w *poolWorld, ip, what string) {
	w.Helper()
	a.stop()
	silent, contested := longestRun(a.rounds, func(macs map[string]bool) bool { return len(macs) == 0 }),
		longestRun(a.rounds, func(macs map[string]bool) bool { return len(macs) > 1 })
	w.Logf("%s, %s: in %d questions nobody answered for up to %v, several did for up to %v", ip, what, len(a.rounds), silent, contested)
	if contested > longestContest {
		w.Errorf("%s, %s: several hosts answered for %v, want at most %v", ip, what, contested, longestContest)
	}
}

func longestRun(rounds []map[string]bool, counts func(map[string]bool) bool) (longest time.Duration) {
	run := time.Duration(0)
	for _, macs := range rounds {
		if run += lookEvery; !counts(macs) {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}

// v4 is the IPv4 address of the pool's.
func (w *poolWorld) v4() string {
	return w.egressIPs[slices.IndexFunc(addrs(w.egressIPs), netip.Addr.Is4)]
}

// TestPool_ProcessStaysDead: its kernel serves for 30 s, then withdraws the address, and another node takes it at once.
func TestPool_ProcessStaysDead(t *testing.T) {
	belongsTo(t, usual)
	w := newPoolWorld(t, 3)
	w.complete()
	ip := w.v4()
	holder := w.holderOf(ip, nil)
	a, p := w.whoAnswers(ip), w.probe(ip, holder)
	began := time.Now()
	holder.Kill()
	w.holderOf(ip, holder)
	if stayed := time.Since(began); stayed < 15*time.Second {
		t.Errorf("%s has moved after %v, while its node still served it", ip, stayed)
	}
	w.end(p, ip, "process stays dead", began, by(t, fastest, fastest, 200*time.Millisecond))
	a.end(w, ip, "process stays dead")
}

// TestPool_ProcessIsStopped for two seconds: it gives no sign of life, but its kernel answers.
func TestPool_ProcessIsStopped(t *testing.T) {
	belongsTo(t, usual)
	w := newPoolWorld(t, 3)
	for _, ip := range w.egressIPs {
		w.complete()
		holder := w.holderOf(ip, nil)
		p := w.probe(ip, holder)
		began := time.Now()
		holder.Signal(syscall.SIGSTOP)
		time.Sleep(2 * time.Second) // the fault is its length
		holder.Signal(syscall.SIGCONT)
		w.complete()
		w.end(p, ip, "process stopped", began, slow)
		if now := w.holderOf(ip, nil); now != holder {
			t.Errorf("%s has moved to %s", ip, now.Name)
		}
	}
}

// TestPool_CutOffHolderReturns: it has given the address up, or does before two nodes answer for long.
func TestPool_CutOffHolderReturns(t *testing.T) {
	belongsTo(t, usual)
	w := newPoolWorld(t, 3)
	w.complete()
	ip := w.v4()
	for _, fault := range []struct {
		name string
		set  func(h *lab.Host, works bool) error
	}{{"link cut", w.SetLink}, {"switch silent", w.SetForwarding}} {
		holder := w.holderOf(ip, nil)
		a := w.whoAnswers(ip)
		w.must(fault.set(holder.Host, false))
		w.eventually(func() error {
			if next := w.anotherHas(ip, holder); !next {
				return fmt.Errorf("no other node has %s", ip)
			}
			return nil
		})
		w.must(fault.set(holder.Host, true))
		w.complete()
		if now := w.holderOf(ip, nil); now == holder {
			t.Errorf("%s: %s has moved back", fault.name, ip)
		}
		a.end(w, ip, fault.name+" and back")
	}
}

// anotherHas tells whether a node other than that has an address.
func (w *poolWorld) anotherHas(ip string, than *member) bool {
	w.Helper()
	return slices.ContainsFunc(w.members, func(m *member) bool { return m != than && w.has(m, ip) })
}

// TestPool_APIServerAway: a node fails meanwhile, and its addresses move. A process that starts anew does not learn who is
// in the pool, and keeps them for longer than the kernel does by itself.
func TestPool_APIServerAway(t *testing.T) {
	belongsTo(t, usual)
	w := newPoolWorld(t, 3)
	w.complete()
	ip := w.v4()
	w.must(w.APIServer.Stop(t.Context()))
	holder := w.holderOf(ip, nil)
	p := w.probe(ip, holder)
	began := time.Now()
	w.must(w.SetLink(holder.Host, false))
	next := w.holderOf(ip, holder)
	w.end(p, ip, "link cut, API server away", began, w.fastest())
	w.must(w.SetLink(holder.Host, true))
	w.complete()

	p = w.probe(ip, next)
	began = time.Now()
	next.Kill()
	next.Printed.Reset()
	next.Start()
	time.Sleep(35 * time.Second) // longer than the kernel keeps addresses
	w.end(p, ip, "process restarted, API server away", began, slow)
	if !w.has(next, ip) {
		t.Errorf("%s has lost %s", next.Name, ip)
	}
	w.must(w.APIServer.Start())
	w.must(w.APIServer.Ready(t.Context()))
	next.Ready()
	w.complete()
	if now := w.holderOf(ip, nil); now != next {
		t.Errorf("%s has moved to %s although nothing was wrong with %s", ip, now.Name, next.Name)
	}
}
