package cluster

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/openshift/origin-node/pkg/egress/plan"
)

// TestState_SetAttachments: a list replaces the one before, unless it is older: lists may overtake each other.
func TestState_SetAttachments(t *testing.T) {
	of := func(ips ...string) (all []plan.Attachment) {
		for _, ip := range ips {
			all = append(all, plan.Attachment{Addr: netip.MustParseAddr(ip), Pod: plan.Pod{Namespace: "ns", Name: "web-0"}, Node: "node-a"})
		}
		return all
	}
	s := New(Config{NodeName: "node-a"})
	for _, step := range []struct {
		number uint64
		list   []plan.Attachment
		want   []string
	}{
		{1, of("10.128.0.5", "fd00::5"), []string{"10.128.0.5", "fd00::5"}},
		{3, of("10.128.0.5", "10.128.0.6"), []string{"10.128.0.5", "10.128.0.6"}},
		{2, of("10.128.0.7"), []string{"10.128.0.5", "10.128.0.6"}},
		{3, nil, []string{"10.128.0.5", "10.128.0.6"}},
		{4, nil, nil},
	} {
		s.SetAttachments(step.number, step.list)
		var got []string
		for _, ip := range s.AttachedAddresses() {
			got = append(got, ip.String())
		}
		if slices.Sort(got); !slices.Equal(got, step.want) {
			t.Errorf("after list %d: %v, want %v", step.number, got, step.want)
		}
	}
}
