package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/lab"
)

// poolArguments put the addresses of [steeredWorld.lanIPs] on nodes.
const poolArguments = `
egress-snat-assign-cidrs: ["192.0.2.96/27", "2001:db8:0:2::100/120", "2001:db8:0:2::1000/118"]
`

// poolWorld is a cluster whose egress IPs are put on nodes by the nodes themselves.
type poolWorld struct {
	*steeredWorld
}

func newPoolWorld(t *testing.T, nodes int) *poolWorld {
	t.Helper()
	w := newIdlePoolWorld(t, nodes)
	w.begin()
	for _, ip := range w.egressIPs {
		w.holderOf(ip, nil)
	}
	w.settled()
	w.answered()
	return w
}

// newIdlePoolWorld makes one in which no node runs.
func newIdlePoolWorld(t *testing.T, nodes int) *poolWorld {
	t.Helper()
	return newIdlePoolWorldOf(t, settings{nodes: nodes})
}

// newIdlePoolWorldOf is newIdlePoolWorld with further settings.
func newIdlePoolWorldOf(t *testing.T, s settings) *poolWorld {
	t.Helper()
	s.onLAN, s.arguments = true, poolArguments+s.arguments
	w := &steeredWorld{world: newIdleWorld(t, s)}
	w.joinPool()
	w.egressIPs = w.lanIPs(100)
	wire, err := w.Watch()
	w.must(err)
	w.wire = wire
	w.Cleanup(func() { w.clean(0) }) // whatever happens, pods leave as nobody else
	return &poolWorld{w}
}

// joinPool makes all nodes those of the pool.
func (w *world) joinPool() {
	w.Helper()
	for _, m := range w.members {
		w.label(m, "node-restriction.kubernetes.io/egress-assignable", "")
	}
}

// begin starts the nodes, and has a Service claim the egress IPs.
func (w *poolWorld) begin() {
	w.Helper()
	w.start()
	w.assignable = addrs(w.egressIPs)
	w.pods = w.shop(w.egressIPs...)
}

// has tells whether the kernel of a node has an address.
func (w *poolWorld) has(m *member, ip string) bool {
	w.Helper()
	held, err := m.Host.Held()
	w.must(err)
	return slices.Contains(held, netip.MustParseAddr(ip))
}

// holderOf waits until exactly one node has an address, another one than that, and returns it.
func (w *poolWorld) holderOf(ip string, than *member) (holder *member) {
	w.Helper()
	w.eventually(func() error {
		holder = nil
		for _, m := range w.members {
			if m == than || !w.has(m, ip) {
				continue
			}
			if holder != nil {
				return fmt.Errorf("%s is on %s and on %s", ip, holder.Name, m.Name)
			}
			holder = m
		}
		if holder == nil {
			return fmt.Errorf("%s is on no node", ip)
		}
		return nil
	})
	return holder
}

// podsOff are the pods of nodes other than that; all if it is nil.
func (w *poolWorld) podsOff(than *member) (pods []*lab.Host) {
	for _, pod := range w.pods {
		if than == nil || pod.Node != than.Host {
			pods = append(pods, pod)
		}
	}
	return pods
}

// outsideFor is the server outside in the family of an address.
func (w *poolWorld) outsideFor(ip string) (to netip.AddrPort) {
	for _, server := range w.outside() {
		if server.Addr().Is4() == netip.MustParseAddr(ip).Is4() {
			to = server
		}
	}
	return to
}

// probes are new connections that pods make every 10 ms, however long earlier ones take.
type probes struct {
	stop func()

	mu   sync.Mutex
	ends []probeEnd
}

// probeEnd is what became of a connection.
type probeEnd struct {
	start time.Time
	took  time.Duration
	seen  netip.Addr
	err   error
}

// slow is the longest time between the first and the last connection that did not work at once, where a fault may cost a few. late is
// the shortest time that a connection takes whose SYN was lost: TCP repeats it after a second. On a busy machine any connection may take
// some hundred milliseconds.
const slow, late = 300 * time.Millisecond, 900 * time.Millisecond

// probe lets the pods of nodes other than that connect to the outside, in the family of an address.
func (w *poolWorld) probe(ip string, than *member) *probes {
	w.Helper()
	return w.probeFrom(w.podsOff(than), ip)
}

