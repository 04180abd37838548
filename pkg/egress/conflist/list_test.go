package conflist

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/containernetworking/cni/libcni"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/hack/lab"
)

const flannel = `{"name": "cbr0", "cniVersion": "0.3.1", "unknown": 12345678901234567890, "plugins": [
	{"type": "flannel", "delegate": {"hairpinMode": true, "text": "<&>"}}, {"type": "portmap", "capabilities": {"portMappings": true}}]}`

var entry = json.RawMessage(`{"type": "origin-node-cni", "waitSeconds": 20}`)

func write(t *testing.T, folder, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o640); err != nil {
		t.Fatal(err)
	}
}

// types are those of the plugins that a runtime calls.
func types(t *testing.T, file string) (types string) {
	t.Helper()
	list, err := libcni.ConfListFromFile(file)
	if err != nil {
		t.Error(err)
		return ""
	}
	for _, plugin := range list.Plugins {
		types += plugin.Network.Type + " "
	}
	return types
}

// TestList_AppendAndRemove change nothing else, and a runtime reads the result.
func TestList_AppendAndRemove(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "10-flannel.conflist", flannel)
	file := filepath.Join(folder, "10-flannel.conflist")
	l, err := Find(folder)
	if err != nil || !slices.Equal(l.Versions, []string{"0.3.1"}) || l.Entry("origin-node-cni") != nil {
		t.Fatalf("list %+v, err %v", l, err)
	}
	if err := l.Append(entry); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, kept := range []string{"12345678901234567890", "<&>", "portMappings", `"waitSeconds": 20`} {
		if !strings.Contains(string(content), kept) {
			t.Errorf("%s is lost:\n%s", kept, content)
		}
	}
	if got := types(t, file); got != "flannel portmap origin-node-cni " {
		t.Errorf("plugins %s", got)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, err %v", info.Mode(), err)
	}
	if l, err = Find(folder); err != nil || l.Entry("origin-node-cni") == nil {
		t.Fatalf("list %+v, err %v", l, err)
	}
	if err := l.Remove("origin-node-cni"); err != nil {
		t.Fatal(err)
	}
	if got := types(t, file); got != "flannel portmap " {
		t.Errorf("plugins %s", got)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("files %v, err %v", entries, err)
	}
}

// TestList_Replaced: what somebody else has just written is not overwritten.
func TestList_Replaced(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "10-flannel.conflist", flannel)
	l, err := Find(folder)
	if err != nil {
		t.Fatal(err)
	}
	write(t, folder, "10-flannel.conflist", strings.Replace(flannel, "cbr0", "cbr1", 1)+" ")
	if err := l.Append(entry); !errors.Is(err, ErrReplaced) {
		t.Errorf("err %v", err)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("files %v, err %v", entries, err)
	}
}

// TestList_SymbolicLink: the link stays one.
func TestList_SymbolicLink(t *testing.T) {
	folder, elsewhere := t.TempDir(), t.TempDir()
	write(t, elsewhere, "list", flannel)
	link := filepath.Join(folder, "10.conflist")
	if err := os.Symlink(filepath.Join(elsewhere, "list"), link); err != nil {
		t.Fatal(err)
	}
	l, err := Find(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Append(entry); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("%v, err %v", info, err)
	}
	if got := types(t, link); got != "flannel portmap origin-node-cni " {
		t.Errorf("plugins %s", got)
	}
}

// TestList_OfAnotherUser: a process that may give files to nobody says what to do.
func TestList_OfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		lab.Lacks(t, "needs root, to give a file to another user")
	}
	folder := t.TempDir()
	write(t, folder, "10-flannel.conflist", flannel)
	file := filepath.Join(folder, "10-flannel.conflist")
	if err := os.Chown(file, 0, 65534); err != nil {
		t.Fatal(err)
	}
	l, err := Find(folder)
	if err != nil {
		t.Fatal(err)
	}
	denied := make(chan error)
	go func() {
		runtime.LockOSThread() // which ends with the goroutine, and what it may do with it
		header, may := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
		err := unix.Capget(&header, &may[0])
		may[0].Effective &^= 1 << unix.CAP_CHOWN
		if err = errors.Join(err, unix.Capset(&header, &may[0])); err == nil {
			err = l.Append(entry)
		}
		denied <- err
	}()
	if err := <-denied; err == nil || !strings.Contains(err.Error(), "0:65534") || !strings.Contains(err.Error(), "chown root:root "+file) {
		t.Errorf("err %v", err)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("files %v, err %v", entries, err)
	}
	if err := l.Append(entry); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Sys().(*syscall.Stat_t).Gid != 65534 {
		t.Errorf("%v, err %v", info, err)
	}
}

