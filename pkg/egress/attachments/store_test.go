package attachments

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var compareAddrs = cmpopts.EquateComparable(netip.Addr{})

func at(second int64) time.Time { return time.Unix(second, 0).UTC() }

func attachment(id, pod string, since int64, ips ...string) Attachment {
	a := Attachment{ContainerID: id, IfName: "eth0", Netns: "/run/netns/" + id, Pod: Pod{"shop", pod, "uid-" + pod}, Since: at(since)}
	for _, ip := range ips {
		a.IPs = append(a.IPs, netip.MustParseAddr(ip))
	}
	return a
}

func released(a Attachment, second int64) Attachment {
	a.Released = at(second)
	return a
}

// open opens the Store of a folder in which nothing may be wrong.
func open(t *testing.T, folder string) *Store {
	t.Helper()
	s, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func expect(t *testing.T, s *Store, want ...Attachment) {
	t.Helper()
	if diff := cmp.Diff(want, s.All(), compareAddrs, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("attachments (-want +got):\n%s", diff)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestStore_OutlivesItsProcess: the next process knows what the one before knew after each change.
func TestStore_OutlivesItsProcess(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "attachments")
	a, b := attachment("a", "web-0", 1, "10.128.0.5", "fd00::5"), attachment("b", "web-1", 2, "10.128.0.6")
	s := open(t, folder)
	reopened := func(want ...Attachment) {
		t.Helper()
		expect(t, s, want...)
		s = open(t, folder)
		expect(t, s, want...)
	}
	reopened()
	must(t, s.Put(t.Context(), a))
	must(t, s.Put(t.Context(), b))
	reopened(a, b)
	again := a
	again.Since = at(9)
	must(t, s.Put(t.Context(), again))
	reopened(a, b) // it was there all the time
	for range 2 {
		got, known, err := s.Release("a", at(3))
		if err != nil || !known || !got.Released.Equal(at(3)) {
			t.Errorf("released %v, known %v, err %v", got, known, err)
		}
	}
	reopened(released(a, 3), b)
	if _, known, err := s.Release("c", at(3)); known || err != nil {
		t.Errorf("an unknown container: known %v, err %v", known, err)
	}
	must(t, s.Forget("a"))
	must(t, s.Forget("a"))
	reopened(b)
	if info, err := os.Stat(filepath.Join(folder, "b.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, err %v", info.Mode(), err)
	}
}

// TestOpen_SetsCorruptFilesAside: they are told once, and nothing else is lost.
func TestOpen_SetsCorruptFilesAside(t *testing.T) {
	folder := t.TempDir()
	good := attachment("good", "web-0", 1, "10.128.0.5")
	must(t, open(t, folder).Put(t.Context(), good))
	for name, content := range map[string]string{
		"empty.json": "", "half.json": `{"containerID":"half","po`, "other.json": `{"containerID":"good"}`,
		"noip.json": `{"containerID":"noip","pod":{"namespace":"shop","name":"web"}}`, making + "1": "{",
	} {
		must(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	s, err := Open(folder)
	for _, name := range []string{"empty", "half", "other", "noip"} {
		if path := filepath.Join(folder, name+".json"); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("error %q, expected one that names %s", err, path)
		}
	}
	expect(t, s, good)
	expect(t, open(t, folder), good)
	if aside, _ := filepath.Glob(filepath.Join(folder, "*"+corrupt)); len(aside) != 4 {
		t.Errorf("set aside: %v", aside)
	}
	if _, err := os.Stat(filepath.Join(folder, making+"1")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that was never finished is still there: %v", err)
	}
}

// TestStore_FailedWriteChangesNothing: what is not in the folder is not in memory.
func TestStore_FailedWriteChangesNothing(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "file")
	s := open(t, folder)
	must(t, os.WriteFile(folder, nil, 0o600))
	if err := s.Put(t.Context(), attachment("a", "web-0", 1, "10.128.0.5")); err == nil {
		t.Error("an attachment was written into a file")
	}
	expect(t, s)
}

func TestStore_TakesWhatWasLeft(t *testing.T) {
	folder, left := t.TempDir(), filepath.Join(t.TempDir(), "released")
	s := open(t, folder)
	a, unknown := attachment("a", "web-0", 1, "10.128.0.5"), attachment("u", "web-9", 1, "10.128.0.9")
	must(t, s.Put(t.Context(), a))
	must(t, Leave(left, a))
	must(t, Leave(left, unknown))
	if all, err := Peek(left); err != nil || len(all) != 2 {
		t.Errorf("left %v, err %v", all, err)
	}
	taken, err := s.TakeLeft(left, at(5))
	if err != nil || len(taken) != 2 {
		t.Errorf("taken %v, err %v", taken, err)
	}
	expect(t, open(t, folder), released(a, 5), released(unknown, 5))
	if taken, err := s.TakeLeft(left, at(6)); err != nil || len(taken) != 0 {
		t.Errorf("taken again: %v, err %v", taken, err)
	}
}

// TestStore_KeepsWhenItWasLeft: a pod that is known has its addresses for a while from when the process hears of its end, which was before.
func TestStore_KeepsWhenItWasLeft(t *testing.T) {
	folder, left := t.TempDir(), filepath.Join(t.TempDir(), "released")
	s := open(t, folder)
	a := attachment("a", "web-0", 1, "10.128.0.5")
	must(t, s.Put(t.Context(), a))
	must(t, Leave(left, released(a, 3)))
	if _, err := s.TakeLeft(left, at(5)); err != nil {
		t.Fatal(err)
	}
	a.Left = at(3)
	expect(t, open(t, folder), released(a, 5))
}

// TestStore_AnAddressIsOnePods: who has it now has taken it from the one before, of whose end nobody told.
func TestStore_AnAddressIsOnePods(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder)
	before, other, now := attachment("a", "web-0", 1, "10.128.0.5", "fd00::5"), attachment("b", "web-1", 1, "10.128.0.6"), attachment("c", "web-2", 4, "10.128.0.7", "fd00::5")
	for _, a := range []Attachment{before, other, now, now} {
		must(t, s.Put(t.Context(), a))
	}
	expect(t, open(t, folder), released(before, 4), other, now)
}

// TestStore_AnInterfaceIsOnePods: some network plugins name it after the pod, so the next pod of that name has it.
func TestStore_AnInterfaceIsOnePods(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder)
	with := func(a Attachment, interfaces ...string) Attachment {
		a.Interfaces = interfaces
		return a
	}
	before, other := with(attachment("a", "web-0", 1, "10.128.0.5"), "cni0", "cali0"), with(attachment("b", "web-1", 1, "10.128.0.6"), "cali1")
	now := with(attachment("c", "web-0", 4, "10.128.0.7"), "cali0")
	without := attachment("d", "web-3", 5, "10.128.0.8")
	for _, a := range []Attachment{before, other, now, now, without} {
		must(t, s.Put(t.Context(), a))
	}
	expect(t, open(t, folder), released(before, 4), other, now, without)
}

