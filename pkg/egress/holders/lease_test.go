package holders

import (
	"maps"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func leaseWith(annotations map[string]string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "origin-node", Name: "node-a", Annotations: annotations}}
}

func TestReadLease_Errors(t *testing.T) {
	const good = `"203.0.113.10": {"epoch": 3}`
	some := map[netip.Addr]uint64{addr("203.0.113.10"): 3}
	long := strings.Repeat("x", 1000)
	for name, test := range map[string]struct {
		text string
		want map[netip.Addr]uint64
		errs []string // parts of the error; none if there is none
	}{
		"both families":       {`{` + good + `, "2001:db8::1": {"epoch": 1}}`, map[netip.Addr]uint64{addr("203.0.113.10"): 3, addr("2001:db8::1"): 1}, nil},
		"nothing":             {`{}`, nil, nil},
		"a later version's":   {`{"203.0.113.10": {"epoch": 3, "mac": "02:57:00:00:00:01"}}`, some, nil},
		"the largest epoch":   {`{"203.0.113.10": {"epoch": 1099511627776}}`, map[netip.Addr]uint64{addr("203.0.113.10"): MaxEpoch}, nil},
		"no JSON":             {`{` + good, nil, []string{"is not JSON"}},
		"two objects":         {`{` + good + `}{}`, nil, []string{"is not JSON"}},
		"empty":               {``, nil, []string{"is not JSON"}},
		"no object":           {`["203.0.113.10"]`, nil, []string{"no JSON object"}},
		"null":                {`null`, nil, []string{"no JSON object"}},
		"no address":          {`{` + good + `, "web": {"epoch": 1}}`, some, []string{`["web"]: not an IP address`}},
		"a network":           {`{` + good + `, "203.0.113.0/24": {"epoch": 1}}`, some, []string{`["203.0.113.0/24"]: not an IP address`}},
		"leading zeros":       {`{` + good + `, "203.0.113.011": {"epoch": 1}}`, some, []string{`["203.0.113.011"]: not an IP address`}},
		"a zone":              {`{` + good + `, "fe80::1%eth0": {"epoch": 1}}`, some, []string{`["fe80::1%eth0"]: an address with a zone`}},
		"IPv4-mapped":         {`{` + good + `, "::ffff:203.0.113.11": {"epoch": 1}}`, some, []string{"write 203.0.113.11"}},
		"no epoch":            {`{` + good + `, "203.0.113.11": {}}`, some, []string{`["203.0.113.11"]: {}: the epoch must be from 1 to 1099511627776`}},
		"epoch 0":             {`{` + good + `, "203.0.113.11": {"epoch": 0}}`, some, []string{"must be from 1"}},
		"a large epoch":       {`{` + good + `, "203.0.113.11": {"epoch": 1099511627777}}`, some, []string{"must be from 1"}},
		"a negative epoch":    {`{` + good + `, "203.0.113.11": {"epoch": -1}}`, some, []string{`["203.0.113.11"]`}},
		"a fraction":          {`{` + good + `, "203.0.113.11": {"epoch": 1.5}}`, some, []string{`["203.0.113.11"]`}},
		"a text":              {`{` + good + `, "203.0.113.11": {"epoch": "1"}}`, some, []string{`["203.0.113.11"]`}},
		"a bare number":       {`{` + good + `, "203.0.113.11": 1}`, some, []string{`["203.0.113.11"]`}},
		"twice":               {`{"203.0.113.11": {"epoch": 1}, ` + good + `, "203.0.113.11": {"epoch": 2}}`, some, []string{`["203.0.113.11"]: the address is there twice`}},
		"twice, in two forms": {`{"2001:db8::1": {"epoch": 1}, ` + good + `, "2001:DB8:0::1": {"epoch": 1}}`, some, []string{`["2001:DB8:0::1"]: the address is there twice`}},
		"three times":         {`{"203.0.113.11": {"epoch": 1}, ` + good + `, "203.0.113.11": {"epoch": 2}, "203.0.113.11": {"epoch": 3}}`, some, []string{"twice"}},
		"a long one":          {`{` + good + `, "` + long + `": 1}`, some, []string{`["xxx`}},
		"many errors":         {`{"a":1,"b":1,"c":1,"d":1,"e":1,` + good + `}`, some, []string{`["a"]`, `["b"]`, `["c"]`, "2 more errors"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readLease(leaseWith(map[string]string{Annotation: test.text}))
			if diff := cmp.Diff(test.want, got.Addresses, compare); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (err != nil) != (test.errs != nil) {
				t.Fatalf("error %v, want one with %q", err, test.errs)
			}
			if err == nil {
				return
			}
			for _, want := range append(test.errs, "Lease origin-node/node-a: metadata.annotations["+Annotation+"]") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %v lacks %q", err, want)
				}
			}
			if len(err.Error()) > 1000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestReadLease_Revision(t *testing.T) {
	for text, want := range map[string]uint64{"0": 0, "4398046511104": maxRevision} {
		if got, err := readLease(leaseWith(map[string]string{RevisionAnnotation: text})); got.Revision != want || err != nil {
			t.Errorf("%s: got %d, %v", text, got.Revision, err)
		}
	}
	for _, text := range []string{"", "-1", "1.5", "4398046511105", "18446744073709551615", "18446744073709551616"} {
		got, err := readLease(leaseWith(map[string]string{Annotation: `{"203.0.113.10": {"epoch": 3}}`, RevisionAnnotation: text}))
		if err == nil || !strings.Contains(err.Error(), RevisionAnnotation) || got.Addresses[addr("203.0.113.10")] != 3 || got.Revision != 0 {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
}

func TestReadLease_WithoutAnnotation(t *testing.T) {
	if got, err := readLease(leaseWith(nil)); !got.equal(Statement{}) || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestReadLease_ReadsWhatIsWritten, and what is written is the same for the same addresses.
func TestReadLease_ReadsWhatIsWritten(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 4))
	for range 200 {
		a := announcement{node: "node-a", Published: Published{Statement: Statement{Addresses: map[netip.Addr]uint64{}, Revision: r.Uint64N(maxRevision)}}}
		for range r.IntN(5) {
			bytes := [16]byte{0: 0x20, 15: byte(r.IntN(9))}
			a.Addresses[netip.AddrFrom16(bytes)] = 1 + r.Uint64N(MaxEpoch)
			a.Addresses[netip.AddrFrom4([4]byte{203, 0, 113, byte(r.IntN(9))})] = 1 + r.Uint64N(MaxEpoch)
		}
		got, err := readLease(a.lease("origin-node", time.Now()))
		if diff := cmp.Diff(a.Statement, got, compare); diff != "" || err != nil {
			t.Fatalf("%v (-want +got):\n%s", err, diff)
		}
		b := announcement{node: "node-a", Published: Published{Statement: Statement{maps.Clone(a.Addresses), a.Revision}}}
		if !maps.Equal(a.annotations(), b.annotations()) {
			t.Fatalf("%s is written as %s as well", a.annotations(), b.annotations())
		}
	}
}

// TestAssigning_Nothing: that a node's pods have nothing any more is said with a revision, for what is said directly may be newer; a node that
// never said anything has none.
func TestAssigning_Nothing(t *testing.T) {
	for _, revision := range []uint64{0, 6} {
		lease := announcement{node: "node-a", Published: Published{AssignedRevision: revision}}.lease("origin-node", time.Now())
		if blocks, got, err := Assigning(lease); len(blocks) > 0 || got != revision || err != nil {
			t.Errorf("%d: %v, %d, %v", revision, blocks, got, err)
		}
	}
}
