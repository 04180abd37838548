package iptables

import (
	"errors"
	"testing"

	"github.com/openshift/origin-node/pkg/kernel"
)

// TestLegacyTable_EntryWithoutEnd: a table that cannot be read to its end is no shorter table.
func TestLegacyTable_EntryWithoutEnd(t *testing.T) {
	for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
		table := legacyTable{entryLayout: entryLayoutOf(family), entries: make([]byte, 1000)}
		if err := table.index(); !errors.Is(err, errNoEnd) {
			t.Errorf("%s: index returned %v, want %v", family, err, errNoEnd)
		}
		if _, err := table.hash(); !errors.Is(err, errNoEnd) {
			t.Errorf("%s: hash returned %v, want %v", family, err, errNoEnd)
		}
	}
}
