package holders

import (
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestChoosing_Errors(t *testing.T) {
	pod, other := addr("10.128.0.11"), addr("fd00:10:128::11")
	some := map[string]map[netip.Addr]netip.Addr{"shop/web": {pod: ips[0]}}
	const good = `"10.128.0.11": "203.0.113.10"`
	for name, test := range map[string]struct {
		text string
		want map[string]map[netip.Addr]netip.Addr
		err  string // part of the error; empty if there is none
	}{
		"both families":         {`{"shop/web": {` + good + `, "fd00:10:128::11": "2001:db8::1"}}`, map[string]map[netip.Addr]netip.Addr{"shop/web": {pod: ips[0], other: addr("2001:db8::1")}}, ""},
		"two Services":          {`{"shop/web": {` + good + `}, "shop/db": {` + good + `}}`, map[string]map[netip.Addr]netip.Addr{"shop/web": {pod: ips[0]}, "shop/db": {pod: ips[0]}}, ""},
		"nothing":               {`{}`, map[string]map[netip.Addr]netip.Addr{}, ""},
		"no JSON":               {`{` + good, nil, "is not JSON"},
		"no object":             {`[]`, nil, "no JSON object"},
		"a Service's no object": {`{"shop/web": {` + good + `}, "shop/db": 1}`, some, `["shop/db"]: "1" is no JSON object`},
		"no pod's address":      {`{"shop/web": {` + good + `, "web-0": "203.0.113.10"}}`, some, `["shop/web"]["web-0"]: not an IP address`},
		"a list":                {`{"shop/web": {` + good + `, "10.128.0.12": ["203.0.113.10"]}}`, some, "not an IP address"},
		"null":                  {`{"shop/web": {` + good + `, "10.128.0.12": null}}`, some, "not an IP address"},
		"no address":            {`{"shop/web": {` + good + `, "10.128.0.12": "web"}}`, some, `"web": not an IP address`},
		"of the other family":   {`{"shop/web": {` + good + `, "10.128.0.12": "2001:db8::1"}}`, some, "not of the pod's IP family"},
		"a zone":                {`{"shop/web": {"fd00:10:128::11": "fe80::1%eth0", ` + good + `}}`, some, "a zone"},
		"IPv4 in IPv6 form":     {`{"shop/web": {"fd00:10:128::11": "::ffff:203.0.113.10", ` + good + `}}`, some, "write 203.0.113.10"},
		"many errors":           {`{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "shop/web": {` + good + `}}`, some, "2 more errors"},
		"long and meaningless":  {`{"` + strings.Repeat("x", 1000) + `": 1, "shop/web": {` + good + `}}`, some, `xxx"]: "1" is no JSON object`},
	} {
		got, err := Choosing(leaseWith(map[string]string{ChoicesAnnotation: test.text}))
		if diff := cmp.Diff(test.want, got, compare); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if (err != nil) != (test.err != "") || err != nil && (!strings.Contains(err.Error(), test.err) || len(err.Error()) > 1000) {
			t.Errorf("%s: %v, want %q", name, err, test.err)
		}
	}
	if got, err := Choosing(leaseWith(nil)); got != nil || err != nil {
		t.Errorf("a Lease without the annotation says %v, %v", got, err)
	}
}

// TestWatch_TellsChoices when they change, and not when a Lease is renewed. What cannot be read takes nothing back, nor does a Lease that
// is deleted: its node writes it again.
func TestWatch_TellsChoices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chosen := map[string]map[netip.Addr]netip.Addr{"shop/web": {addr("10.128.0.11"): ips[0]}}
		a := announcement{node: "node-a", Published: Published{Choices: chosen}}
		s := newAPIServer(t, a.lease("origin-node", start))
		var l told
		go s.leases().Watch(s.ctx, l.tell)
		time.Sleep(time.Second)
		announced := func(at time.Time) Event {
			return Announced{"node-a", Statement{Addresses: map[netip.Addr]uint64{}}, Lease, at}
		}
		l.tells(t, "at the start", announced(start), Chosen{"node-a", chosen}, LeasesKnown{})
		leases := s.CoordinationV1().Leases("origin-node")
		update := func(a announcement, text string) {
			t.Helper()
			lease := a.lease("origin-node", start.Add(time.Minute))
			if text != "" {
				lease.Annotations[ChoicesAnnotation] = text
			}
			if _, err := leases.Update(s.ctx, lease, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		update(a, "")
		l.tells(t, "a renewal", announced(start.Add(time.Minute)))
		update(a, "nonsense")
		l.tells(t, "nonsense", announced(start.Add(time.Minute)))
		update(announcement{node: "node-a"}, "")
		l.tells(t, "nothing is chosen", announced(start.Add(time.Minute)), Chosen{Node: "node-a"})
		if err := leases.Delete(s.ctx, "node-a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		l.tells(t, "deleted", LeaseDeleted{"node-a"})
		if _, err := leases.Create(s.ctx, a.lease("origin-node", start), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		l.tells(t, "made anew", announced(start), Chosen{"node-a", chosen})
		if log := s.logged(); len(log) != 1 || !strings.Contains(log[0], ChoicesAnnotation) {
			t.Errorf("logged %q, want one line that names the field", log)
		}
	})
}

// TestPublisher_PublishesChoices also without an address, and again when somebody has deleted the Lease.
func TestPublisher_PublishesChoices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t)
		p := newPublishing(s.leases(), me)
		go p.Run(s.ctx)
		p.Rewrite()
		s.made("nothing said, and the Lease is deleted")
		chosen := map[string]map[netip.Addr]netip.Addr{"shop/web": {addr("10.128.0.11"): ips[0]}}
		p.set(Published{Statement: Statement{Revision: 1}, Choices: chosen, NodeUID: "uid-1"})
		s.made("a choice", "patch", "create")
		if got, err := Choosing(s.lease()); err != nil || !cmp.Equal(chosen, got, compare) {
			t.Errorf("the Lease says %v, %v", got, err)
		}
		p.set(Published{Statement: Statement{Revision: 1}, Choices: map[string]map[netip.Addr]netip.Addr{"shop/web": {addr("10.128.0.11"): ips[0]}}, NodeUID: "uid-1"})
		s.made("the same again")
		time.Sleep(time.Minute)
		s.made("nothing to renew")
		if err := s.CoordinationV1().Leases("origin-node").Delete(s.ctx, me, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		s.wrote()
		p.Rewrite()
		s.made("it is deleted", "patch", "create")
		p.set(Published{Statement: Statement{Revision: 1}, NodeUID: "uid-1"})
		s.made("no choice any more", "patch")
		if text, given := s.lease().Annotations[ChoicesAnnotation]; given {
			t.Errorf("%q is left", text)
		}
	})
}
