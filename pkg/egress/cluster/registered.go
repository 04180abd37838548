package cluster

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/kept"
	"github.com/openshift/origin-node/pkg/egress/plan"
)

// A kubelet writes its Node's addresses whenever it likes, and what it writes later counts for less than what it registered with: see
// "Nodes' addresses" in package plan. The API server does not tell since when a Node has an address, so each node remembers what it
// saw first, and keeps that in a file for the next process.

// registration is what a Node registered with.
type registration struct {
	// UID is the Node's: a kubelet can neither change it nor delete its Node.
	UID string `json:"uid"`
	// InternalIPs are the first ones that it told, of both IP families, at most mostRegistered.
	InternalIPs []netip.Addr `json:"internalIPs"`
	// Pending: the Node told them when it waited for its cloud provider. The first others that it tells when it waits no longer, and has not for
	// long, come in their place: the provider ends the wait first, and writes its addresses then. initialized is when this process saw the end.
	Pending     bool `json:"pending,omitempty"`
	initialized time.Time
	// seen: this process has seen the Node.
	seen bool
}

// settling is how long after the end of that wait other addresses are the provider's.
const settling = time.Minute

// mostRegistered is how many addresses a Node can have registered with.
const mostRegistered = 32

// registrations are those of all Nodes, by name.
type registrations struct {
	nodes map[string]*registration
	// changed: they are not as in the file.
	changed bool
}

// note takes what a Node tells, by IP family, and notes there what it registered with. A Node without any address has not
// registered yet.
func (r *registrations) note(object *v1.Node, told map[v1.IPFamily]plan.Node) {
	name, uid := object.Name, string(object.UID)
	known := r.nodes[name]
	if known == nil || known.UID != uid {
		known = &registration{UID: uid}
		r.nodes[name], r.changed = known, true
	}
	known.seen = true
	ips := internalIPs(object)
	if known.take(ips[:min(len(ips), mostRegistered)], uninitialized(object), time.Now()) {
		r.changed = true
	}
	for family, node := range told {
		node.Registered = append([]netip.Addr{}, ofFamily(family, known.InternalIPs, self)...)
		told[family] = node
	}
}

// take takes the addresses that a Node tells, and whether it waits for its cloud provider. It tells whether anything has changed that is kept.
func (r *registration) take(ips []netip.Addr, waits bool, now time.Time) (changed bool) {
	if len(r.InternalIPs) == 0 {
		r.InternalIPs, r.Pending = ips, waits
		return len(ips) > 0
	}
	if !r.Pending || waits {
		r.initialized = time.Time{}
		return false
	}
	if r.initialized.IsZero() {
		r.initialized = now
	}
	late := now.Sub(r.initialized) > settling
	if !late && slices.Equal(ips, r.InternalIPs) {
		return false
	}
	if r.Pending = false; !late {
		r.InternalIPs = ips
	}
	return true
}

func self(ip netip.Addr) netip.Addr { return ip }

func (r *registrations) forget(name string) {
	delete(r.nodes, name)
	r.changed = true
}

// largestRegistrations is how many bytes of the file are read: 16,000 nodes have about 2 MB.
const largestRegistrations = 64 << 20

// load takes what the last process has kept. It is an error, and they are none, if that cannot be read.
func (r *registrations) load(file string) error {
	text, err := kept.Load(file, largestRegistrations)
	if err != nil || text == nil {
		return err
	}
	nodes := map[string]*registration{}
	if err := json.Unmarshal(text, &nodes); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for name, node := range nodes {
		if node != nil {
			r.nodes[name] = node
		}
	}
	return nil
}

// text returns what to keep, if that has changed: a Node that nobody has seen is no more.
func (r *registrations) text() (text []byte, changed bool) {
	if !r.changed {
		return nil, false
	}
	for name, node := range r.nodes {
		if !node.seen {
			delete(r.nodes, name)
		}
	}
	r.changed = false
	text, _ = json.MarshalIndent(r.nodes, "", "\t") // it has nothing that cannot be marshalled
	return append(text, '\n'), true
}

// loadRegistrations takes what Nodes registered with, as the last process has seen it. It comes before the first Node.
func (s *State) loadRegistrations() error {
	if s.Config.KeptNodes == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.registered.load(s.Config.KeptNodes); err != nil {
		return fmt.Errorf("read the addresses with which Nodes registered; those that they report now count instead: %w", err)
	}
	return nil
}

// CheckKeptNodes returns why what Nodes registered with cannot be read from a file; nil if it can, or if there is none.
func CheckKeptNodes(file string) error {
	return New(Config{KeptNodes: file}).loadRegistrations()
}

// saveRegistrations keeps what Nodes registered with, if that has changed.
func (s *State) saveRegistrations() error {
	s.mu.Lock()
	text, changed := s.registered.text()
	s.mu.Unlock()
	if !changed {
		return nil
	}
	err := kept.Save(s.Config.KeptNodes, text)
	if err != nil {
		s.mu.Lock()
		s.registered.changed = true
		s.mu.Unlock()
	}
	return err
}
