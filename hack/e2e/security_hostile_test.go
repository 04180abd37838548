package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/hack/lab"
	egresscluster "github.com/openshift/origin-node/pkg/egress/cluster"
)

// Texts by which an attacker tries to end a transaction of iptables-restore and begin another, to forge lines of
// the log, or to move a terminal's cursor.
var wicked = []string{
	"\nCOMMIT\n*nat\n-F POSTROUTING\nCOMMIT\n",
	"x\n-A POSTROUTING -j ACCEPT\n",
	"x\r\nI0101 00:00:00.000000       1 syncer.go:1] \"Synced egress SNAT rules\" forged=\"true\"\n",
	"\x1b[2J\x1b[1;1H\x1b]0;owned\x07",
	"\u009b31m\u202e\u2028\x7f\x00\n",
	`"; -j DROP # ' $(reboot) ` + "`reboot`" + ` \`,
	strings.Repeat("long ", 5000) + "\n\x1b[2J",
}

// evil is the attacker's namespace. The attacker may write Services, EndpointSlices and pods in it, and no more.
const evil = "evil"

// TestHostileObjects_HarmNobodyElse: whatever somebody writes in a namespace of his own, as far as the
// API server lets him, others' pods leave as before, his own never as others, the nodes hold the
// plan, and log, Events and the commands' output stay readable.
func TestHostileObjects_HarmNobodyElse(t *testing.T) {
	belongsTo(t, usual)
	t.Run("iptables", func(t *testing.T) { hostileObjectsHarmNobodyElse(t, settings{nodes: 2}) })
	t.Run("nftables", func(t *testing.T) { hostileObjectsHarmNobodyElse(t, settings{nodes: 2, nftables: true}) })
}

func hostileObjectsHarmNobodyElse(t *testing.T, s settings) {
	w := newIdleWorld(t, s)
	for _, m := range w.members {
		m.Start("--loglevel=5")
	}
	for _, m := range w.members {
		m.Ready()
	}
	victims := w.shop(append(w.ips(10), w.ips(11)...)...)
	stranger := w.runPod("shop", "stranger", w.members[0], nil)
	owner, err := w.Client().CoreV1().Services("shop").Get(w.Context(), "web", metav1.GetOptions{})
	w.must(err)
	w.younger(owner)
	h := &hostileNamespace{world: w, victims: victims}
	h.move()
	var known identities
	known.expect(w.ips(10), victims...)
	known.expect([]string{stranger.Node.V4.String(), stranger.Node.V6.String()}, stranger)
	residents := w.ask(&known, append(victims, stranger)...)
	intruders := lab.StartTraffic(lab.TrafficConfig{To: w.outside(), Rate: 20, Timeout: answered, Check: h.check}, h.pods...)
	t.Cleanup(func() { intruders.Stop() })

	for _, attack := range []struct {
		name string
		do   func()
	}{
		{"a thousand external IPs", h.manyAddresses},
		{"addresses of others in disguise, and such that are none", h.oddAddresses},
		{"what older API servers let in", h.oldObjects},
		{"annotations", h.annotations},
		{"names of the greatest length", h.longNames},
		{"a thousand endpoints, some with many addresses", h.hugeSlice},
		{"many slices of the same endpoints", h.manySlices},
		{"pods' names that are none", h.oddPods},
		{"others' pods", h.othersPods},
		{"what no endpoint has", h.oddSlices},
	} {
		w.scenario(attack.name, func() {
			h.accepted, h.refused = 0, 0
			attack.do()
			h.harmless()
			w.Logf("%d objects are accepted, %d refused by the API server", h.accepted, h.refused)
		})
	}
	w.scenario("all that the commands print of all this", func() {
		for _, command := range []string{"list", "refused", "explain " + evil + "/web", "explain shop/web", "explain 10.128.71.1"} {
			for _, output := range []string{"table", "wide", "json", "yaml"} {
				h.readable(command, output)
			}
		}
		h.readable("verify", "")
		out, errs, status := h.members[0].Openshift("start", "node", "--config="+h.members[0].Config(), "--dry-run")
		text := indented.ReplaceAllString(out+errs, "") // as nft does
		if status != 0 || !printable(text) {
			h.Errorf("the dry run ends with status %d, %.300q, printable: %v", status, errs, printable(text))
		}
	})
	w.scenario("life goes on", func() {
		w.namespace("fresh")
		w.service("fresh", "web", w.ips(12), nil, tcp80, udp80)
		pod := w.runPod("fresh", "web", w.members[1], app("web"))
		w.bound("fresh", "web", 1)
		w.leaves("tcp", pod, w.ips(12)...)
		svc, err := w.Client().CoreV1().Services("fresh").Get(w.Context(), "web", metav1.GetOptions{})
		w.must(err)
		for _, ip := range svc.Spec.ClusterIPs {
			to := netip.AddrPortFrom(netip.MustParseAddr(ip), 80)
			w.seen("tcp", victims[0], to, like(to.Addr(), victims[0]))
		}
	})
	w.undisturbed(residents)
	sum := intruders.Stop()
	if sum.Wrong > 0 || sum.Answered == 0 {
		w.Errorf("the intruders: %s", sum)
	}
	w.Logf("intruders: %s", sum)
}

// hostileNamespace are what goes on in the namespace evil.
type hostileNamespace struct {
	*world
	victims, pods []*lab.Host
	// accepted and refused count what the API server thought of the objects.
	accepted, refused int
	objects           int
}

// move makes the namespace with a Service and a pod on each node.
func (h *hostileNamespace) move() {
	h.Helper()
	h.namespace(evil)
	oldest := h.service(evil, "web", h.ips(66), nil, tcp80, udp80)
	defer h.younger(oldest) // which keeps binding the pods
	for i, m := range h.members {
		h.pods = append(h.pods, h.runPod(evil, fmt.Sprintf("pod-%d", i+1), m, app("web")))
	}
	h.bound(evil, "web", len(h.pods))
}

// check is for traffic: they are seen as their node, or as an address that they may have.
func (h *hostileNamespace) check(q lab.Question) error {
	if q.Err != nil || q.Seen == like(q.Seen, q.From.Node) || !h.somebodys(q.Seen) {
		return nil
	}
	return errors.New("the attacker's pods must not have this address")
}

// somebodys returns whether an address is one that no pod of the namespace may use.
func (h *hostileNamespace) somebodys(addr netip.Addr) bool {
	for _, inside := range []netip.Prefix{lab.ClusterV4, lab.ClusterV6, cluster.ServiceCIDRV4, cluster.ServiceCIDRV6} {
		if inside.Contains(addr) {
			return true
		}
	}
	for _, ip := range slices.Concat(h.ips(10), h.ips(11), h.ips(12)) {
		if addr == netip.MustParseAddr(ip) {
			return true
		}
	}
	for _, host := range h.Nodes() {
		if addr == like(addr, host) {
			return true
		}
	}
	// Of the API servers those count that default/kubernetes names.
	return addr == h.Control().V4 || addr.Is4In6() || !addr.IsGlobalUnicast() || addr.Is4() && (addr.As4()[0] == 0 || addr.As4()[0] >= 240)
}

// note counts what came of an object. Every refusal must be for its content.
func (h *hostileNamespace) note(err error) bool {
	h.Helper()
	switch {
	case err == nil:
		h.accepted++
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err), strings.Contains(err.Error(), "request is too large"):
		h.refused++
	default:
		h.Fatal(err)
	}
	return err == nil
}

// claim makes a Service of the pods.
func (h *hostileNamespace) claim(externalIPs []string, change func(*v1.Service)) bool {
	h.Helper()
	h.objects++
	svc := cluster.NewService(evil, fmt.Sprintf("claim-%d", h.objects), app("web"), externalIPs, tcp80, udp80)
	if change != nil {
		change(svc)
	}
	svc, err := h.CreateService(h.Context(), svc)
	if err == nil { // with a pod of its own, which no older Service binds
		for i, ip := range []string{"10.128.80.%d", "fd00:10:128:80::%d"} {
			slice := newEndpointSlice(evil, fmt.Sprintf("%s-%d", svc.Name, i), svc.Name, fmt.Sprintf(ip, h.objects))
			_, err := h.Client().DiscoveryV1().EndpointSlices(evil).Create(h.Context(), slice, metav1.CreateOptions{})
			h.must(err)
		}
	}
	return h.note(err)
}

// slice makes an EndpointSlice of the Service web.
func (h *hostileNamespace) slice(change func(*discovery.EndpointSlice), addresses ...string) bool {
	h.Helper()
	h.objects++
	slice := newEndpointSlice(evil, fmt.Sprintf("slice-%d", h.objects), "web", addresses...)
	if change != nil {
		change(slice)
	}
	_, err := h.Client().DiscoveryV1().EndpointSlices(evil).Create(h.Context(), slice, metav1.CreateOptions{})
	return h.note(err)
}

// mustBe fails unless something that makes the test worth while was accepted.
func (h *hostileNamespace) mustBe(accepted bool) {
	h.Helper()
	if !accepted {
		h.Error("the API server refuses the object, so the test shows nothing")
	}
}

func (h *hostileNamespace) manyAddresses() {
	var four, six []string
	for i := range 1000 {
		four = append(four, fmt.Sprintf("198.18.%d.%d", i/250, 1+i%250))
		six = append(six, fmt.Sprintf("2001:db8:66::%x", 1+i))
	}
	h.mustBe(h.claim(four, nil))
	h.mustBe(h.claim(append(six, h.ips(10)...), nil))
}

// disguises are the victims' addresses, and others that are not for everybody, written in all ways.
func (h *hostileNamespace) disguises() []string {
	return []string{
		"203.0.113.10", "203.0.113.11", "203.0.113.010", "203.000.113.10", "::ffff:203.0.113.10", "::ffff:cb00:710a", "::203.0.113.10",
		"2001:db8:113::10", "2001:DB8:113:0:0:0:0:10", "2001:0db8:0113::0010", "2001:db8:113::10%eth0", "fe80::1%\x1b[2J",
		"203.0.113.10/32", " 203.0.113.10", "203.0.113.10\n", "0xcb.0.113.10", "3405803786",
		"0.0.0.0", "::", "127.0.0.1", "::1", "255.255.255.255", "224.0.0.1", "ff02::1", "169.254.0.1", "fe80::1", "240.0.0.1", "0.1.2.3",
		h.victims[0].V4.String(), h.victims[0].V6.String(), h.Nodes()[1].V4.String(), h.Nodes()[1].V6.String(), h.Control().V4.String(),
		h.Control().V6.String(), "172.30.0.1", "fd00:172:30::1", "", "evil", "\n-A POSTROUTING -j ACCEPT",
	}
}

func (h *hostileNamespace) oddAddresses() {
	for _, text := range h.disguises() {
		h.claim([]string{text}, nil)
		h.claim([]string{text, "198.51.100.67"}, func(s *v1.Service) { s.Annotations = map[string]string{egresscluster.Annotation: text} })
	}
}

// oldObjects go past the API server into its store, as those that a former one has validated.
func (h *hostileNamespace) oldObjects() {
	old := []string{"203.0.113.010", "203.000.113.10", "::ffff:203.0.113.10", "2001:DB8:113:0:0:0:0:10", "0.0.0.0", "198.051.100.068"}
	for i, text := range old {
		svc := cluster.NewService(evil, fmt.Sprintf("old-%d", i), app("web"), []string{text}, tcp80)
		svc.Spec.IPFamilyPolicy, svc.Spec.IPFamilies = ptr.To(v1.IPFamilyPolicySingleStack), []v1.IPFamily{v1.IPv4Protocol}
		svc.Spec.ClusterIP = fmt.Sprintf("172.30.66.%d", 1+i)
		svc.Spec.ClusterIPs = []string{svc.Spec.ClusterIP}
		svc.TypeMeta, svc.CreationTimestamp = metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, metav1.Now()
		svc.UID = "00000000-0000-0000-0000-00000000000" + svc.UID
		h.store("services/specs", svc.Name, svc)
		slice := newEndpointSlice(evil, fmt.Sprintf("old-%d", i), svc.Name, fmt.Sprintf("010.128.066.%03d", 1+i), fmt.Sprintf("10.128.66.%03d", 100+i))
		slice.TypeMeta = metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}
		h.store("endpointslices", slice.Name, slice)
	}
}

// store writes an object into etcd.
func (h *hostileNamespace) store(kind, name string, object any) {
	h.Helper()
	value, err := json.Marshal(object)
	h.must(err)
	body, err := json.Marshal(map[string][]byte{"key": []byte("/registry/" + kind + "/" + evil + "/" + name), "value": value})
	h.must(err)
	ctx, cancel := context.WithTimeout(h.Context(), soon)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1:2379/v3/kv/put", bytes.NewReader(body))
	h.must(err)
	client := &http.Client{Transport: &http.Transport{DialContext: h.Control().DialContext, DisableKeepAlives: true}}
	response, err := client.Do(request)
	h.must(err)
	defer response.Body.Close()
	if answer, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		h.Fatalf("etcd says %s: %s, %v", response.Status, answer, err)
	}
	h.accepted++
}

func (h *hostileNamespace) annotations() {
	for _, text := range append(wicked, strings.Repeat("\x1b", 200_000)) {
		h.mustBe(h.claim([]string{"198.51.100.69"}, func(s *v1.Service) {
			s.Annotations = map[string]string{egresscluster.Annotation: text, "example.com/note": text[:min(len(text), 50_000)]}
		}))
		h.mustBe(h.slice(func(s *discovery.EndpointSlice) {
			s.Annotations = map[string]string{v1.EndpointsLastChangeTriggerTime: text, "example.com/note": text[:min(len(text), 50_000)]}
		}, "10.128.67.1"))
	}
	for _, text := range []string{"9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", time.Now().Add(time.Hour).Format(time.RFC3339Nano)} {
		h.mustBe(h.slice(func(s *discovery.EndpointSlice) {
			s.Annotations = map[string]string{v1.EndpointsLastChangeTriggerTime: text}
		}, "10.128.67.2"))
	}
}

func (h *hostileNamespace) longNames() {
	namespace := strings.Repeat("n", 63)
	h.namespace(namespace)
	name := strings.Repeat("s", 63)
	h.service(namespace, name, append([]string{"198.51.100.70"}, h.ips(10)...), nil, v1.ServicePort{Name: strings.Repeat("p", 63), Port: 80})
	slice := newEndpointSlice(namespace, strings.Repeat("e", 253), name, "10.128.68.1")
	slice.Ports[0].Name = ptr.To(strings.Repeat("p", 63))
	slice.Endpoints[0].TargetRef = &v1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: strings.Repeat("p", 253)}
	_, err := h.Client().DiscoveryV1().EndpointSlices(namespace).Create(h.Context(), slice, metav1.CreateOptions{})
	h.mustBe(h.note(err))
	for _, text := range []string{`web" -j ACCEPT`, "web\n", "Web", strings.Repeat("w", 64), "../web", "web\x1b"} {
		h.claim(h.ips(66), func(s *v1.Service) { s.Name = text })
		h.claim(h.ips(66), func(s *v1.Service) { s.Spec.Ports[0].Name = text })
		h.claim(h.ips(66), func(s *v1.Service) { s.Spec.Ports[0].Protocol = v1.Protocol("TCP" + text) })
		h.slice(func(s *discovery.EndpointSlice) { s.Ports[0].Name = &text }, "10.128.68.2")
		h.slice(func(s *discovery.EndpointSlice) { s.Endpoints[0].NodeName = &text }, "10.128.68.2")
	}
}

