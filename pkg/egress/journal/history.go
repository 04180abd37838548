package journal

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/kernel"
)

// History is who had which ports, by any number of files of any number of nodes.
type History struct {
	nodes map[string]*nodeHistory
}

// nodeHistory is that of one node.
type nodeHistory struct {
	spans   []Span
	covered []Period
}

// identity is what an assignment has in common with itself in another file. A pod's next sandbox may share the same ports: since tells them
// apart.
type identity struct {
	namespace, name string // the UID of a static pod's object may be another one later
	ip, egressIP    netip.Addr
	ports           kernel.Ports
	since           int64
}

func identityOf(a portblocks.Assignment) identity {
	return identity{a.Pod.Namespace, a.Pod.Name, a.Pod.IP, a.EgressIP, a.Ports, precise(a.Since).UnixMilli()}
}

// Join returns what files say together. Of two that are the same one, collected at different times, the longer one counts.
func Join(files []*File) *History {
	h := &History{nodes: map[string]*nodeHistory{}}
	byNode := map[string][]*File{}
	for _, f := range files {
		byNode[f.node] = append(byNode[f.node], f)
	}
	for node, files := range byNode {
		slices.SortStableFunc(files, func(a, b *File) int {
			return cmp.Or(a.from.Compare(b.from), a.after.Compare(b.after), cmp.Compare(b.read, a.read))
		})
		files = slices.CompactFunc(files, func(a, b *File) bool { return a.from.Equal(b.from) && a.after.Equal(b.after) })
		h.nodes[node] = joinNode(files)
	}
	return h
}

// joinNode joins the files of one node, sorted by time.
func joinNode(files []*File) *nodeHistory {
	n := &nodeHistory{}
	open := map[identity]int{} // in n.spans
	for i, f := range files {
		covered := slices.Clone(f.covered)
		if i > 0 && f.goesOn(files[i-1]) {
			covered[0].From = n.covered[len(n.covered)-1].From
			n.covered = n.covered[:len(n.covered)-1]
		}
		n.covered = append(n.covered, covered...)
		still := map[identity]int{}
		for _, s := range f.spans {
			at, known := open[identityOf(s.Assignment)]
			if known {
				n.spans[at].Seen, n.spans[at].Until = later(n.spans[at].Seen, s.Seen), s.Until
			} else {
				at = len(n.spans)
				n.spans = append(n.spans, s)
			}
			if s.Until.IsZero() {
				still[identityOf(s.Assignment)] = at
			}
			delete(open, identityOf(s.Assignment))
		}
		if f.begun() {
			for _, at := range open { // a file begins with what is assigned, so these had ended
				n.spans[at].Until = later(f.from, n.spans[at].Seen.Add(time.Millisecond))
			}
		} else {
			maps.Copy(still, open)
		}
		open = still
	}
	return n
}

// Nodes are those that the files are of, sorted.
func (h *History) Nodes() []string { return slices.Sorted(maps.Keys(h.nodes)) }

// Spans are all that the files have, sorted by time and then by egress IP and ports.
func (h *History) Spans() []Span {
	var spans []Span
	for _, n := range h.nodes {
		spans = append(spans, n.spans...)
	}
	slices.SortFunc(spans, compareSpans)
	return spans
}

func compareSpans(a, b Span) int {
	return cmp.Or(a.Since.Compare(b.Since), a.EgressIP.Compare(b.EgressIP), cmp.Compare(a.Ports.First, b.Ports.First),
		cmp.Compare(a.Pod.Namespace, b.Pod.Namespace), cmp.Compare(a.Pod.Name, b.Pod.Name), cmp.Compare(a.Pod.UID, b.Pod.UID), cmp.Compare(a.Node, b.Node))
}

// Answer is who had an address and a port.
type Answer struct {
	// Shared: the ports are those of all pods without ports of their own, and Spans are those that had them.
	Shared bool
	// Spans has one element unless Shared.
	Spans []Span
	// Missing is what the files do not tell, so that there may be further candidates; for people, and only if Shared.
	Missing []string
}

// NobodyError says that nobody had a port. It is certain for the pods of these nodes.
type NobodyError struct {
	Asked netip.AddrPort
	At    time.Time
	Nodes []string
	// Before is who had the port last, After who had it next; nil if the files know of nobody.
	Before, After *Span
}

