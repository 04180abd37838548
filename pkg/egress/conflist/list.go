package conflist

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/containernetworking/cni/pkg/version"
	"golang.org/x/sys/unix"
)

// DefaultFolder is where runtimes look for lists unless they are told otherwise.
const DefaultFolder = "/etc/cni/net.d"

// ErrNone means that a folder has no configuration of a network, so that no pod can start.
var ErrNone = errors.New("there is no configuration of a network")

// ErrSingle means that the first file of a folder configures one plugin, to which nothing can be added.
var ErrSingle = errors.New("the container runtime uses this file, which configures a single plugin, so no other can be added to it; if it is Multus, add the plugin to the .conflist that Multus uses, else make the file a .conflist")

// ErrReplaced means that somebody else has written the list meanwhile.
var ErrReplaced = errors.New("the list was replaced meanwhile")

// List is a list of plugins as it was read.
type List struct {
	// Path is the file's, without symbolic links.
	Path string
	// Versions are those that its plugins may be called with: see [versions].
	Versions []string
	// Plugins are their entries.
	Plugins []json.RawMessage

	all     map[string]json.RawMessage
	content []byte
	info    os.FileInfo // for its mode and owner
}

// Find returns the list that runtimes take from a folder, which is the first file by name. The error is ErrNone if there
// is no file, ErrSingle if that is no list.
func Find(folder string) (List, error) {
	entries, err := readFolder(folder)
	if err != nil {
		return List{}, err
	}
	for _, entry := range entries {
		switch filepath.Ext(entry.Name()) {
		case ".conflist":
			return Read(filepath.Join(folder, entry.Name()))
		case ".conf", ".json":
			return List{}, fmt.Errorf("%s: %w", filepath.Join(folder, entry.Name()), ErrSingle)
		}
	}
	return List{}, fmt.Errorf("%s: %w", folder, ErrNone)
}

// All returns all lists of a folder, also those that no runtime takes from there. Files that cannot be read are in err.
func All(folder string) (all []List, err error) {
	entries, err := readFolder(folder)
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".conflist" {
			continue
		}
		list, unreadable := Read(filepath.Join(folder, entry.Name()))
		if unreadable != nil {
			err = errors.Join(err, unreadable)
			continue
		}
		all = append(all, list)
	}
	return all, err
}

// readFolder returns what is in a folder, sorted by name; nothing if there is no folder.
func readFolder(folder string) ([]os.DirEntry, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entries, err
}

// Read returns the list in a file.
func Read(path string) (List, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return List{}, err
	}
	l := List{Path: path}
	if l.info, err = os.Stat(path); err != nil {
		return List{}, err
	}
	if l.content, err = os.ReadFile(path); err != nil {
		return List{}, err
	}
	known := struct {
		CNIVersion  string            `json:"cniVersion"`
		CNIVersions []string          `json:"cniVersions"`
		Plugins     []json.RawMessage `json:"plugins"`
	}{}
	if err := errors.Join(json.Unmarshal(l.content, &l.all), json.Unmarshal(l.content, &known)); err != nil {
		return List{}, fmt.Errorf("%s: %w", path, err)
	}
	l.Versions, l.Plugins = versions(known.CNIVersion, known.CNIVersions), known.Plugins
	return l, nil
}

// versions returns the one that runtimes before CNI 1.1 take from a list, which know cniVersion alone, and the one that others
// take: the highest of both keys that they know (libcni.NetworkConfFromBytes).
func versions(one string, several []string) []string {
	highest := one
	for _, v := range several {
		if higher, err := version.GreaterThan(v, highest); higher || err != nil {
			highest = v
		}
	}
	return slices.Compact([]string{one, highest})
}

// Entry returns a plugin's entry, or nil if the list has none.
func (l List) Entry(plugin string) json.RawMessage {
	if i := slices.IndexFunc(l.Plugins, isOf(plugin)); i >= 0 {
		return l.Plugins[i]
	}
	return nil
}

func isOf(plugin string) func(json.RawMessage) bool {
	return func(entry json.RawMessage) bool { return typeOf(entry) == plugin }
}

