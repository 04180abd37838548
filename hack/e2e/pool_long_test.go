package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// poolPort is where the nodes of the pool speak to each other, by default.
const poolPort = 7947

// takes is how many addresses the nodes have taken since their processes started.
func (w *poolWorld) takes() (count int) {
	for _, m := range w.members {
		count += strings.Count(m.Printed.String(), `"Took an egress IP"`)
	}
	return count
}

// unmoved fails if a node takes an address during do.
func (w *poolWorld) unmoved(what string, do func()) {
	w.Helper()
	before := w.takes()
	do()
	if moves := w.takes() - before; moves > 0 {
		w.Errorf("%s: nodes have taken addresses %d times, want none", what, moves)
	}
}

// restartAll restarts the processes of all nodes, one after the other.
func (w *poolWorld) restartAll() {
	w.Helper()
	for _, m := range w.members {
		m.Stop()
		m.Start()
		m.Ready()
	}
	w.complete()
	w.settled()
}

// TestPool_HeartbeatsFiltered on all nodes: everybody finds everybody else dead, but the addresses are answered for.
func TestPool_HeartbeatsFiltered(t *testing.T) {
	belongsTo(t, usual)
	w := newPoolWorld(t, 3)
	w.complete()
	w.unmoved("heartbeats filtered", func() {
		var ends []func()
		for _, ip := range w.egressIPs {
			a, c, p, began := w.whoAnswers(ip), w.keepConnections(ip, w.pods), w.probe(ip, w.holderOf(ip, nil)), time.Now()
			ends = append(ends, func() {
				w.end(p, ip, "heartbeats filtered", began, slow)
				c.end(w, ip, "heartbeats filtered", 100)
				a.end(w, ip, "heartbeats filtered")
			})
		}
		filter := fmt.Sprintf("nft add table inet deaf; nft add chain inet deaf input '{ type filter hook input priority 0; }'; nft add rule inet deaf input meta l4proto { tcp, udp } th dport %d drop", poolPort)
		for _, m := range w.members {
			w.command(m, filter)
		}
		for _, m := range w.members {
			w.sees(m, 1)
		}
		time.Sleep(lasts(t, 0, 10*time.Second, time.Minute)) // the fault is its length
		for _, m := range w.members {
			w.command(m, "nft delete table inet deaf")
		}
		w.complete()
		for _, end := range ends {
			end()
		}
	})
}

// command runs a command of the shell on a node.
func (w *poolWorld) command(m *member, text string) {
	w.Helper()
	_, err := m.Host.Run(w.Context(), "sh", "-c", text)
	w.must(err)
}

// TestPool_LinkFlaps every 700 ms: whatever moves meanwhile, the address is served again soon after the last time, and no two nodes
// answer for it for long.
func TestPool_LinkFlaps(t *testing.T) {
	belongsTo(t, usual)
	w := newPoolWorld(t, 3)
	for _, ip := range w.egressIPs {
		w.complete()
		holder := w.holderOf(ip, nil)
		a, p := w.whoAnswers(ip), w.probe(ip, holder)
		for began, up := time.Now(), false; time.Since(began) < lasts(t, 0, 10*time.Second, time.Minute); up = !up {
			w.must(w.SetLink(holder.Host, up))
			time.Sleep(700 * time.Millisecond) // the fault is its length
		}
		ended := time.Now()
		w.must(w.SetLink(holder.Host, true))
		w.servedAgain(p, ip, "link flaps", ended)
		w.complete()
		a.end(w, ip, "link flaps")
	}
}

// again is how long after the last fault connections may not work at once.
func (w *poolWorld) again() time.Duration { return by(w.T, 2*fastest, 2*fastest, 2*time.Second) }

// servedAgain ends connections after faults, of which the last one ended at a time, prints what happened, and fails if one was
// seen under another address, or did not work at once long after that.
func (w *poolWorld) servedAgain(p *probes, ip, what string, since time.Time) {
	w.Helper()
	w.goesOn(p)
	r := p.judge(ip)
	after := max(r.last.Sub(since), 0)
	w.Logf("%s, %s: connections work at once %v after the last fault; of %d, %d were late, %d failed, %d under another address",
		ip, what, after.Round(time.Millisecond), len(p.ends), r.late, r.failed, r.wrong)
	if r.wrong > 0 || after > w.again() {
		w.Errorf("%s, %s: want 0 under another address, and connections that work at once after %v; the last error: %v", ip, what, w.again(), r.failure)
	}
}

// TestPool_RollingRestart of all processes moves nothing.
func TestPool_RollingRestart(t *testing.T) {
	belongsTo(t, usual)
	w := newPoolWorld(t, 3)
	w.complete()
	ip := w.v4()
	w.unmoved("rolling restart", func() {
		c, p := w.keepConnections(ip, w.pods), w.probe(ip, nil)
		began := time.Now()
		for _, m := range w.members {
			m.Stop()
			m.Start()
			w.complete()
		}
		w.end(p, ip, "rolling restart", began, slow)
		c.end(w, ip, "rolling restart", 100)
	})
}

