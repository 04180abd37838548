package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/openshift/origin-node/hack/lab"
)

const (
	// handover is how long packets are dropped in silence whose egress IP is lost.
	handover = 5 * time.Second
	// attempted is how long a connection that hangs is waited for. TCP would send its SYN again after a second.
	attempted = 900 * time.Millisecond
	// promptly is how soon rules follow, on a busy machine.
	promptly = 500 * time.Millisecond
	// refusals is how many refused connections of each pod and IP family are measured.
	refusals = 100
)

// refusal is how long a connection may take, at the median, that is refused at once, on a machine that runs many tests at a
// time, and as E2E=all asks for. All take less than attempted: one that is not refused at its first SYN takes a second.
func (w *world) refusal() time.Duration {
	return by(w.T, 100*time.Millisecond, 100*time.Millisecond, 10*time.Millisecond)
}

// attempts are connections that a pod makes to one server outside, one after the other, until enough are refused.
type attempts struct {
	on *member
	ip string
	to netip.AddrPort
	// answered, hung and refused are when those began that ended so, and took how long those took that were refused.
	answered, hung, refused []time.Time
	took                    []time.Duration
	err                     error
}

// refuses has pods connect to the outside all the time, in each IP family, while lose loses their egress IPs. It fails unless
// the connections that begin hang for at most handover after the loss, as the pod's node tells the time of it, and all later
// ones are refused at once. If lose is nil no node has the addresses, and all are refused.
func (w *steeredWorld) refuses(pods []*lab.Host, lose func()) {
	w.Helper()
	var all []*attempts
	for _, pod := range pods {
		for _, to := range w.outside() {
			a := &attempts{on: w.on(pod), to: to}
			a.ip = w.egressIPs[slices.IndexFunc(w.egressIPs, func(ip string) bool { return netip.MustParseAddr(ip).Is4() == to.Addr().Is4() })]
			all = append(all, a)
		}
	}
	holder, lost := w.holder, time.Now()
	var running sync.WaitGroup
	defer running.Wait()
	if lose != nil {
		lose()
	}
	for i, a := range all {
		running.Go(func() { a.make(w.Context(), pods[i/len(w.outside())]) })
	}
	since := map[*attempts]time.Time{}
	for _, a := range all {
		if lose != nil {
			since[a] = w.lostSince(a.on, holder, a.ip)
		}
	}
	running.Wait()
	for _, a := range all {
		w.judge(a, lost, since[a])
	}
}

// refused waits until connections are refused: those with new egress IPs hang for a while, since a node may be about to get these.
func (w *steeredWorld) refused(pods []*lab.Host) {
	w.Helper()
	w.connectionsFail(pods, attempted, "is not refused", func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) })
}

// hangs waits until no new connection of these pods to the outside is answered within a second, in a round of all of them.
func (w *steeredWorld) hangs(pods []*lab.Host) {
	w.Helper()
	w.connectionsFail(pods, time.Second, "does not hang", timedOut)
}

// connectionsFail waits until all new connections of these pods to the outside fail in a way, in a round of all of them.
func (w *steeredWorld) connectionsFail(pods []*lab.Host, patience time.Duration, otherwise string, so func(error) bool) {
	w.Helper()
	w.eventually(func() error {
		for _, pod := range pods {
			for _, to := range w.outside() {
				if _, err := w.askWithin(patience, "tcp", pod, to); !so(err) {
					return errors.Join(fmt.Errorf("%s to %s %s", pod.Name, to, otherwise), err)
				}
			}
		}
		return nil
	})
}

// make makes connections, for as long as a node may take to find that another is lost at most.
func (a *attempts) make(ctx context.Context, pod *lab.Host) {
	ctx, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	for pause := time.NewTicker(10 * time.Millisecond); len(a.refused) < refusals; <-pause.C {
		attempt, end := context.WithTimeout(ctx, attempted)
		began := time.Now()
		_, err := pod.Ask(attempt, network("tcp", a.to), a.to, 0)
		took := time.Since(began)
		end()
		switch {
		case err == nil:
			a.answered = append(a.answered, began)
		case errors.Is(err, syscall.ECONNREFUSED):
			a.refused, a.took = append(a.refused, began), append(a.took, took)
		case timedOut(err) && ctx.Err() == nil:
			a.hung = append(a.hung, began)
		default:
			a.err = fmt.Errorf("%s to %s, after %d connections that were answered, %d that hung and %d that were refused: %w", pod.Name, a.to, len(a.answered), len(a.hung), len(a.refused), err)
			return
		}
	}
}

// judge tells, and fails, as refuses has it. A zero since is for addresses that no node has had.
func (w *steeredWorld) judge(a *attempts, lost, since time.Time) {
	w.Helper()
	if a.err != nil {
		w.Error(a.err)
		return
	}
	slices.Sort(a.took)
	first, median, most := a.refused[0], a.took[len(a.took)/2], a.took[len(a.took)*99/100-1]
	w.Logf("a pod on %s to %s: 99 of 100 connections are refused within %s, at the median %s, all within %s", a.on.Name, a.to, most, median, a.took[len(a.took)-1])
	if median > w.refusal() {
		w.Errorf("want %s at the median", w.refusal())
	}
	if others := slices.Concat(a.answered, a.hung); len(others) > 0 && slices.MaxFunc(others, time.Time.Compare).After(first) {
		w.Errorf("after the first connection was refused, %s, others were not: %s", first, others)
	}
	if since.IsZero() {
		if len(a.answered)+len(a.hung) > 0 {
			w.Errorf("before that %d connections were answered and %d hung, want none", len(a.answered), len(a.hung))
		}
		return
	}
	if i := slices.IndexFunc(a.answered, since.Add(promptly).Before); i >= 0 {
		w.Errorf("%d connections were answered, one %s after the loss", len(a.answered), a.answered[i].Sub(since))
	}
	hangs := first.Sub(since)
	w.Logf("before that connections hung until %s after the loss, which was known %s after the fault", hangs.Round(time.Millisecond), since.Sub(lost).Round(time.Millisecond))
	if hangs < handover-promptly || hangs > handover+2*attempted+w.fastest() {
		w.Errorf("want %s", handover)
	}
}

// on returns the node of a pod.
func (w *world) on(pod *lab.Host) *member {
	return w.members[slices.IndexFunc(w.members, func(m *member) bool { return m.Host == pod.Node })]
}

// lostSince waits until a node finds that an address, and its holder, are lost, and returns since when.
func (w *world) lostSince(m, holder *member, ip string) time.Time {
	w.Helper()
	name := fmt.Sprintf("egress_snat_lost_address_timestamp_seconds{egress_ip=%q,holder=%q}", ip, holder.Name)
	var text string
	w.eventually(func() error {
		got, err := w.get(m.Host, metricsAt, "/metrics")
		if text = got.body; err == nil && !strings.Contains(text, name) {
			err = fmt.Errorf("%s does not find that %s is lost", m.Name, ip)
		}
		return err
	})
	return time.UnixMicro(int64(metric(w.T, text, name) * 1e6))
}
