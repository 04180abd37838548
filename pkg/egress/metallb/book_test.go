package metallb

import (
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

const me = "node-b"

var (
	web, db = types.NamespacedName{Namespace: "shop", Name: "web"}, types.NamespacedName{Namespace: "shop", Name: "db"}
	v4, v6  = netip.MustParseAddr("203.0.113.10"), netip.MustParseAddr("2001:db8::10")
	other   = netip.MustParseAddr("203.0.113.20")
	both    = []netip.Addr{v4, v6}
)

// read is what a Book says, in comparable form.
type read struct{ Here, Balanced, Reserved, Layer2 []netip.Addr }

func reading(b *Book) read {
	r := b.Read(me)
	sorted := func(set map[netip.Addr]bool) []netip.Addr {
		return slices.SortedFunc(maps.Keys(set), netip.Addr.Compare)
	}
	return read{r.Here, sorted(r.Balanced), sorted(r.Reserved), sorted(r.Layer2)}
}

func (r read) expect(t *testing.T, b *Book) {
	t.Helper()
	if diff := cmp.Diff(r, reading(b), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// announces is a status of that name.
func announces(name, node string, service types.NamespacedName) *unstructured.Unstructured {
	o := named(name)
	o.SetLabels(map[string]string{NodeLabel: node, ServiceLabel: service.Name, NamespaceLabel: service.Namespace})
	return o
}

func named(name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetNamespace("metallb-system")
	o.SetName(name)
	return o
}

func TestBook_Here(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Book)
		want   read
	}{
		"nothing":                   {func(*Book) {}, read{}},
		"nobody announces":          {func(b *Book) { b.SetService(web, both, nil) }, read{Balanced: both}},
		"this node announces":       {func(b *Book) { b.SetService(web, both, nil); b.Set(Statuses, announces("a", me, web)) }, read{Here: both, Balanced: both}},
		"another node announces":    {func(b *Book) { b.SetService(web, both, nil); b.Set(Statuses, announces("a", "node-a", web)) }, read{Balanced: both}},
		"the status comes first":    {func(b *Book) { b.Set(Statuses, announces("a", me, web)); b.SetService(web, both, nil) }, read{Here: both, Balanced: both}},
		"the Service does not come": {func(b *Book) { b.Set(Statuses, announces("a", me, web)) }, read{}},
		"two statuses of a node": {func(b *Book) {
			b.SetService(web, both, nil)
			b.Set(Statuses, announces("a", me, web))
			b.Set(Statuses, announces("b", me, web))
		}, read{Here: both, Balanced: both}},
		"a status is taken over by another node": {func(b *Book) {
			b.SetService(web, both, nil)
			b.Set(Statuses, announces("a", me, web))
			b.Set(Statuses, announces("a", "node-a", web))
		}, read{Balanced: both}},
		"two Services that share an address": {func(b *Book) {
			b.SetService(web, []netip.Addr{v4}, nil)
			b.SetService(db, []netip.Addr{v4}, nil)
			b.Set(Statuses, announces("a", me, web))
			b.Set(Statuses, announces("b", me, db))
			b.Delete(Statuses, types.NamespacedName{Namespace: "metallb-system", Name: "b"})
		}, read{Here: []netip.Addr{v4}, Balanced: []netip.Addr{v4}}},
		"all statuses are others": {func(b *Book) {
			b.SetService(web, both, nil)
			b.Set(Statuses, announces("a", me, web))
			b.Replace(Statuses, []*unstructured.Unstructured{announces("b", "node-a", web)})
		}, read{Balanced: both}},
		"labels are missing": {func(b *Book) {
			b.SetService(web, both, nil)
			for _, label := range []string{NodeLabel, ServiceLabel, NamespaceLabel} {
				o := announces(label, me, web)
				labels := o.GetLabels()
				delete(labels, label)
				o.SetLabels(labels)
				b.Set(Statuses, o)
			}
		}, read{Balanced: both}},
		"the labels go": {func(b *Book) {
			b.SetService(web, both, nil)
			b.Set(Statuses, announces("a", me, web))
			b.Set(Statuses, named("a"))
		}, read{Balanced: both}},
		"the Service loses an address": {func(b *Book) {
			b.Set(Statuses, announces("a", me, web))
			b.SetService(web, both, nil)
			b.SetService(web, []netip.Addr{v6}, nil)
		}, read{Here: []netip.Addr{v6}, Balanced: []netip.Addr{v6}}},
		"the Service goes": {func(b *Book) {
			b.Set(Statuses, announces("a", me, web))
			b.SetService(web, both, nil)
			b.SetService(web, nil, nil)
		}, read{}},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBook()
			test.change(b)
			test.want.expect(t, b)
		})
	}
}