// TestPool_RollingReboot of all nodes, each drained before: the pods of the others lose nothing.
func TestPool_RollingReboot(t *testing.T) {
	belongsTo(t, usual)
	w := newPoolWorld(t, 3)
	ip := w.v4()
	for _, m := range w.members {
		w.complete()
		c, p := w.keepConnections(ip, w.podsOff(m)), w.probe(ip, m)
		began := time.Now()
		w.drain(m, true)
		m.Kill()
		w.must(w.SetLink(m.Host, false))
		w.must(w.boots(m))
		w.drain(m, false)
		w.complete()
		w.end(p, ip, "reboot of "+m.Name, began, slow)
		c.end(w, ip, "reboot of "+m.Name, 100)
		w.holderOf(ip, nil)
	}
}

// drain drains a node, or ends that.
func (w *poolWorld) drain(m *member, now bool) {
	w.Helper()
	command := map[bool]string{true: "drain", false: "undrain"}[now]
	if out, errs, status := m.Openshift("egress", command, "--socket="+m.Socket()); status != 0 {
		w.Fatalf("%s of %s: status %d, %s%s", command, m.Name, status, out, errs)
	}
}

// TestPool_Starvation of five nodes, on whose machine many programs compute all the time: nothing moves.
func TestPool_Starvation(t *testing.T) {
	belongsTo(t, long)
	w := newPoolWorld(t, 5)
	w.complete()
	ip := w.v4()
	w.unmoved("starvation", func() {
		p := w.probe(ip, nil)
		end := compute(t, 5*runtime.NumCPU())
		time.Sleep(lasts(t, 0, 0, 15*time.Minute)) // the fault is its length
		end()
		w.servedAgain(p, ip, "starvation", time.Now())
		w.complete()
	})
}

// compute runs programs that do nothing else, and returns what ends them.
func compute(t *testing.T, programs int) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all []*exec.Cmd
	for range programs {
		cmd := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			t.Error(err)
			break
		}
		all = append(all, cmd)
	}
	return func() {
		cancel()
		for _, cmd := range all {
			_ = cmd.Wait() // it was killed
		}
	}
}

// TestPool_RandomFaults: links are cut, the switch is silent, processes are killed and stopped, and nodes drained, of one node at a
// time and, with five nodes, of two.
func TestPool_RandomFaults(t *testing.T) {
	belongsTo(t, usual)
	const faulty = 2
	w := newPoolWorld(t, 5)
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	faults := []struct {
		name  string
		begin func(m *member)
	}{
		{"link cut", func(m *member) { w.must(w.SetLink(m.Host, false)) }},
		{"switch silent", func(m *member) { w.must(w.SetForwarding(m.Host, false)) }},
		{"process killed", func(m *member) { m.Kill() }},
		{"process stopped", func(m *member) { m.Signal(syscall.SIGSTOP) }},
		{"drained", func(m *member) { w.drain(m, true) }},
		{"process killed and link cut", func(m *member) { m.Kill(); w.must(w.SetLink(m.Host, false)) }},
	}
	ip := w.v4()
	for began := time.Now(); time.Since(began) < lasts(t, 0, 20*time.Second, 5*time.Minute); {
		w.complete()
		p := w.probe(ip, nil)
		var what []string
		for _, i := range r.Perm(len(w.members))[:1+r.IntN(faulty)] {
			m, fault := w.members[i], faults[r.IntN(len(faults))]
			what = append(what, fault.name+" on "+m.Name)
			fault.begin(m)
			time.Sleep(time.Duration(r.IntN(1000)) * time.Millisecond) // what happens meanwhile is what is tested
		}
		ended := time.Now()
		w.repair()
		w.servedAgain(p, ip, strings.Join(what, ", "), ended)
		for _, ip := range w.egressIPs {
			w.holderOf(ip, nil)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// repair ends all faults of all nodes.
func (w *poolWorld) repair() {
	w.Helper()
	for _, m := range w.members {
		w.must(w.SetLink(m.Host, true)) // then the switch's port can forward
		w.must(w.SetForwarding(m.Host, true))
		select {
		case <-m.Ended():
			m.Start()
		default:
			m.Signal(syscall.SIGCONT)
		}
	}
	for _, m := range w.members {
		w.eventually(func() error {
			_, errs, status := m.Openshift("egress", "undrain", "--socket="+m.Socket())
			if status != 0 {
				return fmt.Errorf("undrain of %s: %s", m.Name, errs)
			}
			return nil
		})
	}
}
