package nft

import (
	"fmt"
	"testing"

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
