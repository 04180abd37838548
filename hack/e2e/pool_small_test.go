package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestPool_OneNode: it has its majority always, and so keeps the addresses when it is cut off for a while, and when its
// process starts anew.
func TestPool_OneNode(t *testing.T) {
	belongsTo(t, usual)
	w := newPoolWorld(t, 1)
	m := w.members[0]
	w.printsPool(m, "1 of 1 nodes are live, a majority: egress IPs of failed nodes are moved.")
	w.unmoved("cut off", func() {
		w.must(w.SetLink(m.Host, false))
		time.Sleep(by(t, 0, 5*time.Second, time.Minute)) // the fault is its length
		w.must(w.SetLink(m.Host, true))
		w.answered()
	})
	w.scenario("started anew", func() {
		m.Stop()
		m.AnewReady()
		w.answered()
		if takes := w.takes(); takes > 0 {
			w.Errorf("%d egress IPs were taken again", takes)
		}
	})
}

// TestPool_TwoNodes: one fails, and the other takes its addresses if the default gateway answers. If there is none it cannot know
// that it is not cut off itself, and has no address until the first is back.
func TestPool_TwoNodes(t *testing.T) {
	belongsTo(t, usual)
	w := newPoolWorld(t, 2)
	w.complete()
	for _, ip := range w.egressIPs {
		w.scenario("with a default gateway, "+ip, func() {
			w.complete()
			failed := w.holderOf(ip, nil)
			p, began := w.probe(ip, failed), time.Now()
			w.must(w.SetLink(failed.Host, false))
			w.anotherHas(ip, failed)
			w.end(p, ip, "link cut", began, w.fastest())
			w.must(w.SetLink(failed.Host, true))
			w.complete()
			w.holderOf(ip, failed)
		})
	}
	w.onAll("ip route del default", "ip -6 route del default")
	holder := w.holderOf(w.egressIPs[0], nil)
	for _, other := range w.members {
		without := "without a default gateway, the holder is left"
		if other != holder {
			without = "without a default gateway, the holder fails"
		}
		w.scenario(without, func() { w.oneOfTwo(other) })
	}
}

// oneOfTwo cuts off the other node. The one that is left has no address then, for it cannot know which of them is cut off.
func (w *poolWorld) oneOfTwo(left *member) {
	w.Helper()
	failed := w.members[0]
	if failed == left {
		failed = w.members[1]
	}
	w.must(w.SetLink(failed.Host, false))
	w.printsPool(left, "1 of 2 nodes are live, no majority: egress IPs of failed nodes are not moved.")
	for _, ip := range w.egressIPs {
		w.eventually(func() error {
			if w.has(left, ip) {
				return fmt.Errorf("%s has %s", left.Name, ip)
			}
			return nil
		})
	}
	w.must(w.SetLink(failed.Host, true))
	w.complete()
	for _, ip := range w.egressIPs {
		w.holderOf(ip, nil)
	}
	w.answered()
}

// printsPool waits until 'openshift egress pool' of a node has a line.
func (w *poolWorld) printsPool(m *member, line string) {
	w.Helper()
	w.eventually(func() error {
		out, errs, status := m.Openshift("egress", "pool", "--socket="+m.Socket())
		if status != 0 {
			return errors.New(errs)
		}
		if !strings.Contains(out, line) {
			return fmt.Errorf("%s: no %q in\n%s", m.Name, line, out)
		}
		return nil
	})
}
