package e2e

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/hack/oracle"
)

// history is what decided, at any time, which addresses a pod may use. It consists of periods, each of which
// begins with a quiet moment.
type history struct {
	mu      sync.Mutex
	periods []*period
}

// period is what all nodes held at a quiet moment, and what was changed after it. A node learns of the
// changes some time, in any order, until the next quiet moment. So what may be so in a period is
// what follows from any state at its beginning together with any change that had begun.
type period struct {
	began time.Time
	// At the quiet moment.
	claims    []claim
	endpoints []possibleEndpoint
	bindings  map[netip.Addr]oracle.Binding // those of TCP, by the pod's address
	// Since then.
	facts []fact
}

// claim is a Service as it may be: which addresses it has, and which it claims for its pods.
type claim struct {
	namespace, name, app string
	// created is when it was created, or some time before that.
	created time.Time
	holds   []netip.Addr
	egress  []netip.Addr
}

// possibleEndpoint is an address that Services may have as an endpoint: those of a namespace that select an app, or
// one, by an EndpointSlice that somebody made by hand.
type possibleEndpoint struct {
	addr           netip.Addr
	namespace, app string
	service        string
}

// fact is a change that is about to be made: of a claim, which has nothing when it ends, or of what an
// address is. An address that is no endpoint any more is one of no namespace.
type fact struct {
	at       time.Time
	claim    *claim
	endpoint *possibleEndpoint
}

func claimOf(svc *v1.Service, arguments oracle.Arguments) claim {
	c := claim{namespace: svc.Namespace, name: svc.Name, app: svc.Spec.Selector["app"], created: svc.CreationTimestamp.Time}
	for _, text := range svc.Spec.ExternalIPs {
		c.holds = append(c.holds, netip.MustParseAddr(text))
	}
	c.egress = oracle.Cluster{Arguments: arguments}.Claims(svc)
	return c
}

// begin begins the first period, in which there is nothing.
func (h *history) begin() {
	h.periods = []*period{{began: time.Now()}}
}

// note notes a change before it is made.
func (h *history) note(f fact) {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := h.periods[len(h.periods)-1]
	f.at = time.Now()
	last.facts = append(last.facts, f)
}

// leave notes that addresses are about to be no endpoints any more.
func (h *history) leave(addrs ...netip.Addr) {
	for _, addr := range addrs {
		h.note(fact{endpoint: &possibleEndpoint{addr: addr}})
	}
}

