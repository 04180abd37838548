package balancer

import (
	"net/netip"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func newSmall() *addresses {
	return newAddresses([]netip.Prefix{netip.MustParsePrefix("198.19.0.0/30"), netip.MustParsePrefix("2001:db8::/126")})
}

func dual(svc *v1.Service) { svc.Spec.IPFamilies = []v1.IPFamily{v1.IPv6Protocol, v1.IPv4Protocol} }

// want fails the test unless a Service is given these addresses.
func want(t *testing.T, a *addresses, svc *v1.Service, texts ...string) {
	t.Helper()
	if got, err := a.give(svc); err != nil || !slices.Equal(got, addrs(texts...)) {
		t.Errorf("%s is given %v, %v; want %v", svc.UID, got, err, texts)
	}
}

func TestAddresses_OneOfEachFamily(t *testing.T) {
	a := newSmall()
	want(t, a, service("a", dual), "2001:db8::1", "198.19.0.1")
	want(t, a, service("b", nil), "198.19.0.2")
	want(t, a, service("a", dual), "2001:db8::1", "198.19.0.1")
	want(t, a, service("b", dual), "2001:db8::2", "198.19.0.2")
	want(t, a, service("b", nil), "198.19.0.2")
	want(t, a, service("c", dual), "2001:db8::3", "198.19.0.3")
}

func TestAddresses_ReusedAfterAllOthers(t *testing.T) {
	a := newSmall()
	b := service("b", nil)
	want(t, a, service("a", nil), "198.19.0.1")
	want(t, a, b, "198.19.0.2")
	a.keep([]*v1.Service{b})
	want(t, a, service("c", nil), "198.19.0.3")
	want(t, a, service("d", nil), "198.19.0.1")
	want(t, a, b, "198.19.0.2")
}

func TestAddresses_AllGiven(t *testing.T) {
	a := newSmall()
	for _, svc := range []*v1.Service{service("a", nil), service("b", nil), service("c", nil)} {
		if _, err := a.give(svc); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := a.give(service("d", nil)); err == nil {
		t.Errorf("got %v, want an error", got)
	}
}

func TestAddresses_NoRangeOfTheFamily(t *testing.T) {
	a := newAddresses([]netip.Prefix{netip.MustParsePrefix("198.19.0.0/30")})
	if got, err := a.give(service("a", dual)); err == nil {
		t.Errorf("got %v, want an error", got)
	}
}
