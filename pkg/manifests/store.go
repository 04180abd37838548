package manifests

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"sync"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/openshift/origin-node/pkg/wake"
)

// historyLength is how many changes of a resource are kept for watches that
// reconnect, in addition to those of the last load.
const historyLength = 1000

// A store holds the current objects and the recent changes of every resource.
// Its methods may be called from several goroutines.
type store struct {
	history int

	mu          sync.RWMutex
	version     uint64 // the last one given out
	collections map[*resource]*collection
}

// A collection is a resource's part of the store.
type collection struct {
	items   map[string]*item
	changes []change // in the order of their versions
	floor   uint64   // changes up to and with this version may be missing
	changed *wake.Broadcast
}

// An item is an object in one version. It is never changed.
type item struct {
	key     string
	object  apiObject // without a version
	version uint64
	raw     []byte // its JSON, with the version
	labels  labels.Set
	fields  fields.Set
}

func newItem(r *resource, o apiObject) *item {
	return &item{key: keyOf(o), object: o, labels: o.GetLabels(), fields: r.attributes(o)}
}

// A change turns old into new; one of the two is nil for an added or a deleted
// object.
type change struct {
	version  uint64
	old, new *item
	// gone is old with the version of the change. A watch whose selector matches
	// old but not new gets it.
	gone []byte
}

func newStore(history int) *store {
	// A list must not carry version "0": to a client that means any version.
	s := &store{history: history, version: 1, collections: map[*resource]*collection{}}
	for _, r := range resources {
		s.collections[r] = &collection{items: map[string]*item{}, changed: wake.NewBroadcast(), floor: s.version}
	}
	return s
}

// tally counts what a replace did.
type tally struct{ added, updated, deleted int }

// replace makes objects what the store holds: nothing happens to an object that
// is the same, and watches learn of the others. The error, an object that has no
// JSON, leaves the store as it was.
func (s *store) replace(objects *Objects) (tally, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	version := s.version
	var total tally
	pending := map[*resource][]change{}
	for _, r := range resources {
		changes, err := s.collections[r].diff(r, r.of(objects), &version)
		if err != nil {
			return tally{}, err
		}
		pending[r] = changes
	}
	s.version = version
	for r, changes := range pending {
		for _, c := range changes {
			switch {
			case c.old == nil:
				total.added++
			case c.new == nil:
				total.deleted++
			default:
				total.updated++
			}
		}
		s.collections[r].apply(changes, s.history)
	}
	return total, nil
}

// diff returns the changes that turn the collection into wanted, each with its
// version: deletions first, so that an address is free before another object
// takes it.
func (c *collection) diff(r *resource, wanted []apiObject, version *uint64) ([]change, error) {
	stays := make(map[string]bool, len(wanted))
	for _, o := range wanted {
		stays[keyOf(o)] = true
	}
	var changes []change
	for _, key := range slices.Sorted(maps.Keys(c.items)) {
		if !stays[key] {
			changes = append(changes, change{old: c.items[key]})
		}
	}
	for _, o := range wanted {
		old := c.items[keyOf(o)]
		if old != nil && (old.object == o || apiequality.Semantic.DeepEqual(old.object, o)) {
			continue
		}
		changes = append(changes, change{old: old, new: newItem(r, o)})
	}
	for i := range changes {
		*version++
		if err := changes[i].encode(*version); err != nil {
			return nil, err
		}
	}
	return changes, nil
}

func keyOf(o apiObject) string { return o.GetNamespace() + "/" + o.GetName() }

// encode gives the change its version.
func (c *change) encode(version uint64) (err error) {
	c.version = version
	if c.new != nil {
		c.new.version = version
		if c.new.raw, err = encode(c.new.object, version); err != nil {
			return err
		}
	}
	leaves := c.old != nil && (c.new == nil || !maps.Equal(c.old.labels, c.new.labels) || !maps.Equal(c.old.fields, c.new.fields))
	if leaves {
		c.gone, err = encode(c.old.object, version)
	}
	return err
}

func encode(o apiObject, version uint64) ([]byte, error) {
	versioned := o.DeepCopyObject().(apiObject)
	versioned.SetResourceVersion(strconv.FormatUint(version, 10))
	raw, err := json.Marshal(versioned)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", keyOf(o), err)
	}
	return raw, nil
}

// apply makes the changes and wakes the watches. All of these changes are kept,
// however many there are, for the watches that are up to date.
func (c *collection) apply(changes []change, history int) {
	if len(changes) == 0 {
		return
	}
	if drop := len(c.changes) - history; drop > 0 {
		c.floor = c.changes[drop-1].version
		c.changes = slices.Clone(c.changes[drop:])
	}
	for _, change := range changes {
		if change.new == nil {
			delete(c.items, change.old.key)
		} else {
			c.items[change.new.key] = change.new
		}
	}
	c.changes = append(c.changes, changes...)
	c.changed.Send()
}

// list returns the objects of a resource that match, sorted by key, and the
// version of the list.
func (s *store) list(r *resource, match func(*item) bool) ([]*item, uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var found []*item
	for _, it := range s.collections[r].items {
		if match(it) {
			found = append(found, it)
		}
	}
	slices.SortFunc(found, func(a, b *item) int { return cmp.Compare(a.key, b.key) })
	return found, s.version
}

// get returns an object, or nil.
func (s *store) get(r *resource, namespace, name string) *item {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.collections[r].items[namespace+"/"+name]
}

// since returns the changes of a resource after a version, the version up to
// which these are all, and a channel that is closed at the next one. It is not
// ok if changes that old are not kept any more.
func (s *store) since(r *resource, version uint64) (changes []change, now uint64, next <-chan struct{}, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	c := s.collections[r]
	if version < c.floor {
		return nil, s.version, nil, false
	}
	first := sort.Search(len(c.changes), func(i int) bool { return c.changes[i].version > version })
	// Changes are only appended to what this slice shares.
	return slices.Clip(c.changes[first:]), s.version, c.changed.Next(), true
}

// current returns the last version given out.
func (s *store) current() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.version
}
