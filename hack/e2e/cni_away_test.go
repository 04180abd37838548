package e2e

import (
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/lab"
)

// TestCNI_NodeAway: while the node's process is dead or hangs, pods of namespaces with claims do not start, and all others
// do; pods end, and nobody gets what was their address before the process is back.
func TestCNI_NodeAway(t *testing.T) {
	belongsTo(t, usual)
	r := newKubeletWorld(t, settings{backend: lab.NFT, nftables: true})
	r.scenario("killed", func() {
		r.away(r.on.Kill, func() { r.on.Anew() })
	})
	r.scenario("hangs", func() {
		r.away(func() { r.on.Signal(syscall.SIGSTOP) }, func() { r.on.Signal(syscall.SIGCONT) })
	})
}

// These are what the plugin's waits allow, with what bridge and a slow machine add.
const (
	longestDel, longestDelay = 3 * time.Second, 12 * time.Second
	longestReturn            = 15 * time.Second
	longestUnbinding         = 5 * time.Second
)

// away starts and ends pods while the node's process is away.
func (r *cniRuntime) away(goes, returns func()) {
	r.Helper()
	list, single := r.list(150, 170), r.list(190, 190)
	old := r.start(single, r.create("shop", "old", web))
	r.sliced(old)
	r.awaitRulesFor(old.ips)
	goes()
	gone := time.Now()

	r.within(longestDel, "DEL", func() error { return r.tryEnd(r.Context(), single, old) })
	heir := r.create("bank", "heir", web)
	if _, err := r.tryStart(r.Context(), single, heir); err == nil || !strings.Contains(err.Error(), "may still be bound") {
		r.Errorf("a pod of another namespace starts at %v: %v", old.ips, err)
	}
	var other *sandbox
	stranger := r.create("bank", "stranger", web)
	r.within(longestDelay, "ADD of a namespace without claims", func() (err error) {
		other, err = r.tryStart(r.Context(), list, stranger)
		return err
	})
	r.firstPackets(other)
	ours := r.create("shop", "ours", web)
	for tried := false; !tried || time.Since(gone) < by(r.T, 0, 0, time.Minute); tried = true {
		if _, err := r.tryStart(r.Context(), list, ours); err == nil {
			r.Fatal("a pod of a namespace with claims starts")
		}
	}

	returns()
	var s *sandbox
	r.within(longestReturn, "a start after the return", func() error {
		s = r.start(list, ours)
		return nil
	})
	r.firstPackets(s, r.ips(10)...)
	next := r.start(single, heir)
	r.firstPackets(next)
	r.firstPackets(other)
	r.end(single, next)
	for _, running := range []*sandbox{s, other} {
		r.end(list, running)
	}
	r.attached()
	for _, ended := range []*sandbox{old, next, s, other} {
		r.delete(ended.pod)
	}
}

// within does something that must not fail, and takes at most this long.
func (r *cniRuntime) within(most time.Duration, what string, do func() error) {
	r.Helper()
	began := time.Now()
	r.must(do())
	took := time.Since(began)
	r.Logf("%s took %s", what, took.Round(time.Millisecond))
	if took > most {
		r.Errorf("%s took %s, want at most %s", what, took, most)
	}
}

// TestCNI_Restart: connections of pods that are bound by their labels alone go on when the node's process is started anew.
func TestCNI_Restart(t *testing.T) {
	belongsTo(t, usual)
	for name, s := range map[string]settings{"nft": {backend: lab.NFT}, "nftables": {backend: lab.NFT, nftables: true}} {
		t.Run(name, func(t *testing.T) {
			r := newCNIWorld(t, s)
			list := r.list(50, 200)
			var pods []*sandbox
			flows := map[*lab.Flow]netip.Addr{} // with the addresses that they are seen as
			for i := range by(t, 5, 10, 100) {
				s := r.start(list, r.create("shop", fmt.Sprintf("runs-%d", i), web))
				pods = append(pods, s)
				for _, to := range r.outside() {
					flow, err := s.Dial(t.Context(), network("tcp", to), to, 0)
					r.must(err)
					flows[flow] = identity(s.Host, to, r.ips(10))
				}
			}
			goOn := func(after string) {
				for flow, want := range flows {
					if seen, err := flow.Ask(t.Context()); err != nil || seen != want {
						r.Errorf("%s a connection is seen as %v, err %v; want %s", after, seen, err, want)
					}
				}
			}
			late := func(d time.Duration) { // EndpointSlices may be late
				for began := time.Now(); time.Since(began) < d; {
					for _, s := range pods {
						r.firstPackets(s, r.ips(10)...)
					}
				}
			}
			late(by(t, 5*time.Second, 30*time.Second, 30*time.Second))
			goOn("before")
			for name, end := range map[string]func(){"killed": r.on.Kill, "stopped": r.on.Stop} {
				end()
				r.startWith(watchPods)
				goOn(name)
			}
			late(by(t, 5*time.Second, 30*time.Second, 30*time.Second))
			r.sliced(pods[0])
			r.firstPackets(pods[0], r.ips(10)...)
			r.attached()
			r.Logf("%d connections", len(flows))
		})
	}
}
