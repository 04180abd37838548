package plan

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// web is the Service ns/web, whose pods have the label app: web.
func web(endpoints ...Endpoint) Claim {
	c := claim("web", 0, "203.0.113.1", []Protocol{TCP})
	c.Selector, c.Endpoints = map[string]string{"app": "web"}, endpoints
	return c
}

func attached(change func(*Attachment)) Attachment {
	a := Attachment{
		Addr: addr("10.128.0.5"), Pod: Pod{"ns", "web-0"}, UID: "u1", Node: "here",
		Labels: map[string]string{"app": "web", "version": "1"},
	}
	change(&a)
	return a
}

func TestBuild_PredictsEndpoints(t *testing.T) {
	bound := []Binding{binding("10.128.0.5", TCP, "203.0.113.1", "web")}
	asIs := func(*Attachment) {}
	named := func(namespace, name, uid string) Endpoint {
		return Endpoint{Addr: addr("10.128.0.5"), Pod: Pod{namespace, name}, UID: uid, Node: "here"}
	}
	tests := []struct {
		name       string
		attachment Attachment
		claim      Claim
		bindings   []Binding
		refused    Reason
	}{
		{"before any EndpointSlice", attached(asIs), web(), bound, ""},
		{"and an EndpointSlice that agrees", attached(asIs), web(named("ns", "web-0", "u1")), bound, ""},
		{"and an EndpointSlice without UIDs that agrees", attached(asIs), web(named("ns", "web-0", "")), bound, ""},
		{"and an EndpointSlice that names no pod", attached(asIs), web(Endpoint{Addr: addr("10.128.0.5")}), bound, ""},
		{"labels unknown", attached(func(a *Attachment) { a.Labels = nil }), web(), nil, ""},
		{"another label", attached(func(a *Attachment) { a.Labels["app"] = "db" }), web(), nil, ""},
		{"no such label", attached(func(a *Attachment) { delete(a.Labels, "app") }), web(), nil, ""},
		{"an empty selector", attached(asIs), claim("web", 0, "203.0.113.1", []Protocol{TCP}), nil, ""},
		{"another namespace", attached(func(a *Attachment) { a.Pod.Namespace = "other" }), web(), nil, ""},
		{"a pod that has ended", attached(func(a *Attachment) { a.Ended = true }), web(), nil, ""},
		{"a pod that has ended, still in an EndpointSlice", attached(func(a *Attachment) { a.Ended = true }), web(named("ns", "web-0", "u1")), bound, ""},
		{"an address outside of the cluster", attached(func(a *Attachment) { a.Addr = addr("192.0.2.9") }), web(), nil, EndpointOutsideCluster},

		{"an EndpointSlice of the pod before", attached(func(a *Attachment) { a.Labels = nil }), web(named("ns", "web-9", "u0")), nil, AddressOfOtherPod},
		{"an EndpointSlice of a pod of the same name before", attached(func(a *Attachment) { a.Labels = nil }), web(named("ns", "web-0", "u0")), nil, AddressOfOtherPod},
		{"both pods are the Service's", attached(asIs), web(named("ns", "web-9", "u0")), bound, AddressOfOtherPod},
		{"an EndpointSlice that steals", attached(func(a *Attachment) { a.Pod.Namespace = "other" }), web(Endpoint{Addr: addr("10.128.0.5")}), nil, PodOfOtherNamespace},

		{"given back", attached(func(a *Attachment) { a.Released = true }), web(), nil, ""},
		{"given back, still in an EndpointSlice", attached(func(a *Attachment) { a.Released = true }), web(named("ns", "web-0", "u1")), nil, AddressOfOtherPod},
		{"given back, in an EndpointSlice without UIDs", attached(func(a *Attachment) { a.Released = true }), web(named("ns", "web-0", "")), bound, ""},
		{"given back, another pod since", attached(func(a *Attachment) { a.Released = true }), web(named("ns", "web-1", "u2")), bound, ""},
		{"given back, another pod of the same name since", attached(func(a *Attachment) { a.Released = true }), web(named("ns", "web-0", "u2")), bound, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := Input{ClusterCIDRs: prefixes("10.128.0.0/14"), Claims: []Claim{tt.claim}, Attachments: []Attachment{tt.attachment}}
			p := Build(in)
			if diff := cmp.Diff(tt.bindings, p.Bindings, compareNetip); diff != "" {
				t.Errorf("bindings (-want +got):\n%s", diff)
			}
			var refused Reason
			for _, r := range p.Refusals {
				refused = r.Reason
			}
			if refused != tt.refused || len(p.Refusals) > 1 {
				t.Errorf("refusals %v, expected %q", p.Refusals, tt.refused)
			}
		})
	}
}

