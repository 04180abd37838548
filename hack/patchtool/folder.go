package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/openshift/origin-node/hack/patchtool/branch"
)

// folder is what patches/ has, by path.
type folder map[string]string

// readFolder reads all of patches/.
func readFolder(dir string) (folder, error) {
	found := folder{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		found[name] = string(content)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the series: %w", err)
	}
	return found, nil
}

// lock keeps other runs from writing patches/ until unlock is called, or this process ends.
func lock(dir string) (unlock func(), err error) {
	file, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("find the series: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errors.New("another rebase is at work on it; wait until it has ended")
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return func() { file.Close() }, nil
}

// replace makes what dir has, which was former, into this. Whatever has changed there meanwhile is not lost:
// that is an error, and so is all else that keeps it from being written; dir is then as it was, if that
// can be done. A file is as before or as it is to be at any time, and the pinned versions come last.
func (f folder) replace(dir string, former folder) error {
	current, err := readFolder(dir)
	if err != nil {
		return err
	}
	if !maps.Equal(current, former) {
		return fmt.Errorf("%s was changed while the series was tried; nothing was written. Do it again", dir)
	}
	changed := slices.DeleteFunc(slices.Sorted(maps.Keys(f)), func(name string) bool {
		content, there := former[name]
		return name == branch.File || there && content == f[name]
	})
	for _, name := range append(changed, branch.File) {
		if err = exchange(filepath.Join(dir, name), f[name]); err != nil {
			return errors.Join(err, former.restore(dir, f))
		}
	}
	for name := range former {
		if _, there := f[name]; there {
			continue
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return errors.Join(fmt.Errorf("remove a patch: %w", err), former.restore(dir, f))
		}
		_ = syscall.Rmdir(filepath.Join(dir, filepath.Dir(name))) // a folder without patches; go cannot embed that
	}
	return nil
}

// restore takes back what replace has done.
func (f folder) restore(dir string, written folder) error {
	var failed error
	for name, content := range f {
		if written[name] != content {
			failed = errors.Join(failed, exchange(filepath.Join(dir, name), content))
		}
	}
	for name := range written {
		if _, there := f[name]; !there {
			if err := os.Remove(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
				failed = errors.Join(failed, err)
			}
			_ = syscall.Rmdir(filepath.Join(dir, filepath.Dir(name))) // a folder that was made for it
		}
	}
	if failed != nil {
		return fmt.Errorf("take back what was written, for which there is 'git checkout patches': %w", failed)
	}
	return nil
}

// exchange gives a file other content, all of it at once.
func exchange(file, content string) error {
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write the series: %w", err)
	}
	temporary, err := os.CreateTemp(dir, ".rebase-")
	if err != nil {
		return fmt.Errorf("write the series: %w", err)
	}
	_, err = temporary.WriteString(content)
	err = errors.Join(err, temporary.Chmod(0o644), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), file)
	}
	if err != nil {
		_ = os.Remove(temporary.Name()) // it is of no use
		return fmt.Errorf("write the series: %w", err)
	}
	return nil
}
