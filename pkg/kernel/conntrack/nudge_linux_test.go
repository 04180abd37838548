package conntrack

import (
	"encoding/hex"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestNudgeFrom_IsAPacket as the wire has it, written out by hand; hack/netns sends them to real connections.
func TestNudgeFrom_IsAPacket(t *testing.T) {
	for _, test := range []struct{ from, to, header, segment string }{
		{"198.51.100.9:443", "10.128.0.5:40000", "45000028" + "00000000" + "40060000" + "c6336409" + "0a800005", "01bb9c40" + "00000000" + "00000000" + "50120000" + "dd15" + "0000"},
		{"[2001:db8:100::9]:443", "[fd00:10:128::5]:40000", "60000000" + "00140640" + "20010db8010000000000000000000009" + "fd000010012800000000000000000005", "01bb9c40" + "00000000" + "00000000" + "50120000" + "e4d7" + "0000"},
	} {
		got := hex.EncodeToString(nudgeFrom(netip.MustParseAddrPort(test.from), netip.MustParseAddrPort(test.to)))
		if diff := cmp.Diff(test.header+test.segment, got); diff != "" {
			t.Errorf("%s to %s (-want +got):\n%s", test.from, test.to, diff)
		}
	}
}

// TestPieces_AreAnsweredByAll: in no second more are asked than the kernel lets answer, also by the first nudge, or for the other IP family.
func TestPieces_AreAnsweredByAll(t *testing.T) {
	for _, test := range []struct {
		sources, limit, size int
		pause                time.Duration
	}{
		{1, 1000, 250, answersAgain},
		{125, 1000, 250, answersAgain}, // with the first nudge and the other IP family, 500 in a second
		{126, 1000, 250, moreAnswers},
		{100_000, 1<<31 - 1, 1<<29 - 1, answersAgain},
		{2, 0, 1, moreAnswers},
	} {
		if size, pause := pieces(test.sources, test.limit); size != test.size || pause != test.pause {
			t.Errorf("%d sources, limit %d: %d at once after %v, want %d after %v", test.sources, test.limit, size, pause, test.size, test.pause)
		}
	}
}
