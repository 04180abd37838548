package sourceports

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/kernel"
)

// TestOpenJournal_TellsByEvents what is wrong with it, and when that is over.
func TestOpenJournal_TellsByEvents(t *testing.T) {
	logger, ctx := logr.Discard(), t.Context()
	type event struct {
		reason plan.Reason
		note   string
	}
	events := make(chan event, 10)
	tell := func(reason plan.Reason, note string) { events <- event{reason, note} }
	expect := func(reason plan.Reason, note string) {
		t.Helper()
		select {
		case got := <-events:
			if got.reason != reason || !strings.Contains(got.note, note) {
				t.Errorf("got %+v, want %s with %q", got, reason, note)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("no Event; want %s", reason)
		}
	}
	// A journal that was cut.
	folder := filepath.Join(t.TempDir(), "state", "journal")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "00000001.journal")
	if err := os.WriteFile(file, []byte("origin-node-journal 1 node-1 2026-11-20T02:00:00.000Z -\n2026-11-20T03:00"), 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := openJournal(Journal{Folder: folder, Size: 1 << 20}, "node-1", Config{Logger: logger, WarnNode: tell, TellNode: tell})
	if err != nil {
		t.Fatal(err)
	}
	expect(journalDamaged, file+": the last line was not whole")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}

	// One whose folder cannot be made, for the one above is a link to nowhere.
	link := filepath.Join(t.TempDir(), "link")
	target := filepath.Join(t.TempDir(), "disk")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	j, err = openJournal(Journal{Folder: filepath.Join(link, "journal"), Size: 1 << 20}, "node-1", Config{Logger: logger, WarnNode: tell, TellNode: tell})
	if err != nil {
		t.Fatal(err)
	}
	expect(journalFailing, "Pods start all the same: ")
	a := portblocks.Assignment{
		Pod: portblocks.Pod{Namespace: "shop", Name: "web-0", UID: "uid", IP: netip.MustParseAddr("10.128.0.11")}, EgressIP: netip.MustParseAddr("203.0.113.10"),
		Ports: kernel.Ports{First: 1024, Last: 1535}, Node: "node-1", Since: time.Now(),
	}
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if err := j.Assigned(short, a); err == nil {
		t.Error("it says that it is on the disk")
	}
	if err := os.Mkdir(target, 0o700); err != nil { // the disk is mounted
		t.Fatal(err)
	}
	expect(journalWritten, "is up to date")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}