// calm begins a period: all nodes hold the plan for these objects now, and nothing is being changed.
func (h *history) calm(w *world, objects oracle.Cluster) {
	w.Helper()
	e := &period{began: time.Now(), bindings: map[netip.Addr]oracle.Binding{}}
	for _, svc := range objects.Services {
		e.claims = append(e.claims, claimOf(svc, objects.Arguments))
	}
	for _, slice := range objects.EndpointSlices {
		for _, endpoint := range slice.Endpoints {
			for _, address := range endpoint.Addresses {
				if ref := endpoint.TargetRef; ref == nil || ref.Namespace == slice.Namespace {
					e.endpoints = append(e.endpoints, possibleEndpoint{addr: netip.MustParseAddr(address), namespace: slice.Namespace, service: slice.Labels["kubernetes.io/service-name"]})
				}
			}
		}
	}
	pods, err := w.Client().CoreV1().Pods("").List(w.Context(), metav1.ListOptions{})
	w.must(err)
	for _, pod := range pods.Items {
		for _, ip := range pod.Status.PodIPs {
			e.endpoints = append(e.endpoints, possibleEndpoint{addr: netip.MustParseAddr(ip.IP), namespace: pod.Namespace, app: pod.Labels["app"]})
		}
	}
	for _, b := range objects.Bindings() {
		if b.Protocol == "tcp" { // UDP is the same, by the Services' ports
			e.bindings[b.Pod] = b
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.periods = append(h.periods, e)
	// No question takes as long as this.
	h.periods = slices.DeleteFunc(h.periods, func(old *period) bool { return old != e && old.began.Before(e.began.Add(-2*time.Minute)) })
}

// check is for lab.TrafficConfig: a pod must use an address that it may have in a period that the question falls
// into.
func (h *history) check(q lab.Question) error {
	if q.Err != nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	addr, node := like(q.To.Addr(), q.From), like(q.To.Addr(), q.From.Node)
	for i, e := range h.periods {
		over := i+1 < len(h.periods) && h.periods[i+1].began.Before(q.Start)
		if !over && e.began.Before(q.End) && e.allows(addr, node, q.Seen, q.End) {
			return nil
		}
	}
	return fmt.Errorf("%s must not have this address; %s", addr, h.periods[len(h.periods)-1].tell(addr, q.Seen))
}

// tell returns what is known of a pod's address and an identity, for a failure's message.
func (e *period) tell(addr, identity netip.Addr) string {
	text := fmt.Sprintf("since the quiet moment at %s, when it had %s, %d changes have begun; it is", e.began.Format("15:04:05.000"), e.bindings[addr].EgressIP, len(e.facts))
	for _, t := range e.allEndpoints(e.facts) {
		if t.addr == addr {
			text += fmt.Sprintf(" %s/%s%s", t.namespace, t.app, t.service)
		}
	}
	text += fmt.Sprintf("; %s is an external IP of", identity)
	for i, c := range e.versions(e.facts) {
		if slices.Contains(c.holds, identity) {
			when := "then"
			if i >= len(e.claims) {
				when = "since then"
			}
			text += fmt.Sprintf(" %s/%s (%s, %s, claimed: %v, blocked: %v)", c.namespace, c.name, when, c.created.Format(time.TimeOnly), slices.Contains(c.egress, identity), e.blocked(c, identity, e.facts))
		}
	}
	return text
}

// allEndpoints are all that addresses may be.
func (e *period) allEndpoints(facts []fact) []possibleEndpoint {
	endpoints := slices.Clone(e.endpoints)
	for _, f := range facts {
		if f.endpoint != nil {
			endpoints = append(endpoints, *f.endpoint)
		}
	}
	return endpoints
}

// allows returns whether a pod may be seen from an address until a time in the period.
func (e *period) allows(addr, node, seen netip.Addr, until time.Time) bool {
	n := 0
	for n < len(e.facts) && !e.facts[n].at.After(until) {
		n++
	}
	facts := e.facts[:n]
	b, bound := e.bindings[addr]
	switch {
	case bound && !e.touched(b, facts):
		return seen == b.EgressIP
	case seen == node:
		return true
	}
	return n > 0 && e.candidate(addr, seen, facts)
}

// touched returns whether any of these changes could end a binding: one of what its pod's address is, or
// of a Service that has, or had, its egress IP or its pod. The Service that gives it is one of these.
func (e *period) touched(b oracle.Binding, facts []fact) bool {
	endpoints := e.allEndpoints(facts)
	for _, f := range facts {
		if f.endpoint != nil && f.endpoint.addr == b.Pod {
			return true
		}
		if f.claim != nil && slices.ContainsFunc(e.versions(facts), func(version claim) bool {
			return version.namespace == f.claim.namespace && version.name == f.claim.name &&
				(slices.Contains(version.holds, b.EgressIP) || version.selects(b.Pod, endpoints))
		}) {
			return true
		}
	}
	return false
}

// selects returns whether an address is an endpoint of the Service.
func (c claim) selects(addr netip.Addr, endpoints []possibleEndpoint) bool {
	return slices.ContainsFunc(endpoints, func(t possibleEndpoint) bool {
		return t.addr == addr && t.namespace == c.namespace && (t.service == c.name || t.service == "" && t.app == c.app)
	})
}

// versions are all that Services may be like.
func (e *period) versions(facts []fact) []claim {
	versions := slices.Clone(e.claims)
	for _, f := range facts {
		if f.claim != nil {
			versions = append(versions, *f.claim)
		}
	}
	return versions
}

// candidate returns whether a Service may give an address an identity.
func (e *period) candidate(addr, identity netip.Addr, facts []fact) bool {
	endpoints := e.allEndpoints(facts)
	return slices.ContainsFunc(e.versions(facts), func(c claim) bool {
		return slices.Contains(c.egress, identity) && !e.blocked(c, identity, facts) && c.selects(addr, endpoints)
	})
}

// blocked returns whether an older Service of another namespace had the address at the quiet moment, and
// has it still: older than any that has it of the claim's own.
func (e *period) blocked(c claim, identity netip.Addr, facts []fact) bool {
	oldest := c.created
	for _, own := range e.versions(facts) {
		if own.namespace == c.namespace && slices.Contains(own.holds, identity) && own.created.Before(oldest) {
			oldest = own.created
		}
	}
	return slices.ContainsFunc(e.claims, func(o claim) bool {
		changed := slices.ContainsFunc(facts, func(f fact) bool {
			return f.claim != nil && f.claim.namespace == o.namespace && f.claim.name == o.name
		})
		return !changed && o.namespace != c.namespace && slices.Contains(o.holds, identity) && o.created.Before(oldest)
	})
}
