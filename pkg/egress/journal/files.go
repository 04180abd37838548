package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	suffix = ".journal"
	// making is the name of a file until it is whole.
	making = ".making"
)

func fileName(number uint64) string { return fmt.Sprintf("%08d%s", number, suffix) }

// numbered returns the numbers of a folder's files, sorted.
func numbered(folder string) (numbers []uint64, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		digits, ours := strings.CutSuffix(entry.Name(), suffix)
		if number, err := strconv.ParseUint(digits, 10, 64); ours && err == nil && fileName(number) == entry.Name() {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// ErrNone is that of paths without a journal that can be read.
var ErrNone = errors.New("there is no journal")

// ReadAll reads files, and those below folders whose names end in .journal. Problems are files, or parts of files, that cannot be
// read; what they would tell is not in the History. It is [ErrNone] if no file can be read.
func ReadAll(paths []string, want Wanted) (h *History, problems []error, err error) {
	var names []string
	given := map[string]bool{}
	for _, path := range paths {
		found, err := below(path)
		if err != nil {
			problems = append(problems, err)
		}
		names, given[path] = append(names, found...), true
	}
	slices.Sort(names)
	names = slices.Compact(names)
	var files []*File
	read, errs := readSome(names, want)
	for i, f := range read {
		err := errs[i]
		if err == nil {
			files, err = append(files, f), f.damaged
		}
		if err != nil && (given[names[i]] || !errors.Is(err, fs.ErrNotExist)) { // a node removes its oldest file
			problems = append(problems, err)
		}
	}
	if len(files) == 0 {
		return nil, nil, errors.Join(append([]error{fmt.Errorf("%w in %s", ErrNone, strings.Join(paths, ", "))}, problems...)...)
	}
	return Join(files), problems, nil
}

// readSome reads files on all processors.
func readSome(names []string, want Wanted) (files []*File, errs []error) {
	files, errs = make([]*File, len(names)), make([]error, len(names))
	next := make(chan int)
	var readers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		readers.Go(func() {
			for i := range next {
				files[i], errs[i] = readFile(names[i], want)
			}
		})
	}
	for i := range names {
		next <- i
	}
	close(next)
	readers.Wait()
	return files, errs
}

// below returns a file, or all those below a folder.
func below(path string) (names []string, err error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, nil // reading it says what is wrong
	}
	err = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && strings.HasSuffix(name, suffix) {
			names = append(names, name)
		}
		return err
	})
	return names, err
}

func readFile(name string, want Wanted) (*File, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.Mode()&(fs.ModeDevice|fs.ModeDir) != 0 {
		return nil, errors.Join(fmt.Errorf("%s: it is no file", name), err)
	}
	return Read(name, file, want)
}