func (e *NobodyError) Error() string {
	text := fmt.Sprintf("nobody had %s at %s: no pod of %s", e.Asked, e.At.Format(timeForm), strings.Join(e.Nodes, ", "))
	if e.Before != nil {
		text += fmt.Sprintf(". Before, the pod %s had it until %s", podOf(*e.Before), e.Before.Until.Format(timeForm))
	}
	if e.After != nil {
		text += fmt.Sprintf(". After, the pod %s had it from %s on", podOf(*e.After), e.After.Since.Format(timeForm))
	}
	return text
}

// UnknownError says that the files cannot tell who had a port, and why.
type UnknownError struct {
	Asked netip.AddrPort
	At    time.Time
	Why   []string
	// Contradict: each of two pods had it, by what they say.
	Contradict bool
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("it is not certain who had %s at %s: %s", e.Asked, e.At.Format(timeForm), strings.Join(e.Why, "; "))
}

func podOf(s Span) string {
	return fmt.Sprintf("%s/%s (%s) on %s", s.Pod.Namespace, s.Pod.Name, s.Pod.UID, s.Node)
}

// Who returns who had a port at a time. It is a [NobodyError] if nobody had it, and an [UnknownError] if the files cannot tell.
func (h *History) Who(asked netip.AddrPort, at time.Time) (Answer, error) {
	var own, shared []Span
	var doubts []string
	ownDoubt := false
	for _, s := range h.Spans() {
		if s.EgressIP != asked.Addr() || !s.Ports.Contains(asked.Port()) {
			continue
		}
		switch {
		case s.had(at) && s.Shared:
			shared = append(shared, s)
		case s.had(at):
			own = append(own, s)
		case s.may(at):
			doubts, ownDoubt = append(doubts, doubt(s)), ownDoubt || !s.Shared
		}
	}
	unknown := func(why ...string) error { return &UnknownError{asked, at, why, len(own) > 1} }
	switch {
	case len(own) > 1:
		return Answer{}, unknown(fmt.Sprintf("the journals contradict each other: %s had it, and so had %s", podOf(own[0]), podOf(own[1])))
	case len(own) == 1:
		return Answer{Spans: own}, nil
	case ownDoubt:
		return Answer{}, unknown(doubts...)
	}
	missing := slices.Concat(doubts, h.uncovered(at))
	if portblocks.Shared.Contains(asked.Port()) {
		missing = append(missing, portblocks.Unlisted)
	}
	switch {
	case len(shared) > 0:
		return Answer{Shared: true, Spans: shared, Missing: missing}, nil
	case len(h.nodes) == 0:
		return Answer{}, unknown("there are no journals")
	case len(missing) > 0:
		return Answer{}, unknown(missing...)
	}
	return Answer{}, h.nobody(asked, at)
}

// doubt says why it is not certain that a pod had its ports.
func doubt(s Span) string {
	if s.Until.IsZero() {
		return fmt.Sprintf("the pod %s had it since %s, and the journal goes until %s", podOf(s), s.Since.Format(timeForm), s.Seen.Format(timeForm))
	}
	return fmt.Sprintf("the pod %s had it until %s for certain, and not any more at %s", podOf(s), s.Seen.Format(timeForm), s.Until.Format(timeForm))
}

// uncovered says of which nodes the files do not have a time.
func (h *History) uncovered(at time.Time) (missing []string) {
	for _, node := range h.Nodes() {
		covered := h.nodes[node].covered
		if slices.ContainsFunc(covered, func(p Period) bool { return p.contains(at) }) {
			continue
		}
		var texts []string
		for _, p := range covered {
			if p.From.Before(p.To) {
				texts = append(texts, p.String())
			}
		}
		if most := 5; len(texts) > most {
			texts = append(texts[:most:most], fmt.Sprintf("and %d more", len(texts)-most))
		}
		missing = append(missing, fmt.Sprintf("the journal of %s has %s", node, cmp.Or(strings.Join(texts, ", "), "nothing for certain")))
	}
	return missing
}

// nobody returns who had a port before and after a time.
func (h *History) nobody(asked netip.AddrPort, at time.Time) error {
	e := &NobodyError{Asked: asked, At: at, Nodes: h.Nodes()}
	for _, s := range h.Spans() {
		if s.EgressIP != asked.Addr() || !s.Ports.Contains(asked.Port()) {
			continue
		}
		switch {
		case !s.Until.IsZero() && !s.Until.After(at) && (e.Before == nil || s.Until.After(e.Before.Until)):
			e.Before = &s
		case s.Since.After(at) && (e.After == nil || s.Since.Before(e.After.Since)):
			e.After = &s
		}
	}
	return e
}