// hugeSlice has as many endpoints as there can be, of which many have several addresses.
func (h *hostileNamespace) hugeSlice() {
	addresses := by(h.T, 3, 3, 15)
	h.mustBe(h.slice(func(s *discovery.EndpointSlice) {
		for i := range 1000 {
			var endpoint discovery.Endpoint
			for j := range addresses {
				endpoint.Addresses = append(endpoint.Addresses, fmt.Sprintf("10.%d.%d.%d", 129+j/64, j%64*4+i/250, 1+i%250))
			}
			s.Endpoints = append(s.Endpoints, endpoint)
		}
	}))
	h.slice(func(s *discovery.EndpointSlice) { // one more than there can be
		s.Endpoints = slices.Repeat([]discovery.Endpoint{{Addresses: []string{"10.131.0.1"}}}, 1001)
	})
}

func (h *hostileNamespace) manySlices() {
	for i := range 40 {
		var addresses []string
		for j := range 20 {
			addresses = append(addresses, fmt.Sprintf("10.128.70.%d", 1+(i+j)%50))
		}
		h.mustBe(h.slice(func(s *discovery.EndpointSlice) {
			for j := range s.Endpoints {
				s.Endpoints[j].TargetRef = &v1.ObjectReference{Kind: "Pod", Namespace: evil, Name: fmt.Sprintf("pod-%d", i)}
				s.Endpoints[j].NodeName = ptr.To(fmt.Sprintf("node-%d", i%5))
			}
		}, addresses...))
	}
}