// TestStore_ChangesHold although they cannot be written; Flush writes them.
func TestStore_ChangesHold(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "attachments")
	s, a := open(t, folder), attachment("a", "web-0", 1, "10.128.0.5")
	must(t, s.Put(t.Context(), a))
	must(t, os.RemoveAll(folder))
	must(t, os.WriteFile(folder, nil, 0o600))
	if _, known, err := s.Release("a", at(3)); !known || err == nil {
		t.Errorf("known %v, err %v", known, err)
	}
	expect(t, s, released(a, 3))
	must(t, os.Remove(folder))
	must(t, s.Flush())
	expect(t, open(t, folder), released(a, 3))
}

// TestTakeLeft_SparesWhatIsBeingWritten: the plugin may write a note at this moment.
func TestTakeLeft_SparesWhatIsBeingWritten(t *testing.T) {
	left := t.TempDir()
	file := filepath.Join(left, making+"1")
	must(t, os.WriteFile(file, nil, 0o600))
	s := open(t, t.TempDir())
	for _, step := range []struct {
		later time.Duration
		there bool
	}{{0, true}, {2 * unfinished, false}} {
		if _, err := s.TakeLeft(left, time.Now().Add(step.later)); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(file); (err == nil) != step.there {
			t.Errorf("%s later: %v", step.later, err)
		}
	}
}