// TestBook_Reserved: what MetalLB has to announce, whether it does or not.
func TestBook_Reserved(t *testing.T) {
	all := []netip.Addr{v4, other, v6}
	advertises := func(fields map[string]any) func(*Book) {
		return func(b *Book) {
			o := named("a")
			o.Object["spec"] = fields
			b.Set(L2Advertisements, o)
		}
	}
	for name, test := range map[string]struct {
		change       func(*Book)
		want, layer2 []netip.Addr
	}{
		"no advertisement":          {func(*Book) {}, nil, nil},
		"one without a spec":        {func(b *Book) { b.Set(L2Advertisements, named("a")) }, both, both},
		"one for BGP":               {func(b *Book) { b.Set(BGPAdvertisements, named("a")) }, both, nil},
		"one for all pools":         {advertises(map[string]any{}), both, both},
		"one for the pool":          {advertises(map[string]any{"ipAddressPools": []any{"x", "partners"}}), both, both},
		"one for another pool":      {advertises(map[string]any{"ipAddressPools": []any{"x"}}), nil, nil},
		"one that chooses by label": {advertises(map[string]any{"ipAddressPools": []any{"x"}, "ipAddressPoolSelectors": []any{map[string]any{}}}), both, both},
		"one of another form":       {advertises(map[string]any{"ipAddressPools": "x"}), both, both},
		"before MetalLB 0.14.9": {func(b *Book) {
			b.Set(L2Advertisements, named("a"))
			b.SetService(web, both, map[string]string{FormerPoolAnnotation: "partners"})
		}, both, both},
		"all others are gone": {func(b *Book) {
			b.Set(L2Advertisements, named("a"))
			b.Set(BGPAdvertisements, named("a"))
			b.Replace(L2Advertisements, nil)
		}, both, nil},
		"two of one name": {func(b *Book) {
			b.Set(L2Advertisements, named("a"))
			b.Set(BGPAdvertisements, named("a"))
			b.Delete(L2Advertisements, types.NamespacedName{Namespace: "metallb-system", Name: "a"})
		}, both, nil},
		"one that is gone": {func(b *Book) {
			b.Set(L2Advertisements, named("a"))
			b.Delete(L2Advertisements, types.NamespacedName{Namespace: "metallb-system", Name: "a"})
		}, nil, nil},
		"the pool goes from the Service": {func(b *Book) {
			b.Set(L2Advertisements, named("a"))
			b.SetService(web, both, nil)
		}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBook()
			b.SetService(web, both, map[string]string{PoolAnnotation: "partners"})
			b.SetService(db, []netip.Addr{other}, nil) // of another load balancer
			test.change(b)
			read{Balanced: all, Reserved: test.want, Layer2: test.layer2}.expect(t, b)
		})
	}
}

func TestBook_SetService(t *testing.T) {
	b := NewBook()
	for i, c := range []struct {
		addresses []netip.Addr
		pool      string
		changed   bool
	}{
		{nil, "", false}, {nil, "partners", false}, {[]netip.Addr{v4}, "", true}, {[]netip.Addr{v4}, "", false}, {[]netip.Addr{v4}, "partners", true},
		{[]netip.Addr{v4, v6}, "partners", true}, {nil, "partners", true}, {nil, "", false},
	} {
		if got := b.SetService(web, c.addresses, map[string]string{PoolAnnotation: c.pool}); got != c.changed {
			t.Errorf("change %d, to %v of %q: %v, want %v", i, c.addresses, c.pool, got, c.changed)
		}
	}
	if len(b.services) > 0 {
		t.Errorf("it still has %v", b.services)
	}
}