// oddPods: API servers do not validate the pods' names in an EndpointSlice.
func (h *hostileNamespace) oddPods() {
	for i, text := range wicked {
		ip := fmt.Sprintf("10.128.71.%d", 1+i)
		for _, ref := range []v1.ObjectReference{
			{Kind: "Pod", Namespace: evil, Name: text}, {Kind: "Pod", Namespace: text, Name: text}, {Kind: text, Namespace: evil, Name: "pod"},
		} {
			h.mustBe(h.slice(func(s *discovery.EndpointSlice) {
				for j := range s.Endpoints {
					s.Endpoints[j].TargetRef = &ref
				}
			}, ip, "10.128.71.100"))
		}
	}
}

// othersPods: the victims have an older Service, whose word counts; whose pod another one is, its own
// namespace's slices say. See README.md, Limits.
func (h *hostileNamespace) othersPods() {
	for i, ref := range []*v1.ObjectReference{
		nil,
		{Kind: "Pod", Namespace: "shop", Name: "web-1"},
		{Kind: "Pod", Namespace: evil, Name: "pod-1"},
		{Kind: "Node", Name: "node-1"},
	} {
		point := func(s *discovery.EndpointSlice) {
			for j := range s.Endpoints {
				s.Endpoints[j].TargetRef = ref
			}
		}
		h.mustBe(h.slice(point, h.victims[i%2].V4.String()))
		h.mustBe(h.slice(point, h.victims[i%2].V6.String()))
		h.mustBe(h.slice(point, h.Nodes()[0].V4.String(), h.Outside().V4.String(), h.Control().V4.String()))
	}
}

