package redirect

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/pkg/kernel"
)

// TestRecord_ReadBack: whatever was recorded is read back, of any size; what somebody has changed is nothing, not an error.
func TestRecord_ReadBack(t *testing.T) {
	var many kernel.Redirects
	for i := range 1000 {
		many.Nodes = append(many.Nodes, netip.AddrFrom4([4]byte{10, 1, byte(i / 250), byte(i%250 + 1)}))
	}
	many.Secure = kernel.Target{To: netip.MustParseAddrPort("[2001:db8::1]:10263"), Ports: []uint16{1, 65535}}
	for name, want := range map[string][]kernel.Redirects{
		"nothing": nil, "many": {many}, "several": {many, {Others: true, Insecure: kernel.Target{To: netip.MustParseAddrPort("192.0.2.1:2"), Ports: []uint16{9100}}}},
	} {
		parts := encode(want)
		for _, part := range parts {
			if len(part) > 255 {
				t.Errorf("%s: a part has %d bytes", name, len(part))
			}
		}
		if diff := cmp.Diff(want, decode(parts), cmp.Comparer(kernel.Redirects.Equal)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if len(parts) > 0 && decode(parts[1:]) != nil {
			t.Errorf("%s: a record without its first part is read", name)
		}
	}
	if got := decode([]string{"somebody", "else's"}); got != nil {
		t.Errorf("%v is made of what nobody has recorded", got)
	}
}
