package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/origin-node/hack/lab"
)

// TestPlacement_NodeWritesItsPodsOnly: which pods are a node's follows from EndpointSlices and from the Node's
// pod networks, and the commands tell it. With the scope cluster all are.
func TestPlacement_NodeWritesItsPodsOnly(t *testing.T) {
	w := newWorld(t, settings{nodes: 2})
	pods := w.shop(w.ips(10)...)
	w.scenario("the commands tell of this node's pods, and of all if asked", func() { w.listsItsPods(pods) })
	w.scenario("a dry run prints the rules of this node's pods", func() { w.dryRunOfItsPods(pods) })
	w.scenario("a pod is bound where its EndpointSlice says that it is", w.followsTheSlice)
	w.scenario("a pod in the Node's pod networks is bound whatever its EndpointSlice says", w.podNetworks)
	w.scenario("with the scope cluster every node writes all", func() {
		w.reconfigure(`egress-snat-scope: [cluster]`)
		w.settled()
		for _, m := range w.members {
			w.bindsOn(m, pods...)
			if list := m.listed(w); slices.ContainsFunc(list, func(b listedBinding) bool { return !b.Here }) || len(list) != 2*len(pods) {
				w.Errorf("%s lists %v, want all pods as its own", m.Name, list)
			}
		}
	})
}

// listedBinding is one in the JSON of 'openshift egress list'.
type listedBinding struct {
	PodIP, EgressIP netip.Addr
	Node            string
	Here            bool
}

// listed are the bindings that 'openshift egress list' prints.
func (m *member) listed(w *world, flags ...string) []listedBinding {
	w.Helper()
	out, errs, status := m.Openshift(append([]string{"egress", "list", "--socket=" + m.Socket(), "-o", "json"}, flags...)...)
	if status != 0 {
		w.Fatalf("%s: status %d: %s", m.Name, status, errs)
	}
	var list struct{ Bindings []listedBinding }
	w.must(json.Unmarshal([]byte(out), &list))
	return list.Bindings
}

func (w *world) listsItsPods(pods []*lab.Host) {
	for i, m := range w.members {
		for _, flags := range [][]string{nil, {"--all"}} {
			want := map[netip.Addr]string{}
			for j, pod := range pods {
				if i == j || flags != nil {
					want[pod.V4], want[pod.V6] = w.members[j].Name, w.members[j].Name
				}
			}
			for _, b := range m.listed(w, flags...) {
				if want[b.PodIP] == "" || want[b.PodIP] != b.Node || b.Here != (b.Node == m.Name) {
					w.Errorf("%s lists with %v %+v, want one of %v", m.Name, flags, b, want)
				}
				delete(want, b.PodIP)
			}
			if len(want) > 0 {
				w.Errorf("%s does not list with %v %v", m.Name, flags, want)
			}
		}
		out, _, _ := m.Openshift("egress", "list", "--socket="+m.Socket(), "--all", "--no-headers")
		if got := strings.Count(out, "<elsewhere>"); got != 2 {
			w.Errorf("%s lists %d of the other node's bindings as elsewhere, want 2:\n%s", m.Name, got, out)
		}
	}
}

func (w *world) dryRunOfItsPods(pods []*lab.Host) {
	for i, m := range w.members {
		out, errs, status := m.Openshift("start", "node", "--config="+m.Config(), "--dry-run")
		if status != 0 {
			w.Fatalf("%s: status %d: %s", m.Name, status, errs)
		}
		for j, pod := range pods {
			for _, addr := range []netip.Addr{pod.V4, pod.V6} {
				if strings.Contains(out, fmt.Sprintf("-A OPENSHIFT-EGRESS-SNAT -s %s/%d ", addr, addr.BitLen())) != (i == j) {
					w.Errorf("%s has a rule for %s: %v, want %v:\n%s", m.Name, addr, i != j, i == j, out)
				}
			}
		}
	}
}