func (h *hostileNamespace) oddSlices() {
	for _, text := range h.disguises() {
		h.slice(nil, text)
	}
	h.slice(func(s *discovery.EndpointSlice) { s.AddressType = discovery.AddressTypeFQDN }, "www.example.com")
	h.slice(func(s *discovery.EndpointSlice) { s.AddressType = "IP\n" }, "10.128.72.1")
	h.slice(func(s *discovery.EndpointSlice) { s.Labels[discovery.LabelServiceName] = "../shop/web" }, "10.128.72.1")
	h.mustBe(h.slice(func(s *discovery.EndpointSlice) { s.Labels = nil }, h.victims[0].V4.String()))
	h.mustBe(h.slice(func(s *discovery.EndpointSlice) { s.Ports, s.Endpoints = nil, nil }))
	h.slice(func(s *discovery.EndpointSlice) {
		s.Endpoints[0].Hostname, s.Endpoints[0].Zone = &wicked[3], &wicked[3]
		s.Endpoints[0].Hints = &discovery.EndpointHints{ForZones: []discovery.ForZone{{Name: wicked[0]}}}
	}, "10.128.72.1")
	h.slice(func(s *discovery.EndpointSlice) { s.Endpoints[0].Zone = &wicked[0] }, "10.128.72.1")
}