// TestRemove_LeavesNothing that keeps pods waiting.
func TestRemove_LeavesNothing(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "cni.sock")
	must(t, WriteClaims(Claims(socket), []string{"shop"}))
	must(t, os.WriteFile(Entry(socket), nil, 0o600))
	must(t, open(t, Folder(socket)).Put(t.Context(), attachment("a", "web-0", 1, "10.128.0.5")))
	must(t, Leave(Released(socket), attachment("a", "web-0", 1, "10.128.0.5")))
	for range 2 {
		must(t, Remove(socket))
	}
	if left, err := os.ReadDir(filepath.Dir(socket)); len(left) != 0 || err != nil {
		t.Errorf("left %v, err %v", left, err)
	}
}

func TestByAddress_OfSeveral(t *testing.T) {
	ip := netip.MustParseAddr("10.128.0.5")
	old, young, gone := attachment("z", "web-0", 1, "10.128.0.5"), attachment("a", "web-1", 2, "10.128.0.5"), released(attachment("g", "web-2", 3, "10.128.0.5"), 4)
	for _, tt := range []struct {
		name string
		list []Attachment
		want string
	}{
		{"the latest", []Attachment{young, old}, "a"},
		{"one that has the address still", []Attachment{gone, old}, "z"},
		{"one that gave it back, if there is no other", []Attachment{gone}, "g"},
	} {
		for range 2 {
			if got := ByAddress(tt.list)[ip]; got.ContainerID != tt.want {
				t.Errorf("%s: %s, expected %s", tt.name, got.ContainerID, tt.want)
			}
			tt.list = append(tt.list[1:], tt.list[0])
		}
	}
}

func TestGone_SparesTheYoung(t *testing.T) {
	all := []Attachment{
		attachment("valid", "a", 1, "10.128.0.1"), attachment("gone", "b", 1, "10.128.0.2"),
		attachment("young", "c", 9, "10.128.0.3"), released(attachment("released", "d", 1, "10.128.0.4"), 2),
	}
	if diff := cmp.Diff([]string{"gone"}, Gone(all, []string{"valid"}, at(5))); diff != "" {
		t.Errorf("gone (-want +got):\n%s", diff)
	}
}

func TestValidateID_NamesAFile(t *testing.T) {
	for id, valid := range map[string]bool{
		"0a_b.c-D": true, strings.Repeat("a", 64): true,
		"": false, ".": false, "..": false, "../a": false, "a/b": false, "-a": false, "a\x00": false, strings.Repeat("a", 201): false,
	} {
		if err := ValidateID(id); (err == nil) != valid {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestClaims_OutliveTheirProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "origin-node", "claims")
	if _, err := ReadClaims(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before they are written: %v", err)
	}
	for _, namespaces := range [][]string{{"shop", "bank", "shop"}, {}} {
		must(t, WriteClaims(path, namespaces))
		want := map[string]bool{}
		for _, namespace := range namespaces {
			want[namespace] = true
		}
		got, err := ReadClaims(path)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("err %v (-want +got):\n%s", err, diff)
		}
	}
}

// TestWriteClaims_FailsInTheSameWords each time: what lasts is logged once.
func TestWriteClaims_FailsInTheSameWords(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "claims")
	must(t, os.Mkdir(path, 0o700)) // cannot be replaced by a file
	first, second := WriteClaims(path, nil), WriteClaims(path, nil)
	if first == nil || second == nil || first.Error() != second.Error() || !strings.Contains(first.Error(), path+":") {
		t.Errorf("%v, then %v", first, second)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("files %v, err %v", entries, err)
	}
}
