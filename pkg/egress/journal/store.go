package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/egress/kept"
	"github.com/openshift/origin-node/pkg/egress/portblocks"
)

// record is a line that is to be written.
type record struct {
	kind kind
	// assignment is that of assigned and released.
	assignment portblocks.Assignment
	at         time.Time
	// seen is that of released, if it is not known when that was.
	seen time.Time
}

// written is an assignment that the file has as not ended.
type written struct {
	portblocks.Assignment
	ref uint64
}

// store is the folder of a journal, of which the last file is written. One goroutine at a time uses it.
type store struct {
	folder, node string
	// limit is how large a file becomes, most how many there are.
	limit int64
	most  int

	// lock keeps other processes away.
	lock *os.File
	// file is nil until open has succeeded.
	file   *os.File
	number uint64
	header
	// size is how much of the file is whole and on the disk, begun how much of that it began with.
	size, begun int64
	// now has what has not ended, refs is how many references there are.
	now  map[identity]written
	refs uint64
	// covered is until when the files have everything, before is that of when they were opened. live is the last time that says alive, or that of the
	// first file.
	covered, before, live time.Time
	// rest: there may be something after size, of an attempt that failed. many: there may be too many files.
	rest, many bool
	// healed says what was wrong with the last file when it was opened; nil if nothing was.
	healed error
}

// errInUse is that of a journal that another process writes.
var errInUse = errors.New("another process writes this journal")

// open goes on with the last file, or begins the first one. It may be called again after an error.
func (s *store) open(at time.Time) error {
	if s.file != nil {
		return nil
	}
	if err := s.take(); err != nil {
		return err
	}
	numbers, err := numbered(s.folder)
	if err != nil {
		return err
	}
	s.now, s.healed = map[identity]written{}, nil
	if len(numbers) == 0 {
		return s.begin(at, nil, time.Time{})
	}
	s.number = numbers[len(numbers)-1]
	name := filepath.Join(s.folder, fileName(s.number))
	last, err := readFile(name, nil)
	var io *fs.PathError
	switch {
	case errors.As(err, &io): // it may be readable later
		return err
	case err != nil:
		s.healed = err
		return s.begin(at, nil, time.Time{})
	case last.node != s.node:
		s.healed = fmt.Errorf("%s is of the node %s, and this is %s", name, last.node, s.node)
		return s.begin(at, nil, time.Time{})
	}
	for ref, i := range last.open {
		a := last.spans[i].Assignment
		s.now[identityOf(a)] = written{a, ref}
	}
	s.header, s.size, s.refs, s.covered, s.before, s.live, s.healed = last.header, last.read, last.refs, last.end(), last.end(), last.live, last.damaged
	if s.live.IsZero() {
		s.live = last.from
	}
	if last.damaged != nil {
		return s.begin(at, s.assignments(), s.covered)
	}
	return s.goOn(name, at, last.cut)
}

// goOn opens the last file, and writes that nobody wrote until now.
func (s *store) goOn(name string, at time.Time, cut bool) (err error) {
	if s.rest = cut; cut {
		s.healed = fmt.Errorf("%s: the last line was not whole, and has been removed", name)
	}
	if s.file, err = os.OpenFile(name, os.O_WRONLY, 0); err != nil {
		return err
	}
	if err = s.commit(appendGap(nil, later(at, s.covered), s.covered)); err != nil {
		err = errors.Join(err, s.file.Close())
		s.file = nil
		return err
	}
	s.covered = later(at, s.covered)
	return nil
}

// take makes the folder, and keeps other processes from writing there. Somebody may have removed one that was taken.
func (s *store) take() error {
	if s.lock != nil {
		held, heldErr := s.lock.Stat()
		there, err := os.Stat(s.folder)
		if heldErr == nil && err == nil && os.SameFile(held, there) {
			return nil
		}
		_ = s.lock.Close()
		s.lock = nil
	}
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return err
	}
	folder, err := os.Open(s.folder)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(folder.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = folder.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return fmt.Errorf("%s: %w", s.folder, errInUse)
		}
		return fmt.Errorf("lock %s: %w", s.folder, err)
	}
	s.lock = folder
	return nil
}

// assignments are those that have not ended.
func (s *store) assignments() (all []portblocks.Assignment) {
	for _, w := range s.now {
		all = append(all, w.Assignment)
	}
	return all
}

