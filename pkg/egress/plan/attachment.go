package plan

import (
	"fmt"
	"net/netip"
	"slices"
)

// Attachment says whose an address on this node is, as the network plugin said when it gave the address
// to a pod. EndpointSlices tell the same later.
type Attachment struct {
	Addr netip.Addr `json:"addr"`
	Pod  Pod        `json:"pod"`
	UID  string     `json:"uid"`
	Node string     `json:"node"`
	// Labels are the pod's; nil if they are unknown.
	Labels map[string]string `json:"labels,omitempty"`
	// Ended: the pod's phase is terminal, so it will be no endpoint.
	Ended bool `json:"ended,omitempty"`
	// Released: the pod has given the address back. EndpointSlices may name it for a while.
	Released bool `json:"released,omitempty"`
}

// endpoint is what EndpointSlices will have of a.
func (a Attachment) endpoint() Endpoint {
	return Endpoint{Addr: a.Addr, Pod: a.Pod, UID: a.UID, Node: a.Node}
}

// predicts tells whether a's pod will be an endpoint of c, which may be nil. Both are of one IP family.
func (c *Claim) predicts(a Attachment) bool {
	if c == nil || len(c.Selector) == 0 || a.Released || a.Ended || a.Pod.Namespace != c.Service.Namespace {
		return false
	}
	for key, value := range c.Selector {
		if label, has := a.Labels[key]; !has || label != value {
			return false
		}
	}
	return true
}

// contradicts returns why e, at a's address, cannot be right, or nothing. The zero Attachment contradicts nothing.
func (a Attachment) contradicts(e Endpoint) (because string) {
	if !a.Addr.IsValid() || e.Pod.Namespace == "" {
		return ""
	}
	switch {
	case a.Released && e.UID != "" && e.Pod == a.Pod && e.UID == a.UID:
		return fmt.Sprintf("endpoint %s is no longer an address of the pod %s, which has ended; the EndpointSlice should follow soon", e.Addr, e.Pod)
	case a.Released || e.Pod == a.Pod && (e.UID == a.UID || e.UID == "" || a.UID == ""):
		return ""
	default:
		return fmt.Sprintf("endpoint %s is the address of the pod %s (UID %s), not of %s (UID %s); the EndpointSlice should follow soon", e.Addr, a.Pod, a.UID, e.Pod, e.UID)
	}
}

// named returns e, at a's address, with a's pod if it names none.
func (a Attachment) named(e Endpoint) Endpoint {
	if e.Pod.Namespace == "" && !a.Released {
		e.Pod, e.UID = a.Pod, a.UID
	}
	return e
}

func byAddress(attachments []Attachment) map[netip.Addr]Attachment {
	result := make(map[netip.Addr]Attachment, len(attachments))
	for _, a := range attachments {
		result[a.Addr] = a
	}
	return result
}

// withAttachments returns in's claims with what its attachments tell: endpoints that will be, and the pods of endpoints
// that name none.
func withAttachments(in Input) []Claim {
	if len(in.Attachments) == 0 {
		return in.Claims
	}
	attachments := byAddress(in.Attachments)
	claims := slices.Clone(in.Claims)
	for i := range claims {
		claim := &claims[i]
		claim.Endpoints = slices.Clone(claim.Endpoints)
		for j, e := range claim.Endpoints {
			claim.Endpoints[j] = attachments[e.Addr].named(e)
		}
		for _, a := range in.Attachments {
			if claim.predicts(a) {
				claim.Endpoints = append(claim.Endpoints, a.endpoint())
			}
		}
	}
	return claims
}

// SetAttachment takes whose an address is. It replaces what was set for the address.
func (p *Planner) SetAttachment(a Attachment) { p.replaceAttachment(a.Addr, a) }

// DeleteAttachment forgets whose an address is.
func (p *Planner) DeleteAttachment(addr netip.Addr) { p.replaceAttachment(addr, Attachment{}) }

func (p *Planner) replaceAttachment(addr netip.Addr, now Attachment) {
	before := p.surroundings.attachments[addr]
	for s := range p.namespaces[before.Pod.Namespace] {
		if s.claim.predicts(before) {
			p.countEndpoint(s, before.endpoint(), -1)
		}
	}
	for s := range p.namespaces[now.Pod.Namespace] {
		if s.claim.predicts(now) {
			p.countEndpoint(s, now.endpoint(), 1)
		}
	}
	if p.surroundings.attachments[addr] = now; !now.Addr.IsValid() {
		delete(p.surroundings.attachments, addr)
	}
	if p.pods[addr] != nil {
		p.dirtyPods[addr] = true
	}
}

// predictAll replaces the endpoints that are predicted for a Service by one claim with those of another.
func (p *Planner) predictAll(s *service, before, after *Claim) {
	for _, a := range p.surroundings.attachments {
		predicted, predicts := before.predicts(a), after.predicts(a)
		switch {
		case predicts && !predicted:
			p.countEndpoint(s, a.endpoint(), 1)
		case predicted && !predicts:
			p.countEndpoint(s, a.endpoint(), -1)
		}
	}
}

// Unconfirmed returns the attached addresses that a Service selects although no EndpointSlice of it names them, as of the
// last Update. bound are those of them that are bound, and that no EndpointSlice of any Service confirms.
func (p *Planner) Unconfirmed() (all, bound []netip.Addr) {
	for addr, a := range p.surroundings.attachments {
		known := p.pods[addr]
		if known == nil {
			continue
		}
		named := func(s *service) bool { return s.confirms(a) }
		if slices.ContainsFunc(known.services, func(s *service) bool { return !named(s) }) {
			all = append(all, addr)
		}
		if len(known.bindings) > 0 && !slices.ContainsFunc(known.services, named) {
			bound = append(bound, addr)
		}
	}
	return all, bound
}

// confirms tells whether a Service does not predict a, or has an EndpointSlice that says the same.
func (s *service) confirms(a Attachment) bool {
	return !s.claim.predicts(a) || slices.ContainsFunc(s.endpoints[a.Addr], func(e counted) bool {
		return a.contradicts(e.Endpoint) == "" && (e.Endpoint != a.endpoint() || e.slices > 1)
	})
}

func (p *Planner) inNamespace(namespace string) map[*service]bool {
	services := p.namespaces[namespace]
	if services == nil {
		services = map[*service]bool{}
		p.namespaces[namespace] = services
	}
	return services
}
