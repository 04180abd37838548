package manifests

import (
	"cmp"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// maxPosted is how many objects of a resource clients may have posted.
	// The ones that were written longest ago make room for new ones.
	maxPosted = 1000
	// postedTTL is how long one is kept after it was written last. It is the
	// default of the API server's --event-ttl.
	postedTTL = time.Hour
)

// create adds an object that a client has posted. The error is a status.
func (s *store) create(r *resource, o apiObject) (*item, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := s.collections[r].items
	if items[keyOf(o)] != nil {
		return nil, apierrors.NewAlreadyExists(r.GroupResource(), o.GetName())
	}
	var changes []change
	if len(items) >= maxPosted {
		oldest := slices.MinFunc(slices.Collect(maps.Values(items)), byVersion)
		changes = append(changes, change{old: oldest})
	}
	it := newItem(r, o)
	return it, s.commit(r, append(changes, change{new: it})...)
}

// update puts what modify makes of an object's JSON in its place. It must have
// the same namespace and name. The error is a status, or that of modify.
func (s *store) update(r *resource, namespace, name string, modify func(*item) (apiObject, error)) (*item, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.collections[r].items[namespace+"/"+name]
	if old == nil {
		return nil, apierrors.NewNotFound(r.GroupResource(), name)
	}
	o, err := modify(old)
	if err != nil {
		return nil, err
	}
	it := newItem(r, o)
	return it, s.commit(r, change{old: old, new: it})
}

// remove removes an object unless check refuses it. The error is a status, or
// that of check.
func (s *store) remove(r *resource, namespace, name string, check func(*item) error) (*item, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.collections[r].items[namespace+"/"+name]
	if old == nil {
		return nil, apierrors.NewNotFound(r.GroupResource(), name)
	}
	if err := check(old); err != nil {
		return nil, err
	}
	return old, s.commit(r, change{old: old})
}

// expire removes the objects whose time is over.
func (s *store) expire(r *resource, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var gone []change
	for _, it := range s.collections[r].items {
		if now.Sub(it.written) >= postedTTL {
			gone = append(gone, change{old: it})
		}
	}
	slices.SortFunc(gone, func(a, b change) int { return byVersion(a.old, b.old) })
	return s.commit(r, gone...)
}

// byVersion puts first what was written first.
func byVersion(a, b *item) int { return cmp.Compare(a.version, b.version) }

// commit makes the changes of one resource, or none of them with an error. The
// caller holds the lock.
func (s *store) commit(r *resource, changes ...change) error {
	version := s.version
	if err := encodeAll(changes, &version); err != nil {
		return err
	}
	s.version = version
	s.collections[r].apply(changes, s.history)
	return nil
}