// harmless fails if a node does not hold the plan, or if log, commands or Events are not readable.
func (h *hostileNamespace) harmless() {
	h.Helper()
	h.settled()
	for _, m := range h.members {
		h.readableLog(m)
	}
	h.readable("list", "wide")
	h.readable("refused", "json")
	h.readableEvents()
	h.bindings("shop/web", 2*2*len(h.victims))
}

// bindings fails unless a Service has this many in the whole cluster, and the bindings of other namespaces use
// addresses that these may have. That the nodes hold these bindings, each its own, is for settled.
func (h *hostileNamespace) bindings(service string, want int) {
	h.Helper()
	objects, err := h.world.objects()
	h.must(err)
	got, others := 0, 0
	for _, b := range objects.Bindings() {
		switch {
		case b.Service.String() == service:
			got++
		case b.Service.Namespace == "shop" || b.Service.Namespace == "fresh" || h.somebodys(b.EgressIP):
			h.Errorf("%s gives %s the address %s", b.Service, b.Pod, b.EgressIP)
		default:
			others++
		}
	}
	if got != want || others == 0 {
		h.Errorf("%s has %d bindings, want %d; others have %d, want some", service, got, want, others)
	}
}

// logLine is an entry of the log, or a line that belongs to the one above and looks like it, with and
// without white space in front.
var logLine = regexp.MustCompile(`^([IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ [^ ]+:\d+\] |\t\| | >$)`)

