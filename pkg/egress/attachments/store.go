package attachments

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Store has the attachments of this node, in memory and in a folder. A method that returns an error has changed
// neither. Its methods may be called by several goroutines.
type Store struct {
	folder string

	mu   sync.Mutex
	byID map[string]Attachment
}

// Open returns the Store of a folder. What of it cannot be read is set aside and in err; the Store is good without it.
func Open(folder string) (*Store, error) {
	all, err := readAll(folder, setAside)
	s := &Store{folder: folder, byID: map[string]Attachment{}}
	for _, a := range all {
		s.byID[a.ContainerID] = a
	}
	if err = errors.Join(err, removeUnfinished(folder)); err != nil {
		return s, fmt.Errorf("reading attachments: %w", err)
	}
	return s, nil
}

// Put takes an attachment in the place of the one of the same container. The same again keeps its Since.
func (s *Store) Put(a Attachment) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, is := s.byID[a.ContainerID]; is && known.Pod == a.Pod && slices.Equal(known.IPs, a.IPs) {
		a.Since = known.Since
	}
	return s.put(a)
}

func (s *Store) put(a Attachment) error {
	if err := write(s.folder, a); err != nil {
		return fmt.Errorf("writing the attachment of the pod %s: %w", a.Pod, err)
	}
	s.byID[a.ContainerID] = a
	return nil
}

// Release notes that a pod gave its addresses back. known is false if there is no attachment of the container; one
// that was released before stays as it is.
func (s *Store) Release(id string, at time.Time) (released Attachment, known bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, known := s.byID[id]
	if !known || !a.Released.IsZero() {
		return a, known, nil
	}
	a.Released = at
	return a, true, s.put(a)
}

// Forget removes an attachment, if there is one.
func (s *Store) Forget(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.byID[id]; !known {
		return nil
	}
	if err := removeFile(fileOf(s.folder, id)); err != nil {
		return fmt.Errorf("forgetting an attachment: %w", err)
	}
	delete(s.byID, id)
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
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.byID), func(a, b Attachment) int { return cmp.Compare(a.ContainerID, b.ContainerID) })
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
		_, known, failed := s.Release(a.ContainerID, at)
		if !known {
			a.Released = cmp.Or(a.Released, at)
			s.mu.Lock()
			failed = s.put(a)
			s.mu.Unlock()
		}
		if failed == nil {
			failed = removeFile(fileOf(folder, a.ContainerID))
		}
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		taken = append(taken, a)
	}
	return taken, errors.Join(err, removeUnfinished(folder))
}

// DefaultClaims is where the plugin finds the namespaces with claims if nothing else is said.
const DefaultClaims = "/var/lib/origin-node/claims"