// probeFrom is probe for these pods.
func (w *poolWorld) probeFrom(pods []*lab.Host, ip string) *probes {
	w.Helper()
	to, p := w.outsideFor(ip), &probes{}
	ctx, cancel := context.WithCancel(w.Context())
	var running sync.WaitGroup
	running.Go(func() {
		for ticker, n := time.NewTicker(10*time.Millisecond), 0; ctx.Err() == nil; n++ {
			<-ticker.C
			running.Go(func() { p.ask(w.Context(), pods[n%len(pods)], to) })
		}
	})
	p.stop = func() { cancel(); running.Wait() }
	w.Cleanup(p.stop)
	w.eventually(func() error {
		if p.count() < 20 {
			return errors.New("no connections yet")
		}
		return nil
	})
	return p
}

func (p *probes) ask(ctx context.Context, pod *lab.Host, to netip.AddrPort) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	start := time.Now()
	seen, err := pod.Ask(ctx, network("tcp", to), to, 0)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ends = append(p.ends, probeEnd{start, time.Since(start), seen, err})
}

func (p *probes) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.ends)
}

// end ends them, prints what happened since a moment, and fails unless all were answered, under the egress IP, and those
// that did not work at once began within a time of each other.
func (w *poolWorld) end(p *probes, ip, what string, since time.Time, most time.Duration) {
	w.Helper()
	r, gap := w.judged(p, ip, what, since)
	if r.failed+r.wrong > 0 || gap > most {
		w.Errorf("%s, %s: want 0 failed, 0 wrong, and a gap of at most %v; the last error: %v", ip, what, most, r.failure)
	}
}

// judged ends them, prints what happened since a moment, and returns it, and how long after each other those began that did not work at
// once.
func (w *poolWorld) judged(p *probes, ip, what string, since time.Time) (r judgement, gap time.Duration) {
	w.Helper()
	w.goesOn(p)
	r = p.judge(ip)
	gap = r.last.Sub(r.first)
	w.Logf("%s, %s: connections did not work at once for %v, until %v after it; of %d, %d were late, %d failed, %d under another address",
		ip, what, gap.Round(time.Millisecond), max(r.last.Sub(since), 0).Round(time.Millisecond), len(p.ends), r.late, r.failed, r.wrong)
	return r, gap
}

// goesOn lets connections be made for a while, then ends them.
func (w *poolWorld) goesOn(p *probes) {
	w.Helper()
	before := p.count()
	w.eventually(func() error {
		if p.count() < before+50 {
			return errors.New("too few connections")
		}
		return nil
	})
	p.stop()
}

// judgement is what became of connections: how many did not work at once, and when the first and the last of these began.
type judgement struct {
	first, last         time.Time
	late, failed, wrong int
	failure             error
}

// judge tells what became of connections that have ended, and should have been seen under an address.
func (p *probes) judge(ip string) (r judgement) {
	for _, e := range p.ends {
		switch {
		case e.err != nil:
			r.failed, r.failure = r.failed+1, e.err
		case e.seen != netip.MustParseAddr(ip):
			r.wrong++
		case e.took > late:
			r.late++
		default:
			continue
		}
		if r.first.IsZero() || e.start.Before(r.first) {
			r.first = e.start
		}
		if e.start.After(r.last) {
			r.last = e.start
		}
	}
	return r
}

// complete waits until each node finds all others alive, and the pool as it should be.
func (w *poolWorld) complete() {
	w.Helper()
	for _, m := range w.members {
		w.sees(m, len(w.members))
	}
}

// sees waits until a node finds so many nodes of the pool alive, itself included.
func (w *poolWorld) sees(m *member, votes int) {
	w.Helper()
	w.eventually(func() error {
		out, errs, status := m.Openshift("egress", "pool", "--socket="+m.Socket(), "-o", "json")
		var pool struct{ Votes, Of int }
		if status != 0 {
			return errors.New(errs)
		}
		if err := json.Unmarshal([]byte(out), &pool); err != nil {
			return err
		}
		if pool.Votes != votes || pool.Of != len(w.members) {
			return fmt.Errorf("%s sees %+v, want %d of %d", m.Name, pool, votes, len(w.members))
		}
		return nil
	})
}

// fastest is the longest gap that a lost holder may cause on a machine that runs many tests at a time. strict is what an
// idle one has to reach, which E2E=all asks for.
const fastest, strict = 1500 * time.Millisecond, 600 * time.Millisecond

// fastest is the longest gap that a lost holder may cause.
func (w *world) fastest() time.Duration { return by(w.T, fastest, fastest, strict) }

