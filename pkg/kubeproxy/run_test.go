package kubeproxy

import (
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/hack/lab"
)

// TestCheckServed_Families: it is an error if the proxier lacks a family in which iptables works.
func TestCheckServed_Families(t *testing.T) {
	v4, v6 := v1.IPv4Protocol, v1.IPv6Protocol
	for _, test := range []struct {
		name   string
		lab    lab.Config
		served []v1.IPFamily
		want   string
	}{
		{"both", lab.Config{IPv6: true}, []v1.IPFamily{v4, v6}, ""},
		{"no IPv6 although it works", lab.Config{IPv6: true}, []v1.IPFamily{v4}, "for IPv6"},
		{"no IPv4 although it works", lab.Config{IPv6: true}, []v1.IPFamily{v6}, "for IPv4"},
		{"no IPv6 on a host that has none", lab.Config{}, []v1.IPFamily{v4}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := lab.ForTest(t, test.lab)
			t.Setenv("PATH", l.Path())
			t.Setenv("XTABLES_LOCKFILE", filepath.Join(t.TempDir(), "lock"))
			got := l.Node().Do(func() error { return checkServed(t.Context(), test.served) })
			if (got == nil) != (test.want == "") || got != nil && !strings.Contains(got.Error(), test.want) {
				t.Errorf("got %v, want %q in it", got, test.want)
			}
		})
	}
}