// begin begins the next file with these assignments. With a time since, nobody wrote from then until now. After an
// error the file before is the last one still.
func (s *store) begin(at time.Time, assignments []portblocks.Assignment, since time.Time) error {
	h := header{node: s.node, from: later(precise(at), s.from.Add(time.Millisecond))}
	if s.node == s.header.node {
		h.after, h.afterSize = s.from, s.size
	}
	text := h.appendTo(nil)
	slices.SortFunc(assignments, func(a, b portblocks.Assignment) int { return compareSpans(Span{Assignment: a}, Span{Assignment: b}) })
	now := make(map[identity]written, len(assignments))
	for i, a := range assignments {
		ref := uint64(i + 1)
		now[identityOf(a)] = written{a, ref}
		text = appendAssigned(text, ref, a)
	}
	covered, live := h.from, h.from
	if !since.IsZero() {
		text = appendGap(text, h.from, since)
	}
	if !h.after.IsZero() { // lines of before may have to wait
		if live = s.live; since.IsZero() {
			covered = s.covered
		}
		text = appendAlive(text, live)
	}
	file, err := s.create(fileName(s.number+1), text)
	if err != nil {
		return err
	}
	if s.file != nil {
		_ = s.file.Close() // all of it is on the disk
	}
	s.file, s.number, s.header, s.rest, s.many = file, s.number+1, h, false, true
	s.size, s.begun, s.now, s.refs, s.covered, s.live = int64(len(text)), int64(len(text)), now, uint64(len(assignments)), covered, live
	return nil
}

// create makes a file that appears as a whole, or not at all, also after a loss of power.
func (s *store) create(name string, text []byte) (file *os.File, err error) {
	if err := s.take(); err != nil {
		return nil, err
	}
	temporary := filepath.Join(s.folder, making)
	if file, err = os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600); err != nil {
		return nil, err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync()); err == nil {
		err = os.Rename(temporary, filepath.Join(s.folder, name))
	}
	if err == nil {
		err = s.lock.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, file.Close(), kept.Remove(temporary))
	}
	return file, nil
}

// prune removes the oldest files, if there are more than there may be.
func (s *store) prune() error {
	if !s.many {
		return nil
	}
	numbers, err := numbered(s.folder)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // somebody has removed the folder: the next file makes it anew
	}
	for len(numbers) > s.most && err == nil {
		err = kept.Remove(filepath.Join(s.folder, fileName(numbers[0])))
		numbers = numbers[1:]
	}
	s.many = err != nil
	return err
}

// commit writes text, and returns when it is on the disk. After an error the file is as it was, or has a rest that the next commit removes.
func (s *store) commit(text []byte) error {
	if s.rest {
		if err := s.file.Truncate(s.size); err != nil {
			return err
		}
	}
	began := time.Now()
	_, err := s.file.WriteAt(text, s.size)
	if err == nil {
		err = dataSync(s.file)
	}
	if s.rest = err != nil; s.rest {
		return errors.Join(err, s.file.Truncate(s.size))
	}
	syncDuration.WithLabelValues().Observe(time.Since(began).Seconds())
	s.size += int64(len(text))
	return nil
}

// dataSync returns when what was written is on the disk.
func dataSync(file *os.File) error {
	for {
		err := unix.Fdatasync(int(file.Fd()))
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("fdatasync "+file.Name(), err)
		}
	}
}

// write writes records, in as many files as they need, and returns how many of them are on the disk.
func (s *store) write(records []record, at time.Time) (done int, err error) {
	for done < len(records) {
		if err := s.prune(); err != nil {
			return done, err
		}
		removed, since := s.removed(), time.Time{}
		if removed {
			since = s.covered
		}
		if removed || s.room() <= 0 {
			if err := s.begin(at, s.assignments(), since); err != nil {
				return done, err
			}
		}
		n, err := s.writeSome(records[done:])
		if err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

// room is how much fits into the file.
func (s *store) room() int64 { return max(s.limit, 2*s.begun) - s.size }

// mostAtOnce is how much is written at once: what fails is made anew each time.
const mostAtOnce = 256 << 10

// removed tells whether somebody has removed the file.
func (s *store) removed() bool {
	info, err := s.file.Stat()
	if err != nil {
		return false // writing says what is wrong
	}
	stat, is := info.Sys().(*syscall.Stat_t)
	return is && stat.Nlink == 0
}

// writeSome writes records until the file is full, and returns how many.
func (s *store) writeSome(records []record) (n int, err error) {
	var text []byte
	changed := map[identity]*written{} // nil for what has ended
	refs, covered, live := s.refs, s.covered, s.live
	for n < len(records) && int64(len(text)) < min(s.room(), mostAtOnce) {
		r := records[n]
		n++
		k := identityOf(r.assignment)
		w, ok := changed[k]
		if !ok {
			if known, has := s.now[k]; has {
				w = &known
			}
		}
		switch {
		case r.kind == alive:
			text, covered, live = appendAlive(text, r.at), later(r.at, covered), later(r.at, live)
		case r.kind == assigned && w == nil:
			refs++
			text = appendAssigned(text, refs, r.assignment)
			changed[k] = &written{r.assignment, refs}
		case r.kind == released && w != nil:
			text = appendReleased(text, r.at, w.ref, r.seen)
			changed[k] = nil
		}
	}
	if err := s.commit(text); err != nil {
		return 0, err
	}
	s.refs, s.covered, s.live = refs, covered, live
	for k, w := range changed {
		if delete(s.now, k); w != nil {
			s.now[k] = *w
		}
	}
	return n, nil
}

// close lets other processes write.
func (s *store) close() error {
	var errs []error
	for _, file := range []*os.File{s.file, s.lock} {
		if file != nil {
			errs = append(errs, file.Close())
		}
	}
	s.file, s.lock = nil, nil
	return errors.Join(errs...)
}
