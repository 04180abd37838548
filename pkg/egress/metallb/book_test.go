package metallb

import (
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

const me = "node-b"

var (
	web, db = types.NamespacedName{Namespace: "shop", Name: "web"}, types.NamespacedName{Namespace: "shop", Name: "db"}
	v4, v6  = netip.MustParseAddr("203.0.113.10"), netip.MustParseAddr("2001:db8::10")
	other   = netip.MustParseAddr("203.0.113.20")
)

// announces are the labels of a status.
func announces(node string, service types.NamespacedName) map[string]string {
	return map[string]string{NodeLabel: node, ServiceLabel: service.Name, NamespaceLabel: service.Namespace}
}

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "metallb-system", Name: name}
}

// read is what a Book says, in comparable form.
type read struct {
	Here, Balanced, Reserved []netip.Addr
	Wake                     time.Time
}

func reading(b *Book, now time.Time) read {
	r := b.Read(me, now)
	sorted := func(set map[netip.Addr]bool) []netip.Addr {
		return slices.SortedFunc(maps.Keys(set), netip.Addr.Compare)
	}
	return read{r.Here, sorted(r.Balanced), sorted(r.Reserved), r.Wake}
}

func TestBook_Read(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	both, all := []netip.Addr{v4, v6}, []netip.Addr{v4, other, v6}
	for name, test := range map[string]struct {
		change func(*Book)
		want   read
	}{
		"nothing":                 {func(*Book) {}, read{}},
		"nobody announces":        {func(b *Book) { b.SetService(web, both) }, read{Balanced: both}},
		"this node announces":     {func(b *Book) { b.SetService(web, both); b.SetStatus(named("a"), announces(me, web)) }, read{Here: both, Balanced: both, Reserved: both}},
		"another node announces":  {func(b *Book) { b.SetService(web, both); b.SetStatus(named("a"), announces("node-a", web)) }, read{Balanced: both, Reserved: both}},
		"the status comes first":  {func(b *Book) { b.SetStatus(named("a"), announces(me, web)); b.SetService(web, both) }, read{Here: both, Balanced: both, Reserved: both}},
		"a Service without a one": {func(b *Book) { b.SetStatus(named("a"), announces(me, web)) }, read{}},
		"two statuses of a node": {func(b *Book) {
			b.SetService(web, both)
			b.SetStatus(named("a"), announces(me, web))
			b.SetStatus(named("b"), announces(me, web))
		}, read{Here: both, Balanced: both, Reserved: both}},
		"two nodes for a moment": {func(b *Book) {
			b.SetService(web, both)
			b.SetStatus(named("a"), announces("node-a", web))
			b.SetStatus(named("b"), announces(me, web))
		}, read{Here: both, Balanced: both, Reserved: both}},
		"a status is taken over by another node": {func(b *Book) {
			b.SetService(web, both)
			b.SetStatus(named("a"), announces(me, web))
			b.SetStatus(named("a"), announces("node-a", web))
		}, read{Balanced: both, Reserved: both}},
		"Services of different nodes": {func(b *Book) {
			b.SetService(web, both)
			b.SetService(db, []netip.Addr{other})
			b.SetStatus(named("a"), announces("node-a", web))
			b.SetStatus(named("b"), announces(me, db))
		}, read{Here: []netip.Addr{other}, Balanced: all, Reserved: all}},
		"two Services that share an address": {func(b *Book) {
			b.SetService(web, []netip.Addr{v4})
			b.SetService(db, []netip.Addr{v4})
			b.SetStatus(named("a"), announces(me, web))
			b.SetStatus(named("b"), announces(me, db))
			b.DeleteStatus(named("b"))
		}, read{Here: []netip.Addr{v4}, Balanced: []netip.Addr{v4}, Reserved: []netip.Addr{v4}}},
		"labels are missing": {func(b *Book) {
			b.SetService(web, both)
			for _, label := range []string{NodeLabel, ServiceLabel, NamespaceLabel} {
				labels := announces(me, web)
				delete(labels, label)
				b.SetStatus(named(label), labels)
			}
		}, read{Balanced: both}},
		"the labels go": {func(b *Book) {
			b.SetService(web, both)
			b.SetStatus(named("a"), announces(me, web))
			b.SetStatus(named("a"), nil)
		}, read{Balanced: both}},
		"the Service loses an address": {func(b *Book) {
			b.SetStatus(named("a"), announces(me, web))
			b.SetService(web, both)
			b.SetService(web, []netip.Addr{v6})
		}, read{Here: []netip.Addr{v6}, Balanced: []netip.Addr{v6}, Reserved: []netip.Addr{v6}}},
		"the Service goes": {func(b *Book) {
			b.SetStatus(named("a"), announces(me, web))
			b.SetService(web, both)
			b.SetService(web, nil)
		}, read{}},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBook()
			test.change(b)
			if diff := cmp.Diff(test.want, reading(b, begin), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestBook_ReservedForAWhile: the pool does not take an address while MetalLB looks for another node.
func TestBook_ReservedForAWhile(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b := NewBook()
	b.SetService(web, []netip.Addr{v4})
	b.SetStatus(named("a"), announces("node-a", web))
	b.Read(me, begin)
	b.DeleteStatus(named("a"))
	gone := begin.Add(time.Minute)
	for _, c := range []struct {
		after    time.Duration
		reserved bool
		wake     time.Time
	}{
		{0, true, gone.Add(reservation)},
		{reservation - time.Millisecond, true, gone.Add(reservation)},
		{reservation, false, time.Time{}},
	} {
		if r := b.Read(me, gone.Add(c.after)); r.Reserved[v4] != c.reserved || !r.Wake.Equal(c.wake) {
			t.Errorf("%v after it was announced last: reserved %v, to be read at %s; want %v, %s", c.after, r.Reserved[v4], r.Wake, c.reserved, c.wake)
		}
	}
	b.SetStatus(named("b"), announces("node-c", web))
	if r := b.Read(me, gone.Add(time.Hour)); !r.Reserved[v4] || !r.Wake.IsZero() || len(b.leaving) > 0 {
		t.Errorf("announced again: %+v", r)
	}
}

func TestBook_SetService(t *testing.T) {
	b := NewBook()
	for i, c := range []struct {
		addresses []netip.Addr
		changed   bool
	}{{nil, false}, {[]netip.Addr{v4}, true}, {[]netip.Addr{v4}, false}, {[]netip.Addr{v4, v6}, true}, {nil, true}, {nil, false}} {
		if got := b.SetService(web, c.addresses); got != c.changed {
			t.Errorf("change %d to %v: %v, want %v", i, c.addresses, got, c.changed)
		}
	}
	if len(b.services) > 0 {
		t.Errorf("it still has %v", b.services)
	}
}
