package attach

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/openshift/origin-node/pkg/egress/attachments"
)

// TestAttacher_ChangesAtTheSameTime: whoever tells first, the state ends with what the store has, and whoever has changed something finds it
// in the state. The race detector watches.
func TestAttacher_ChangesAtTheSameTime(t *testing.T) {
	pods := knownPods{}
	const count, rounds = 8, 20
	for i := range count {
		pods[fmt.Sprint("u", i)] = map[string]string{"app": "web"}
	}
	a := newAttacherTest(t, t.TempDir(), pods)
	var running sync.WaitGroup
	for i := range count {
		uid, ip := fmt.Sprint("u", i), netip.AddrFrom4([4]byte{10, 128, 0, byte(10 + i)})
		running.Go(func() {
			for round := range rounds {
				one := attached(fmt.Sprint("c", i, "-", round), uid)
				one.IPs = []netip.Addr{ip}
				if _, err := a.Attach(t.Context(), one); err != nil {
					t.Error(err)
				}
				if err := a.SetPorts(one.ContainerID, []attachments.Ports{{IP: ip, First: 2048, Last: 2559}}, 512); err != nil {
					t.Error(err)
				}
				if _, err := a.setPod(podObject{Pod: one.Pod, labels: map[string]string{"app": "db"}}); err != nil {
					t.Error(err)
				}
				if err := a.awaitKernel(t.Context(), familiesOf(one.IPs), false); err != nil {
					t.Error(err)
				}
				if bound := a.Attacher.state.BindingsOf(ip); len(bound) > 0 {
					t.Errorf("%s is bound after a sync with the label of another Service", ip)
				}
				if err := a.Detach(t.Context(), one.ContainerID); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	for _, ended := range a.All() {
		a.must(a.SetRecorded(ended.ContainerID))
	}
	a.must(a.Sweep(t.Context(), time.Now().Add(keepReleased+time.Minute)))
	if left := a.Attacher.state.AttachedAddresses(); len(left) > 0 || len(a.store.All()) > 0 {
		t.Errorf("the state has %v, the store %v; want none", left, a.store.All())
	}
}
