package attach

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/cni"
	"github.com/openshift/origin-node/pkg/egress/plan"
)

// blockFor gives the pod u1 a block of its egress IP, and all others none.
func blockFor(synced *int) func(context.Context, attachments.Attachment, []plan.Binding) ([]attachments.Ports, int, error) {
	return func(_ context.Context, a attachments.Attachment, bindings []plan.Binding) ([]attachments.Ports, int, error) {
		switch {
		case len(bindings) == 0:
			return nil, 0, nil
		case a.Ports != nil:
			return a.Ports, a.BlockSize, nil
		case *synced > 0:
			return nil, 0, errors.New("the kernel holds its bindings already")
		}
		return []attachments.Ports{{IP: bindings[0].Pod, EgressIP: bindings[0].EgressIP, Service: "shop/web", First: 2048, Last: 2559, Since: time.Unix(1e9, 0)}}, 512, nil
	}
}

// TestAttacher_AssignsPorts of a pod that is bound before the sync that writes its bindings, and says them with these, each time, also
// after a restart.
func TestAttacher_AssignsPorts(t *testing.T) {
	folder, synced := t.TempDir(), 0
	a := newAttacherTest(t, folder, someLabels)
	var followed []attachments.Attachment
	var recorded []string
	assign := func() {
		await := a.node.Await
		a.node.Await = func(ctx context.Context, families []v1.IPFamily, look bool) error {
			if got, known := a.store.Get("c1"); known && got.Released.IsZero() && got.Ports == nil {
				t.Error("a sync begins that does not know the ports")
			}
			synced++
			return await(ctx, families, look)
		}
		a.node.Recorded = func(_ context.Context, id string) {
			if got, _ := a.store.Get(id); got.Ports != nil && synced == 0 {
				t.Error("the kernel is not written before it is written down who has the ports")
			}
			recorded = append(recorded, id)
		}
		a.node.Assign, a.node.Follow = blockFor(&synced), func(_ uint64, all []attachments.Attachment) { followed = all }
	}
	assign()
	attach := func() {
		t.Helper()
		decision, err := a.Attach(t.Context(), attached("c1", "u1"))
		if ports := decision.LocalPorts(); err != nil || ports == nil || *ports != (cni.Ports{First: 2048, Last: 2559}) {
			t.Errorf("decision %+v, err %v", decision, err)
		}
		if first, last, of := followed[0].Block(); first != 2048 || last != 2559 || len(of) != 1 || of[0] != netip.MustParseAddr("203.0.113.1") || followed[0].BlockSize != 512 {
			t.Errorf("told of %+v", followed)
		}
	}
	attach()
	attach()
	if synced != 2 || !slices.Equal(recorded, []string{"c1", "c1"}) {
		t.Errorf("%d syncs for 2 requests, waited for what is written down of %v", synced, recorded)
	}
	a = newAttacherTest(t, folder, someLabels)
	assign()
	attach()
	if decision, err := a.Check(t.Context(), "c1"); err != nil || decision.LocalPorts() == nil {
		t.Errorf("decision %+v, err %v", decision, err)
	}
	a.must(a.Detach(t.Context(), "c1"))
	if len(followed) != 1 || followed[0].Released.IsZero() || followed[0].Ports == nil {
		t.Errorf("after its end told of %+v", followed)
	}
	if decision, err := a.Attach(t.Context(), attached("c2", "u2")); err != nil || decision.LocalPorts() != nil {
		t.Errorf("a pod that is not bound: %+v, err %v", decision, err)
	}
}

// TestAttacher_Followed: what follows attachments is told of each change before the next step, with numbers that grow, and without the lock.
func TestAttacher_Followed(t *testing.T) {
	a := newAttacherTest(t, t.TempDir(), someLabels)
	var numbers []uint64
	var told []string
	a.node.Follow = func(number uint64, all []attachments.Attachment) {
		a.All() // which hangs if it is told with the lock held
		numbers = append(numbers, number)
		var each []string
		for _, of := range all {
			each = append(each, fmt.Sprintf("%s: live %v, %d blocks, widened %v", of.ContainerID, of.Released.IsZero(), len(of.Ports), of.Widened))
		}
		told = append(told, strings.Join(each, "; "))
	}
	for _, step := range []struct {
		name string
		do   func() error
		want string
	}{
		{"attach", func() error { _, err := a.Attach(t.Context(), attached("c1", "u1")); return err }, "c1: live true, 0 blocks, widened false"},
		{"ports", func() error { return a.SetPorts("c1", []attachments.Ports{{First: 2048, Last: 2559}}, 512) }, "c1: live true, 1 blocks, widened false"},
		{"widened", func() error { return a.SetWidened("c1") }, "c1: live true, 1 blocks, widened true"},
		{"detach", func() error { return a.Detach(t.Context(), "c1") }, "c1: live false, 1 blocks, widened true"},
		{"sweep", func() error {
			return errors.Join(a.SetRecorded("c1"), a.Sweep(t.Context(), time.Now().Add(keepReleased+time.Minute)))
		}, ""},
	} {
		before := len(told)
		a.must(step.do())
		if step.name == "detach" {
			a.must(a.Sweep(t.Context(), time.Now().Add(keepReleased+time.Minute))) // what it had is not written down yet
		}
		if len(told) == before || told[len(told)-1] != step.want {
			t.Errorf("%s: told %q, want %q at last", step.name, told[before:], step.want)
		}
	}
	if !slices.IsSorted(numbers) || numbers[len(numbers)-1] == numbers[0] {
		t.Errorf("the numbers %v do not grow", numbers)
	}
}

// TestAttacher_CannotAssign: the pod does not start.
func TestAttacher_CannotAssign(t *testing.T) {
	a := newAttacherTest(t, t.TempDir(), someLabels)
	a.node.Assign = func(context.Context, attachments.Attachment, []plan.Binding) ([]attachments.Ports, int, error) {
		return nil, 0, errors.New("too late")
	}
	if _, err := a.Attach(t.Context(), attached("c1", "u1")); err == nil {
		t.Error("no error")
	}
}
