package attachments

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/openshift/origin-node/pkg/egress/kept"
)

// Store has the attachments of this node, in memory and in a folder. Its methods may be called by several goroutines.
type Store struct {
	folder string

	mu   sync.Mutex
	byID map[string]Attachment
	// changes is the number of the last change; that of what the folder had is 1.
	changes uint64
	// unsaved are those whose files are not as they should be.
	unsaved map[string]bool
}

// Open returns the Store of a folder. What of it cannot be read is set aside and in err; the Store is good without it.
func Open(folder string) (*Store, error) {
	all, err := readAll(folder, setAside)
	s := &Store{folder: folder, byID: map[string]Attachment{}, changes: 1, unsaved: map[string]bool{}}
	for _, a := range all {
		s.byID[a.ContainerID] = a
	}
	if err = errors.Join(err, removeUnfinished(folder, time.Now())); err != nil {
		return s, fmt.Errorf("reading attachments: %w", err)
	}
	return s, nil
}

// ErrEnded is that of [Store.Put] for a container that has been released.
var ErrEnded = errors.New("the container has ended")

// Put stores an attachment in the place of the one of the same container, and releases others that have one of its addresses or
// interfaces, because each belongs to one pod alone. If pod and addresses are the same as before, Since and Ports are kept. The error is
// [ErrEnded] for a container that has been released; it is also an error if ctx has ended. After an error nothing has changed.
func (s *Store) Put(ctx context.Context, a Attachment) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	known, is := s.byID[a.ContainerID]
	if is && !known.Released.IsZero() {
		return ErrEnded
	}
	if is && known.Pod == a.Pod && slices.Equal(known.IPs, a.IPs) {
		a.Since, a.Ports, a.BlockSize = known.Since, known.Ports, known.BlockSize
	}
	if err := s.save(a); err != nil {
		return err
	}
	for id, other := range s.byID {
		if id != a.ContainerID && other.Released.IsZero() && (overlap(other.IPs, a.IPs) || overlap(other.Interfaces, a.Interfaces)) {
			other.Released = a.Since
			_ = s.change(other) // Flush tells
		}
	}
	return nil
}

func overlap[T comparable](a, b []T) bool {
	return slices.ContainsFunc(a, func(one T) bool { return slices.Contains(b, one) })
}

// save writes an attachment, and then takes it.
func (s *Store) save(a Attachment) error {
	if err := write(s.folder, a); err != nil {
		return fmt.Errorf("writing the attachment of the pod %s: %w", a.Pod, err)
	}
	s.set(a)
	delete(s.unsaved, a.ContainerID)
	return nil
}

func (s *Store) set(a Attachment) {
	s.byID[a.ContainerID] = a
	s.changes++
}

// change takes an attachment in any case: a pod that has ended has, whatever can be written. Flush writes what could not
// be.
func (s *Store) change(a Attachment) error {
	err := s.save(a)
	if err != nil {
		s.set(a)
		s.unsaved[a.ContainerID] = true
	}
	return err
}

// Change changes an attachment, if there is one of the container. It holds in memory after an error, too.
func (s *Store) Change(id string, change func(*Attachment)) (known bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, known := s.byID[id]
	if !known {
		return false, nil
	}
	change(&a)
	return true, s.change(a)
}

// Flush writes what could not be written before.
func (s *Store) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for id := range s.unsaved {
		errs = append(errs, s.save(s.byID[id]))
	}
	return errors.Join(errs...)
}

// Release notes that a pod gave its addresses back. known is false if there is no attachment of the container; one
// that was released before stays as it is. It holds in memory after an error, too.
func (s *Store) Release(id string, at time.Time) (released Attachment, known bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, known := s.byID[id]
	if !known || !a.Released.IsZero() {
		return a, known, nil
	}
	a.Released = at
	return a, true, s.change(a)
}

// Forget removes an attachment, if there is one. After an error nothing has changed.
func (s *Store) Forget(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.byID[id]; !known {
		return nil
	}
	if err := kept.Remove(fileOf(s.folder, id)); err != nil {
		return fmt.Errorf("forgetting an attachment: %w", err)
	}
	delete(s.byID, id)
	delete(s.unsaved, id)
	s.changes++
	return nil
}

// Get returns the attachment of a container.
func (s *Store) Get(id string) (a Attachment, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, known = s.byID[id]
	return a, known
}

// All returns all attachments, sorted by container ID.
func (s *Store) All() []Attachment {
	_, all := s.Numbered()
	return all
}

// Numbered returns all attachments, sorted by container ID, and a number that is higher after each change: of two lists the one with the
// higher number counts.
func (s *Store) Numbered() (number uint64, all []Attachment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes, slices.SortedFunc(maps.Values(s.byID), func(a, b Attachment) int { return cmp.Compare(a.ContainerID, b.ContainerID) })
}

// Leave notes in a folder, for the node's next process, that an attachment has ended.
func Leave(folder string, a Attachment) error {
	if err := write(folder, a); err != nil {
		return fmt.Errorf("noting that the pod %s has ended: %w", a.Pod, err)
	}
	return nil
}

// TakeLeft releases all that was left in a folder, and then removes it from there. What was left of a container that s
// does not know is kept as released, too: its addresses may still be bound.
func (s *Store) TakeLeft(folder string, at time.Time) (taken []Attachment, err error) {
	left, err := readAll(folder, setAside)
	for _, a := range left {
		failed := s.takeReleased(a, at)
		if failed == nil {
			failed = kept.Remove(fileOf(folder, a.ContainerID))
		}
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		taken = append(taken, a)
	}
	return taken, errors.Join(err, removeUnfinished(folder, at.Add(-unfinished)))
}

// takeReleased releases an attachment, which is taken as it is if there is none of its container.
func (s *Store) takeReleased(a Attachment, at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, is := s.byID[a.ContainerID]; is {
		if !known.Released.IsZero() {
			return nil
		}
		known.Left, known.Released = a.Released, at
		a = known
	}
	a.Released = cmp.Or(a.Released, at)
	return s.change(a)
}

// unfinished is how old a file is at least that was left by a plugin that was killed while it wrote.
const unfinished = time.Minute