// followsTheSlice moves a pod by its EndpointSlice. It runs on the first node all the time, so only that
// one's rules are for its packets.
func (w *world) followsTheSlice() {
	near, far := w.members[0], w.members[1]
	pod := w.podWithoutSlice("moved", w.ips(20))

	w.place("moved", pod, &far.Name)
	w.atRest()
	w.bindsOn(far, pod)
	w.bindsNot(near, pod)
	w.leaves("tcp", pod)
	flows := w.flows(pod, "tcp", "udp")

	w.place("moved", pod, &near.Name)
	w.atRest()
	w.bindsOn(near, pod)
	w.bindsNot(far, pod)
	w.leaves("tcp", pod, w.ips(20)...)
	w.ended(flows, w.ips(20)...)
	flows = w.flows(pod, "tcp", "udp")

	w.place("moved", pod, nil)
	w.atRest()
	w.bindsOn(near, pod)
	w.bindsOn(far, pod)
	w.live(flows, w.ips(20)...)

	w.place("moved", pod, &far.Name)
	w.atRest()
	w.bindsNot(near, pod)
	w.leaves("tcp", pod)
	w.ended(flows)
}

func (w *world) podNetworks() {
	near, far := w.members[0], w.members[1]
	pod := w.podWithoutSlice("network", w.ips(30))
	w.place("network", pod, &far.Name)
	w.settled()
	w.bindsNot(near, pod)
	w.leaves("tcp", pod)

	var cidrs []string
	for _, cidr := range near.Host.PodCIDRs() {
		cidrs = append(cidrs, cidr.String())
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"podCIDR": cidrs[0], "podCIDRs": cidrs}})
	w.must(err)
	_, err = w.Client().CoreV1().Nodes().Patch(w.Context(), near.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	w.must(err)
	w.settled()
	w.bindsOn(near, pod)
	w.leaves("tcp", pod, w.ips(30)...)
}

// podWithoutSlice makes a namespace with a Service without a selector and a pod on the first node.
func (w *world) podWithoutSlice(namespace string, externalIPs []string) *lab.Host {
	w.Helper()
	w.namespace(namespace)
	w.service(namespace, "web", externalIPs, func(svc *v1.Service) { svc.Spec.Selector = nil }, tcp80, udp80)
	w.Cleanup(func() { // another pod may have the addresses
		slices := w.Client().DiscoveryV1().EndpointSlices(namespace)
		if err := slices.DeleteCollection(context.WithoutCancel(w.Context()), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			w.Error(err)
		}
	})
	_, pod := w.podByHand(namespace, "web", w.members[0], nil)
	return pod
}

// place has EndpointSlices of the Service web name a pod, and its node if that is not nil.
func (w *world) place(namespace string, pod *lab.Host, node *string) {
	w.Helper()
	slices := w.Client().DiscoveryV1().EndpointSlices(namespace)
	for _, addr := range []netip.Addr{pod.V4, pod.V6} {
		slice := newEndpointSlice(namespace, strings.ReplaceAll("by-hand-"+addr.String(), ":", "-"), "web", addr.String())
		slice.Endpoints[0].NodeName = node
		slice.Endpoints[0].TargetRef = &v1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: "web"}
		_, err := slices.Update(w.Context(), slice, metav1.UpdateOptions{})
		if err != nil {
			_, err = slices.Create(w.Context(), slice, metav1.CreateOptions{})
		}
		w.must(err)
	}
}

// bindsOn fails unless a node has rules for these pods.
func (w *world) bindsOn(m *member, pods ...*lab.Host) {
	w.Helper()
	w.binds(m, true, pods)
}

// bindsNot fails if a node has rules for these pods.
func (w *world) bindsNot(m *member, pods ...*lab.Host) {
	w.Helper()
	w.binds(m, false, pods)
}

func (w *world) binds(m *member, want bool, pods []*lab.Host) {
	w.Helper()
	for _, pod := range pods {
		for _, addr := range []netip.Addr{pod.V4, pod.V6} {
			rule := fmt.Sprintf("-A OPENSHIFT-EGRESS-SNAT -s %s/%d ", addr, addr.BitLen())
			if strings.Contains(m.Save(familyOf(addr), "-t", "nat"), rule) != want {
				w.Errorf("%s has a rule for %s: %v, want %v", m.Name, addr, !want, want)
			}
		}
	}
}

