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
	"github.com/mdlayher/ndp"

	"github.com/openshift/origin-node/hack/lab"
)

// lookEvery is how often it is asked who answers for an address.
const lookEvery = 10 * time.Millisecond

// longestContest is how long two nodes may answer for an address.
const longestContest = 200 * time.Millisecond

// answers are who answers for an address, by ARP or neighbour discovery, as a host outside sees it.
type answers struct {
	asker
	stop func()

	mu sync.Mutex
	// rounds have the MACs that answered, by question.
	rounds []map[string]bool
}

// asker asks who has an address.
type asker interface {
	ask() error
	// answer waits for a packet, and returns the MAC of a host that says in it that it has the address; nothing if none does.
	answer() (mac string, err error)
	Close() error
}

// arpAsker asks for an IPv4 address.
type arpAsker struct {
	*arp.Client
	ip netip.Addr
}

func (a arpAsker) ask() error { return a.Request(a.ip) }

func (a arpAsker) answer() (mac string, err error) {
	packet, _, err := a.Read()
	if err != nil || packet.Operation != arp.OperationReply || packet.SenderIP != a.ip {
		return "", err
	}
	return packet.SenderHardwareAddr.String(), nil
}

// ndpAsker asks for an IPv6 address.
type ndpAsker struct {
	*ndp.Conn
	ip  netip.Addr
	mac net.HardwareAddr
}

func (a ndpAsker) ask() error {
	to, err := ndp.SolicitedNodeMulticast(a.ip)
	if err != nil {
		return err
	}
	source := &ndp.LinkLayerAddress{Direction: ndp.Source, Addr: a.mac}
	return a.WriteTo(&ndp.NeighborSolicitation{TargetAddress: a.ip, Options: []ndp.Option{source}}, nil, to)
}

func (a ndpAsker) answer() (mac string, err error) {
	message, _, _, err := a.ReadFrom()
	advertisement, is := message.(*ndp.NeighborAdvertisement)
	if err != nil || !is || advertisement.TargetAddress != a.ip {
		return "", err
	}
	for _, option := range advertisement.Options {
		if target, is := option.(*ndp.LinkLayerAddress); is {
			mac = target.Addr.String()
		}
	}
	return mac, nil
}

// newAsker returns one on the interface of the outside host.
func newAsker(on *net.Interface, ip netip.Addr) (asker, error) {
	if ip.Is4() {
		client, err := arp.Dial(on)
		return arpAsker{client, ip}, err
	}
	conn, _, err := ndp.Listen(on, ndp.LinkLocal)
	return ndpAsker{conn, ip, on.HardwareAddr}, err
}

// whoAnswers asks for an address until the end of the test.
func (w *poolWorld) whoAnswers(ip string) *answers {
	w.Helper()
	a := &answers{}
	w.must(w.Outside().Do(func() error {
		link, err := net.InterfaceByName("lan0")
		if err != nil {
			return err
		}
		a.asker, err = newAsker(link, netip.MustParseAddr(ip))
		return err
	}))
	ctx, cancel := context.WithCancel(w.Context())
	var running sync.WaitGroup
	running.Go(func() { a.listen(ctx) })
	running.Go(func() {
		for ticker := time.NewTicker(lookEvery); ctx.Err() == nil; <-ticker.C {
			a.mu.Lock()
			a.rounds = append(a.rounds, map[string]bool{})
			a.mu.Unlock()
			_ = a.ask() // a link that is down; there is another one
		}
	})
	a.stop = sync.OnceFunc(func() {
		cancel()
		_ = a.Close()
		running.Wait()
	})
	w.Cleanup(a.stop)
	return a
}