// TestPool_HolderFails by a cut link, a silent switch or without a trace: the next node has the address at once, and connections go on.
func TestPool_HolderFails(t *testing.T) {
	w := newPoolWorld(t, 3)
	for _, ip := range w.egressIPs {
		for _, fault := range []struct {
			name string
			set  func(m *member, broken bool) error
		}{
			{"link cut", func(m *member, broken bool) error { return w.SetLink(m.Host, !broken) }},
			{"switch silent", func(m *member, broken bool) error { return w.SetForwarding(m.Host, !broken) }},
			{"node vanished", func(m *member, broken bool) error { return w.vanish(m, ip, broken) }},
		} {
			w.complete()
			holder := w.holderOf(ip, nil)
			c, p := w.keepConnections(ip, w.podsOff(holder)), w.probe(ip, holder)
			began := time.Now()
			w.must(fault.set(holder, true))
			next := w.holderOf(ip, holder)
			w.end(p, ip, fault.name, began, w.fastest())
			c.end(w, ip, fault.name, 95)
			w.must(fault.set(holder, false))
			w.complete()
			if now := w.holderOf(ip, nil); now != next {
				t.Errorf("%s has moved back to %s", ip, now.Name)
			}
		}
	}
}

// TestPool_PortClash: two pods each have a connection from the same port to the same destination, and the node dies that alone
// knows which of them has which port outside; or the pod dies, too, that has its own. No connection hangs: what does not
// go on is reset.
func TestPool_PortClash(t *testing.T) {
	belongsTo(t, usual)
	const ports = 20
	w := newPoolWorld(t, 3)
	for family, ip := range w.egressIPs {
		w.complete()
		w.settled()
		holder := w.holderOf(ip, nil)
		pods := w.podsOff(holder)
		pairs := [][2]*lab.Host{{pods[0], pods[1]}, {pods[1], pods[0]}, {w.podsOn([]*member{holder})[0], pods[0]}}
		c, gone, to := &connections{}, &connections{}, w.beats(ip)
		t.Cleanup(c.close)
		t.Cleanup(gone.close)
		for n := range ports {
			for i, pod := range pairs[n%len(pairs)] {
				of := c
				if pod.Node == holder.Host {
					of = gone
				}
				of.keep(w, pod, w.dialFromPort(pod, 20000+family*ports+n, to), i == n%2)
			}
		}
		c.begin(w)
		began := time.Now()
		w.must(w.SetLink(holder.Host, false))
		next := w.holderOf(ip, holder)
		c.noneHangs(w)
		t.Logf("%s, link cut: %v later %d of %d connections from %d ports live, and the others are reset",
			ip, time.Since(began).Round(10*time.Millisecond), c.alive(), len(c.all), ports)
		if c.alive() == 0 {
			t.Errorf("%s: no connection has outlived the node", ip)
		}
		w.eventually(func() error {
			if said := "Reset connections whose ports"; !strings.Contains(next.Printed.String(), said) {
				return fmt.Errorf("%s: %s has not logged %q: no wrong pod was heard first", ip, next.Name, said)
			}
			return nil
		})
		w.must(w.SetLink(holder.Host, true))
	}
}

// TestPool_NothingIsPickedUp: where kernels track connections from their beginning alone, none outlives its node, and none hangs.
func TestPool_NothingIsPickedUp(t *testing.T) {
	belongsTo(t, usual)
	w := newPoolWorld(t, 3)
	for _, m := range w.members {
		_, err := m.Host.Run(t.Context(), "sysctl", "-w", "net.netfilter.nf_conntrack_tcp_loose=0")
		w.must(err)
	}
	for _, ip := range w.egressIPs {
		w.complete()
		w.settled()
		holder := w.holderOf(ip, nil)
		c := w.keepConnections(ip, w.podsOff(holder))
		began := time.Now()
		w.must(w.SetLink(holder.Host, false))
		w.holderOf(ip, holder)
		c.noneHangs(w)
		t.Logf("%s, link cut: %v later all but %d of %d connections are reset", ip, time.Since(began).Round(10*time.Millisecond), c.alive(), len(c.all))
		if c.alive() > 0 {
			t.Errorf("%s: %d connections have outlived the node, so kernels do pick them up", ip, c.alive())
		}
		c.close()
		w.must(w.SetLink(holder.Host, true))
	}
}

// vanish ends a node without a warning, or brings it back as after a reboot.
func (w *poolWorld) vanish(m *member, ip string, gone bool) error {
	if gone {
		m.Kill()
		return w.SetLink(m.Host, false)
	}
	if err := m.Host.DropAddr(netip.MustParseAddr(ip)); err != nil {
		return err
	}
	return w.boots(m)
}

