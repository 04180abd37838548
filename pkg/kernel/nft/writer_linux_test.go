package nft

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"testing"
	"time"

	"github.com/openshift/origin-node/pkg/kernel"
)

// TestWriter_AnswersToLargeTables: the kernel answers each message of a transaction before anybody reads the first answer.
func TestWriter_AnswersToLargeTables(t *testing.T) {
	const chains = 20_000
	s := Spec{Name: "large", Family: kernel.IPv4}
	want := State{Sets: Content{}, Chains: map[string][]Rule{}}
	for i := range chains {
		want.Chains[fmt.Sprint("chain-", i)] = []Rule{s.Rule("accepts", "accept")}
	}
	if err := newLab(t).Node().Do(func() error {
		w := NewWriter(s)
		defer w.Close()
		_, err := w.Write(t.Context(), want)
		return err
	}); err != nil {
		t.Fatalf("%d chains: %.300s", chains, err)
	}
}

// TestWriter_FailsBeforeItSends: callers change the content in place that was written last. What a change should have brought that failed before
// anything was sent, the next write brings.
func TestWriter_FailsBeforeItSends(t *testing.T) {
	s := Spec{Name: "fails", Family: kernel.IPv4, Sets: []Set{{Name: "pods"}}}
	held := State{Sets: Content{"pods": Elements{}}}
	late, end := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer end()
	if err := newLab(t).Node().Do(func() error {
		w := NewWriter(s)
		defer w.Close()
		if _, err := w.Write(t.Context(), held); err != nil {
			return err
		}
		added := Elements{Key{Pod: netip.MustParseAddr("10.128.0.5")}: netip.Addr{}}
		maps.Copy(held.Sets["pods"], added)
		if _, err := w.Change(late, held, Change{Added: map[string]Elements{"pods": added}}); err == nil {
			t.Error("the change does not fail")
		}
		if changed, err := w.Write(t.Context(), held); err != nil || !changed {
			t.Errorf("the next write: changed %v, %v", changed, err)
		}
		look := NewWriter(s)
		defer look.Close()
		found, _, err := look.Inspect(t.Context())
		if len(found.Sets["pods"]) != 1 {
			t.Errorf("the kernel has %v", found.Sets)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
