package manifests

import (
	"maps"
	"os"
	"path/filepath"
)

// A snapshot is how a folder looks without reading its files. Links are
// followed, so what a link leads to may change without its name.
type snapshot struct {
	dir   os.FileInfo            // nil if there is none
	files map[string]os.FileInfo // nil for a file that cannot be found
}

func look(dir string) snapshot {
	s := snapshot{files: map[string]os.FileInfo{}}
	var err error
	if s.dir, err = os.Stat(dir); err != nil {
		return snapshot{}
	}
	names, err := manifestNames(dir)
	if err != nil {
		return snapshot{}
	}
	for _, name := range names {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			info = nil
		}
		s.files[name] = info
	}
	return s
}

// same tells whether nothing seems to have changed.
func (s snapshot) same(o snapshot) bool {
	return sameFolder(s, o) && maps.EqualFunc(s.files, o.files, sameFile)
}

// sameFolder tells whether both snapshots are of the same folder, not of another
// one with its name.
func sameFolder(s, o snapshot) bool {
	if s.dir == nil || o.dir == nil {
		return s.dir == o.dir
	}
	return os.SameFile(s.dir, o.dir)
}

func sameFile(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return os.SameFile(a, b) && a.Mode() == b.Mode() && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