// boots starts a node that has nothing of before.
func (w *poolWorld) boots(m *member) error {
	if err := w.SetLink(m.Host, true); err != nil {
		return err
	}
	m.AnewReady()
	return nil
}

// TestPool_Drain of the node that has the addresses: connections go on, and new ones begin.
func TestPool_Drain(t *testing.T) {
	w := newPoolWorld(t, 3)
	w.complete()
	for _, ip := range w.egressIPs {
		w.settled() // a node that has just begun has no rules for the pods of other nodes yet
		holder := w.holderOf(ip, nil)
		c, p := w.keepConnections(ip, w.pods), w.probe(ip, holder)
		began := time.Now()
		w.drain(holder, true)
		if w.has(holder, ip) {
			t.Errorf("%s still has %s after its drain", holder.Name, ip)
		}
		w.end(p, ip, "drain", began, by(t, slow, slow, 0)) // on an idle machine every connection works at once
		c.end(w, ip, "drain", 100)
		next := w.holderOf(ip, nil)
		want := "taken from " + holder.Name + ": its node is drained"
		if out, _, _ := next.Openshift("egress", "addresses", "--socket="+next.Socket(), "-o", "wide"); !strings.Contains(out, want) {
			t.Errorf("%s does not say %q:\n%s", next.Name, want, out)
		}
		holder.Kill() // it stays drained
		holder.Start()
		holder.Ready()
		w.complete()
		if out, _, _ := holder.Openshift("egress", "pool", "--socket="+holder.Socket()); !strings.Contains(out, "draining") {
			t.Errorf("after a restart the node is not drained any more:\n%s", out)
		}
		w.drain(holder, false)
		if now := w.holderOf(ip, nil); now != next {
			t.Errorf("%s has moved back to %s", ip, now.Name)
		}
	}
}

// TestPool_ProcessIsKilled: its kernel serves until the process is back, and nothing moves.
func TestPool_ProcessIsKilled(t *testing.T) {
	belongsTo(t, usual)
	w := newPoolWorld(t, 3)
	w.complete()
	for _, ip := range w.egressIPs {
		holder := w.holderOf(ip, nil)
		c, p := w.keepConnections(ip, w.pods), w.probe(ip, holder)
		began := time.Now()
		holder.Kill()
		time.Sleep(3 * time.Second) // the time that it is away
		holder.AnewReady()
		w.complete()
		if now := w.holderOf(ip, nil); now != holder {
			t.Errorf("%s has moved to %s", ip, now.Name)
		}
		w.end(p, ip, "process killed", began, slow)
		c.end(w, ip, "process killed", 95)
	}
}

// TestPool_AddressInUse: what another host has is on no node, which an Event says, and a node takes it when it is free.
func TestPool_AddressInUse(t *testing.T) {
	belongsTo(t, usual)
	w := newIdlePoolWorld(t, 3)
	w.give(w.egressIPs, w.Outside())
	w.begin()
	for _, ip := range w.egressIPs {
		w.eventually(func() error { return w.hasEvent("AddressInUse", "", ip+" ") })
		for _, m := range w.members {
			if w.has(m, ip) {
				t.Errorf("%s has taken %s, which another host has", m.Name, ip)
			}
		}
		w.must(w.Outside().DropAddr(netip.MustParseAddr(ip)))
		freed := time.Now()
		holder := w.holderOf(ip, nil)
		took := time.Since(freed)
		if t.Logf("%s has taken %s within %v", holder.Name, ip, took.Round(time.Millisecond)); took > by(t, fastest, fastest, time.Second) {
			t.Error("want a second on an idle machine")
		}
	}
}

// TestPool_Keys: nodes with the same key are a pool; one with another key is no part of it, and takes nothing.
func TestPool_Keys(t *testing.T) {
	belongsTo(t, usual)
	w := newIdlePoolWorld(t, 3)
	for i, key := range []string{"a key that all nodes share", "a key that all nodes share", "a key that nobody else has"} {
		m := w.members[i]
		m.Write(m.File("egress.key"), []byte(key))
		m.Arguments = map[string]any{"egress-snat-key-file": []string{m.File("egress.key")}}
		m.Configure(poolArguments)
	}
	w.begin()
	for i, votes := range []int{2, 2, 1} {
		w.sees(w.members[i], votes)
	}
	for _, ip := range w.egressIPs {
		if holder := w.holderOf(ip, nil); holder == w.members[2] {
			t.Errorf("%s has taken %s although it has another key than most nodes", holder.Name, ip)
		}
	}
}
