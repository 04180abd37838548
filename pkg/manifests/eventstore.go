package manifests

import (
	"cmp"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// maxEvents is how many events are kept. The ones that were written
	// longest ago make room for new ones.
	maxEvents = 1000
	// eventTTL is how long one is kept after it was written last. It is the
	// default of the API server's --event-ttl.
	eventTTL = time.Hour
)

// createEvent adds an event. The error is a status.
func (s *store) createEvent(event apiObject) (*item, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := s.collections[keptEvents].items
	if items[keyOf(event)] != nil {
		return nil, apierrors.NewAlreadyExists(keptEvents.GroupResource(), event.GetName())
	}
	var changes []change
	if len(items) >= maxEvents {
		oldest := slices.MinFunc(slices.Collect(maps.Values(items)), byVersion)
		changes = append(changes, change{old: oldest})
	}
	it := newItem(keptEvents, event)
	return it, s.commit(append(changes, change{new: it})...)
}

// updateEvent puts what modify makes of an event in its place. It must have the
// same namespace and name. The error is a status, or that of modify.
func (s *store) updateEvent(namespace, name string, modify func(*item) (apiObject, error)) (*item, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.collections[keptEvents].items[namespace+"/"+name]
	if old == nil {
		return nil, apierrors.NewNotFound(keptEvents.GroupResource(), name)
	}
	event, err := modify(old)
	if err != nil {
		return nil, err
	}
	it := newItem(keptEvents, event)
	return it, s.commit(change{old: old, new: it})
}

// removeEvent removes an event unless check refuses it. The error is a status,
// or that of check.
func (s *store) removeEvent(namespace, name string, check func(*item) error) (*item, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.collections[keptEvents].items[namespace+"/"+name]
	if old == nil {
		return nil, apierrors.NewNotFound(keptEvents.GroupResource(), name)
	}
	if err := check(old); err != nil {
		return nil, err
	}
	return old, s.commit(change{old: old})
}

// expireEvents removes the events whose time is over.
func (s *store) expireEvents(now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var gone []change
	for _, it := range s.collections[keptEvents].items {
		if now.Sub(it.written) >= eventTTL {
			gone = append(gone, change{old: it})
		}
	}
	slices.SortFunc(gone, func(a, b change) int { return byVersion(a.old, b.old) })
	return s.commit(gone...)
}

// byVersion puts first what was written first.
func byVersion(a, b *item) int { return cmp.Compare(a.version, b.version) }

// commit makes changes of events, or none of them with an error. The caller
// holds the lock.
func (s *store) commit(changes ...change) error {
	version := s.version
	if err := encodeAll(changes, &version); err != nil {
		return err
	}
	s.version = version
	s.collections[keptEvents].apply(changes, s.history)
	return nil
}