func (h *hostileNamespace) readableLog(m *member) {
	h.Helper()
	text := m.Printed.String()
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if !logLine.MatchString(line) || !printable(strings.TrimPrefix(line, "\t")) {
			h.Fatalf("the log of %s has the line %.300q", m.Name, line)
		}
		if len(line) > 48<<10 {
			h.Errorf("the log of %s has a line of %d bytes, of which journald makes several: %.300q", m.Name, len(line), line)
		}
	}
	m.Printed.Reset()
}

var indented = regexp.MustCompile(`(?m)^\t+`)

// printable: nothing moves a cursor.
func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' })
}

// readable fails if a command of the first node prints what is not.
func (h *hostileNamespace) readable(command, output string) {
	h.Helper()
	m := h.members[0]
	args := append([]string{"egress", "--socket=" + m.Socket()}, strings.Fields(command)...)
	if output != "" {
		args = append(args, "--output="+output)
	}
	out, errs, status := m.Openshift(args...)
	if status != 0 || errs != "" || !printable(out) {
		h.Errorf("%s: %q with -o %s: status %d, stderr %.300q, printable: %v", m.Name, command, output, status, errs, printable(out))
	}
	widest := 0
	for line := range strings.Lines(out) {
		widest = max(widest, len(line))
	}
	if (output == "table" || output == "wide") && widest > 2000 {
		h.Errorf("%s: %q with -o %s prints a line of %d bytes", m.Name, command, output, widest)
	}
}

// readableEvents fails unless the Events about refusals are readable, and all of them are in the attacker's
// namespaces.
func (h *hostileNamespace) readableEvents() {
	h.Helper()
	events, err := h.Client().CoreV1().Events("").List(h.Context(), metav1.ListOptions{})
	h.must(err)
	for _, event := range events.Items {
		if event.Source.Component != eventSource {
			continue
		}
		if event.Namespace == "shop" || event.Namespace == "fresh" {
			h.Errorf("an Event in %s: %s", event.Namespace, event.Message)
		}
		if !printable(event.Message) || strings.Contains(event.Message, "\n") {
			h.Errorf("an Event says %q", event.Message)
		}
	}
}