// TestBuild_ConflictsOfPredictions: of two Services that will have a pod the older wins, as of two that have it.
func TestBuild_ConflictsOfPredictions(t *testing.T) {
	older, younger := web(), web()
	older.Service.Name, older.Created = "older", older.Created.Add(-1)
	younger.EgressIP = addr("203.0.113.2")
	predicted := Build(Input{
		ClusterCIDRs: prefixes("10.128.0.0/14"), Claims: []Claim{younger, older},
		Attachments: []Attachment{attached(func(*Attachment) {})},
	})
	e := attached(func(*Attachment) {}).endpoint()
	older.Endpoints, younger.Endpoints = []Endpoint{e}, []Endpoint{e}
	told := Build(Input{ClusterCIDRs: prefixes("10.128.0.0/14"), Claims: []Claim{younger, older}})
	if diff := cmp.Diff(told, predicted, compareNetip); diff != "" || len(told.Refusals) != 1 {
		t.Errorf("%d refusals; by EndpointSlices and by prediction (-slices +predicted):\n%s", len(told.Refusals), diff)
	}
}

// TestExplainer_Predictions: an endpoint that is predicted is explained as one of an EndpointSlice, and beside one that
// contradicts it.
func TestExplainer_Predictions(t *testing.T) {
	stale := Endpoint{Addr: addr("10.128.0.5"), Pod: Pod{"ns", "web-9"}, UID: "u0", Node: "here"}
	in := Input{ClusterCIDRs: prefixes("10.128.0.0/14"), Claims: []Claim{web(stale)}, Attachments: []Attachment{attached(func(*Attachment) {})}}
	e := NewExplainer(in, Build(in))
	state := e.ExplainService(Service{"ns", "web"}, netip.Addr{})[0]
	got := map[string]string{}
	for _, endpoint := range state.Endpoints {
		reason := Reason("bound")
		if endpoint.Refusal != nil {
			reason = endpoint.Refusal.Reason
		}
		got[endpoint.Endpoint.Pod.Name] = string(reason)
	}
	if diff := cmp.Diff(map[string]string{"web-0": "bound", "web-9": "AddressOfOtherPod"}, got); diff != "" {
		t.Errorf("endpoints (-want +got):\n%s", diff)
	}
	if found, ok := e.Endpoint(Service{"ns", "web"}, stale.Addr); !ok || found.Pod.Name != "web-0" {
		t.Errorf("at %s explains %v, expected web-0", stale.Addr, found)
	}
	if !e.Predicted(Service{"ns", "web"}, stale.Addr) {
		t.Error("not predicted, although no endpoint is the pod's")
	}
	if d := e.Explain(Packet{Pod: stale.Addr, Protocol: TCP}); !strings.Contains(d.Because, "no EndpointSlice names yet") {
		t.Errorf("because %s", d.Because)
	}
	in.Claims = []Claim{web(stale, attached(func(*Attachment) {}).endpoint())}
	if NewExplainer(in, Build(in)).Predicted(Service{"ns", "web"}, stale.Addr) {
		t.Error("predicted, although an endpoint is the pod's")
	}
}

// TestPlanner_FollowsLabelsAndSelectors: a prediction ends as soon as labels or selector do not match.
func TestPlanner_FollowsLabelsAndSelectors(t *testing.T) {
	p := NewPlanner(func(string, netip.Addr) Pod { return Pod{} }, Choices{}.Of)
	p.SetSurroundings(Input{ClusterCIDRs: prefixes("10.128.0.0/14")})
	holding := Holding{Service: Service{"ns", "web"}, Created: web().Created, Addresses: []Address{{IP: addr("203.0.113.1")}}}
	granted, other := web(), web()
	other.Selector = map[string]string{"app": "db"}
	steps := []struct {
		name  string
		do    func()
		bound bool
	}{
		{"the claim alone", func() { p.SetService(holding, &granted) }, false},
		{"the pod", func() { p.SetAttachment(attached(func(*Attachment) {})) }, true},
		{"another label", func() { p.SetAttachment(attached(func(a *Attachment) { a.Labels["app"] = "db" })) }, false},
		{"the selector follows", func() { p.SetService(holding, &other) }, true},
		{"no claim", func() { p.SetService(holding, nil) }, false},
		{"the claim again", func() { p.SetService(holding, &other) }, true},
		{"surroundings anew", func() { p.SetSurroundings(Input{ClusterCIDRs: prefixes("10.128.0.0/15")}) }, true},
		{"given back", func() { p.SetAttachment(attached(func(a *Attachment) { a.Released = true })) }, false},
		{"the pod again", func() { p.SetAttachment(attached(func(a *Attachment) { a.Labels["app"] = "db" })) }, true},
		{"forgotten", func() { p.DeleteAttachment(addr("10.128.0.5")) }, false},
	}
	for _, step := range steps {
		step.do()
		p.Update()
		want := []Binding{}
		if step.bound {
			want = []Binding{binding("10.128.0.5", TCP, "203.0.113.1", "web")}
		}
		if diff := cmp.Diff(want, p.Plan().Bindings, compareNetip); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}