// TestPlacement_ChangeElsewhereCostsNothing: when pods of another node change, this node runs no program and
// sends no netlink message, but for those by which it looks for rules of other software, whatever happens. kube-proxy would, which has
// rules for all endpoints: it may write once in an hour, at the start. Looks at the kernel are as rare.
func TestPlacement_ChangeElsewhereCostsNothing(t *testing.T) {
	for name, s := range map[string]settings{"iptables": {nodes: 2}, "nftables": {nodes: 2, nftables: true}} {
		t.Run(name, func(t *testing.T) {
			if s.nftables {
				belongsTo(t, usual)
			}
			changeElsewhereCostsNothing(t, s)
		})
	}
}

func changeElsewhereCostsNothing(t *testing.T, s settings) {
	s.arguments = `iptables-min-sync-period: [1h]`
	w := newIdleWorld(t, s)
	for _, m := range w.members {
		m.Fields["iptablesSyncPeriod"] = "1h"
		m.Configure(s.arguments)
	}
	w.start()
	near, far := w.members[0], w.members[1]
	pod := w.podWithoutSlice("shop", w.ips(10))
	w.place("shop", pod, &near.Name)
	elsewhere := w.endpointsElsewhere(far)
	w.settled()

	before := w.syncs(near)
	trace := near.Traced(func() {
		for i := range 20 {
			elsewhere.replace(10 * (1 + i%2)) // by other pods, more or fewer
			w.knows(near)
			w.knows(far)
		}
	})
	trace.Messages = slices.DeleteFunc(trace.Messages, looksForOthers.MatchString)
	if len(trace.Programs)+len(trace.Messages) > 0 || w.syncs(near) != before {
		t.Errorf("pods of another node come, go and are replaced: %g syncs, %s; want none", w.syncs(near)-before, trace)
	}

	// What was not seen would have been seen.
	trace = near.Traced(func() {
		w.place("shop", pod, &far.Name)
		w.settled()
	})
	trace.Messages = slices.DeleteFunc(trace.Messages, looksForOthers.MatchString)
	if len(trace.Programs)+len(trace.Messages) == 0 || w.syncs(near) == before {
		t.Errorf("a pod of this node goes: %g syncs, %s; want some of each", w.syncs(near)-before, trace)
	}
	t.Logf("a pod of this node goes: %d programs, %d netlink messages", len(trace.Programs), len(trace.Messages))
}

// looksForOthers matches the messages by which a node asks every second whether somebody has changed rules, and reads them if so.
var looksForOthers = regexp.MustCompile(`nlmsg_type=NFNL_SUBSYS_NFTABLES<<8\|NFT_MSG_GET(GEN|TABLE|CHAIN|RULE),`)

// syncs is how often a node has looked at the kernel or written to it for egress SNAT.
func (w *world) syncs(m *member) float64 {
	w.Helper()
	return w.metric(m, "egress_snat_sync_duration_seconds_count")
}

// knows waits until a node knows all objects.
func (w *world) knows(m *member) {
	w.Helper()
	objects, err := w.objects()
	w.must(err)
	w.eventually(func() error { return m.Knows(objects, w.families...) })
}

// endpointsElsewhere is an EndpointSlice of shop/web with endpoints of another node.
type endpointsElsewhere struct {
	*world
	node  *member
	slice *discovery.EndpointSlice
	pods  int // how many there were
}

func (w *world) endpointsElsewhere(node *member) *endpointsElsewhere {
	w.Helper()
	slice, err := w.Client().DiscoveryV1().EndpointSlices("shop").Create(w.Context(), newEndpointSlice("shop", "elsewhere", "web"), metav1.CreateOptions{})
	w.must(err)
	e := &endpointsElsewhere{world: w, node: node, slice: slice}
	e.replace(10)
	return e
}

// replace makes it have so many endpoints, of pods that were not there before.
func (e *endpointsElsewhere) replace(many int) {
	e.Helper()
	e.slice.Endpoints = nil
	for i := range many {
		e.pods++
		e.slice.Endpoints = append(e.slice.Endpoints, discovery.Endpoint{
			Addresses: []string{fmt.Sprintf("10.128.90.%d", 1+i)}, NodeName: &e.node.Name,
			TargetRef: &v1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: fmt.Sprintf("pod-%d", e.pods)},
		})
	}
	slice, err := e.Client().DiscoveryV1().EndpointSlices("shop").Update(e.Context(), e.slice, metav1.UpdateOptions{})
	e.must(err)
	e.slice = slice
}