// listen notes who answers until ctx has ended and the asker is closed.
func (a *answers) listen(ctx context.Context) {
	for ctx.Err() == nil {
		mac, err := a.answer()
		if err != nil || mac == "" {
			continue
		}
		a.mu.Lock()
		if n := len(a.rounds); n > 0 {
			a.rounds[n-1][mac] = true
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
	for _, ip := range w.egressIPs {
		w.complete()
		holder := w.holderOf(ip, nil)
		a, p := w.whoAnswers(ip), w.probe(ip, holder)
		began := time.Now()
		holder.Kill()
		w.holderOf(ip, holder)
		stayed := time.Since(began)
		t.Logf("%s has moved %v after its process died", ip, stayed.Round(time.Millisecond))
		if stayed < 15*time.Second || stayed > 33*time.Second { // 30 s, and the kernel looks once a second
			t.Error("want that while the kernel keeps it, and not longer")
		}
		w.end(p, ip, "process stays dead", began, by(t, fastest, fastest, 200*time.Millisecond))
		a.end(w, ip, "process stays dead")
		time.Sleep(12 * time.Second) // what has lasted for 5 s is told at the next sync
		w.notTold("EgressIPOnSeveralNodes", "although its Lease stays, and its Node is Ready")
		holder.Start()
		holder.Ready()
	}
}

// TestPool_AtAnySpeed is the short form of steering, pool and failover that hack/kernels runs on emulated machines. Pods leave from the
// egress IPs that the pool holds. A holder's link is cut: another node takes its address, and connections live. No time is measured, but
// how long an address may be away at most, by the machine's speed.
func TestPool_AtAnySpeed(t *testing.T) {
	belongsTo(t, usual)
	w := newPoolWorld(t, 3)
	for _, ip := range w.egressIPs {
		w.complete()
		holder := w.holderOf(ip, nil)
		c := w.keepConnections(ip, w.podsOff(holder))
		w.must(w.SetLink(holder.Host, false))
		w.holderOf(ip, holder)
		w.answeredAt(w.podsOff(holder))
		c.heard(w, time.Now())
		c.end(w, ip, "link cut", 100)
		w.must(w.SetLink(holder.Host, true))
	}
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
	for _, ip := range w.egressIPs {
		for _, fault := range []struct {
			name string
			set  func(h *lab.Host, works bool) error
		}{{"link cut", w.SetLink}, {"switch silent", w.SetForwarding}} {
			w.complete()
			holder := w.holderOf(ip, nil)
			a := w.whoAnswers(ip)
			w.must(fault.set(holder.Host, false))
			w.anotherHas(ip, holder)
			w.must(fault.set(holder.Host, true))
			w.complete()
			if now := w.holderOf(ip, nil); now == holder {
				t.Errorf("%s: %s has moved back", fault.name, ip)
			}
			a.end(w, ip, fault.name+" and back")
		}
	}
}

// anotherHas waits until a node other than that has an address, and returns it.
func (w *poolWorld) anotherHas(ip string, than *member) (holder *member) {
	w.Helper()
	w.eventually(func() error {
		for _, m := range w.members {
			if m != than && w.has(m, ip) {
				holder = m
				return nil
			}
		}
		return fmt.Errorf("no other node has %s", ip)
	})
	return holder
}

// TestPool_APIServerAway: a node fails meanwhile, and its addresses move. When it is back, its own pods use them where they are now, and wait
// for no heartbeat. A process that starts anew does not learn who is in the pool, and keeps them for longer than the kernel does by itself.
func TestPool_APIServerAway(t *testing.T) {
	belongsTo(t, usual)
	w := newPoolWorld(t, 3)
	w.complete()
	w.must(w.APIServer.Stop(t.Context()))
	for _, ip := range w.egressIPs {
		holder := w.holderOf(ip, nil)
		p := w.probe(ip, holder)
		began := time.Now()
		w.must(w.SetLink(holder.Host, false))
		w.holderOf(ip, holder)
		w.end(p, ip, "link cut, API server away", began, w.fastest())
		time.Sleep(3 * time.Second) // until the new holder repeats nothing
		w.must(w.SetLink(holder.Host, true))
		w.complete()
		back := time.Now()
		w.answeredAt(w.podsOn([]*member{holder}))
		took := time.Since(back)
		t.Logf("%s: pods of the node that failed are answered %v after it was back", ip, took.Round(time.Millisecond))
		if took > 3*time.Second {
			t.Error("want that at once")
		}
	}

	ip := w.v4()
	next := w.holderOf(ip, nil)
	p := w.probe(ip, next)
	began := time.Now()
	next.Kill()
	next.Anew()
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