// typeOf returns the name of an entry's plugin; empty if it has none.
func typeOf(entry json.RawMessage) string {
	var is struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(entry, &is); err != nil {
		return ""
	}
	return is.Type
}

// Lacks returns a plugin of the list whose file is in none of these folders; empty if all are there.
func (l List) Lacks(folders ...string) string {
	for _, entry := range l.Plugins {
		has := func(folder string) bool {
			_, err := os.Stat(filepath.Join(folder, typeOf(entry)))
			return !errors.Is(err, fs.ErrNotExist)
		}
		if !slices.ContainsFunc(folders, has) {
			return typeOf(entry)
		}
	}
	return ""
}

// Append writes the list with one more plugin at its end.
func (l List) Append(entry json.RawMessage) error {
	return l.write(append(slices.Clone(l.Plugins), entry))
}

// Replace writes the list, which has a plugin, with another entry for it.
func (l List) Replace(plugin string, entry json.RawMessage) error {
	plugins := slices.Clone(l.Plugins)
	plugins[slices.IndexFunc(plugins, isOf(plugin))] = entry
	return l.write(plugins)
}

// Remove writes the list without a plugin.
func (l List) Remove(plugin string) error {
	return l.write(slices.DeleteFunc(slices.Clone(l.Plugins), isOf(plugin)))
}

func (l List) write(plugins []json.RawMessage) (err error) {
	all := maps.Clone(l.all)
	if all["plugins"], err = encode(plugins); err != nil {
		return err
	}
	content, err := encode(all)
	if err != nil {
		return err
	}
	if err := l.replace(content); err != nil {
		return fmt.Errorf("writing %s: %w", l.Path, err)
	}
	return nil
}

// encode is json.MarshalIndent, but leaves text as it is.
func encode(v any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(v)
	return text.Bytes(), err
}

// unfinished is the name of a list that is being written. Runtimes read no file with this name. It is always the same, so
// that the next writer removes what one that was killed has left, and a failure has the same words each time. Only the
// writer that has locked the folder uses it.
const unfinished = ".origin-node-unfinished"

const (
	// lockPatience is how long another writer may take: it holds the lock for milliseconds, unless it is stopped.
	lockPatience = 5 * time.Second
	lockPoll     = time.Millisecond
)

// lock locks a folder for one writer of its lists at a time, among all processes, until the file is closed. The kernel ends
// the lock of a process that is killed. Whoever may read the folder can keep the lock, so there is an end to the wait.
func lock(folder string) (*os.File, error) {
	file, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(lockPatience); ; time.Sleep(lockPoll) {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return file, nil
		case !errors.Is(err, unix.EWOULDBLOCK):
			return nil, errors.Join(fmt.Errorf("locking %s: %w", folder, err), file.Close())
		case time.Now().After(deadline):
			return nil, errors.Join(fmt.Errorf("another process has kept the folder %s locked for %s; find it with lslocks, and end it: %w", folder, lockPatience, err), file.Close())
		}
	}
}

// replace writes the file as a whole, unless it is no longer what was read.
func (l List) replace(content []byte) (err error) {
	folder := filepath.Dir(l.Path)
	locked, err := lock(folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, locked.Close()) }()
	path := filepath.Join(folder, unfinished)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	_, err = file.Write(content)
	err = errors.Join(err, file.Chmod(l.info.Mode().Perm()), l.chown(file), file.Sync(), file.Close())
	if err != nil {
		return err
	}
	now, err := os.ReadFile(l.Path) // last, because the network plugin takes no lock
	if err != nil {
		return err
	}
	if !bytes.Equal(now, l.content) {
		return ErrReplaced
	}
	return os.Rename(path, l.Path)
}

// chown gives a file the owner of the list, if it has another.
func (l List) chown(file *os.File) error {
	owner, ok := l.info.Sys().(*syscall.Stat_t)
	if !ok || int(owner.Uid) == os.Geteuid() && int(owner.Gid) == os.Getegid() {
		return nil
	}
	err := file.Chown(int(owner.Uid), int(owner.Gid))
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("the list belongs to %d:%d, and this process may not give the new file to them: run 'chown root:root %s'", owner.Uid, owner.Gid, l.Path)
	}
	return err
}