// TestList_AfterAnUnfinishedOne: what a process that was killed has left does not stay.
func TestList_AfterAnUnfinishedOne(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "10-flannel.conflist", flannel)
	write(t, folder, unfinished, flannel[:40])
	l, err := Find(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Append(entry); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("files %v, err %v", entries, err)
	}
}

// TestList_SeveralWriters put a plugin each into the list and take it out again, with others that read it: nothing is lost,
// and no list is half written.
func TestList_SeveralWriters(t *testing.T) {
	const writers, rounds = 4, 25
	folder := t.TempDir()
	write(t, folder, "10-flannel.conflist", flannel)
	file := filepath.Join(folder, "10-flannel.conflist")
	change := func(plugin string, change func(List) error) {
		for {
			l, err := Find(folder)
			if err == nil {
				err = change(l)
			}
			if !errors.Is(err, ErrReplaced) && !errors.Is(err, unix.EWOULDBLOCK) { // the lock is not given in turn
				if err != nil {
					t.Errorf("%s: %v", plugin, err)
				}
				return
			}
		}
	}
	var writing, reading sync.WaitGroup
	done := make(chan struct{})
	for i := range writers {
		plugin := fmt.Sprintf("plugin-%d", i)
		writing.Go(func() {
			for range rounds {
				change(plugin, func(l List) error { return l.Remove(plugin) })
				change(plugin, func(l List) error { return l.Append(json.RawMessage(`{"type": "` + plugin + `"}`)) })
			}
		})
	}
	reading.Go(func() {
		for {
			if got := types(t, file); !strings.HasPrefix(got, "flannel portmap ") {
				t.Errorf("plugins %s", got)
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	writing.Wait()
	close(done)
	reading.Wait()
	got := types(t, file)
	for i := range writers {
		if plugin := fmt.Sprintf("plugin-%d ", i); strings.Count(got, plugin) != 1 {
			t.Errorf("plugins %s, expected %sonce", got, plugin)
		}
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("files %v, err %v", entries, err)
	}
}

// TestList_LockedForLong: a writer that is stopped holds nobody else up for long, who then says what is locked.
func TestList_LockedForLong(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "10-flannel.conflist", flannel)
	l, err := Find(folder)
	if err != nil {
		t.Fatal(err)
	}
	stopped, err := lock(folder)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		if err := l.Append(entry); !errors.Is(err, unix.EWOULDBLOCK) || !strings.Contains(err.Error(), folder) || !strings.Contains(err.Error(), "lslocks") {
			t.Errorf("err %v, want that the folder %s is locked", err, folder)
		}
	})
	if err := stopped.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(entry); err != nil {
		t.Errorf("after that one has ended: %v", err)
	}
}

// TestAll_Lists of a folder, but for those that cannot be read.
func TestAll_Lists(t *testing.T) {
	folder := t.TempDir()
	for name, content := range map[string]string{"00.conf": `{"type": "multus"}`, "10.conflist": "{", "20.conflist": flannel, "30.conflist": flannel} {
		write(t, folder, name, content)
	}
	all, err := All(folder)
	if len(all) != 2 || err == nil || !strings.Contains(err.Error(), "10.conflist") {
		t.Errorf("lists %+v, err %v", all, err)
	}
	if all, err := All(filepath.Join(folder, "missing")); len(all) > 0 || err != nil {
		t.Errorf("lists %+v, err %v of no folder", all, err)
	}
}

// TestFind_First file by name is the one that runtimes use.
func TestFind_First(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"none", map[string]string{"README": "", ".10.conflist.tmp": flannel}, ErrNone.Error()},
		{"the first of two", map[string]string{"20.conflist": "{", "10.conflist": flannel}, ""},
		{"a single plugin's", map[string]string{"20.conflist": flannel, "00-multus.conf": `{"type": "multus"}`}, "single plugin"},
		{"half written", map[string]string{"10.conflist": flannel[:40]}, "10.conflist"},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := t.TempDir()
			for name, content := range test.files {
				write(t, folder, name, content)
			}
			_, err := Find(folder)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("err %v, expected %q", err, test.want)
			}
		})
	}
	if _, err := Find(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, ErrNone) {
		t.Errorf("err %v", err)
	}
}
