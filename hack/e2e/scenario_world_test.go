package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/hack/lab"
)

// What the scenarios do in a world, and what they see.

var web = map[string]string{"app": "web"}

// What a Service offers at port 80 of what its pods serve.
var (
	tcp80 = v1.ServicePort{Name: "tcp", Port: 80, TargetPort: intstr.FromInt32(port), Protocol: v1.ProtocolTCP}
	udp80 = v1.ServicePort{Name: "udp", Port: 80, TargetPort: intstr.FromInt32(port), Protocol: v1.ProtocolUDP}
)

// shop makes a namespace with a Service web with these external IPs and a pod web-N on each node,
// bound for TCP and UDP.
func (w *world) shop(externalIPs ...string) []*lab.Host {
	w.Helper()
	return w.shopOf(cluster.NewService("shop", "web", web, externalIPs, tcp80, udp80))
}

// shopOf is shop with this Service, shop/web.
func (w *world) shopOf(service *v1.Service) []*lab.Host {
	w.Helper()
	_, err := w.CreateNamespace(w.Context(), "shop")
	w.must(err)
	_, err = w.CreateService(w.Context(), service)
	w.must(err)
	var pods []*lab.Host
	for i, m := range w.members {
		pods = append(pods, w.runPod("shop", "web-"+string(rune('1'+i)), m, web))
	}
	w.bound("shop", "web", len(pods))
	return pods
}

// ips is an external IP for each family of the cluster, by its number.
func (w *world) ips(number int) []string {
	var result []string
	for _, family := range w.families {
		if family == v1.IPv4Protocol {
			result = append(result, fmt.Sprintf("203.0.113.%d", number))
		} else {
			result = append(result, fmt.Sprintf("2001:db8:113::%d", number))
		}
	}
	return result
}

// namespace makes a namespace.
func (w *world) namespace(name string) {
	w.Helper()
	_, err := w.CreateNamespace(w.Context(), name)
	w.must(err)
}

// service makes a Service for the pods that app selects. change, which may be nil, makes it another one than
// cluster.NewService does.
func (w *world) service(namespace, name string, externalIPs []string, change func(*v1.Service), ports ...v1.ServicePort) *v1.Service {
	w.Helper()
	svc := cluster.NewService(namespace, name, app(name), externalIPs, ports...)
	if change != nil {
		change(svc)
	}
	svc, err := w.CreateService(w.Context(), svc)
	w.must(err)
	return svc
}

// app are the labels of the pods of a Service.
func app(service string) map[string]string { return map[string]string{"app": service} }

// editService changes a Service as somebody with an editor does.
func (w *world) editService(namespace, name string, edit func(*v1.Service)) {
	w.Helper()
	services := w.Client().CoreV1().Services(namespace)
	w.eventually(func() error {
		svc, err := services.Get(w.Context(), name, metav1.GetOptions{})
		if err == nil {
			edit(svc)
			_, err = services.Update(w.Context(), svc, metav1.UpdateOptions{})
		}
		return err
	})
}

func (w *world) deleteService(namespace, name string) {
	w.Helper()
	w.must(w.Client().CoreV1().Services(namespace).Delete(w.Context(), name, metav1.DeleteOptions{}))
}

// podByHand runs a pod that the kubelet does not care about, so that its status is the test's. change,
// which may be nil, makes it another one than cluster.NewPod does. It goes with the scenario.
func (w *world) podByHand(namespace, name string, on *member, change func(*v1.Pod)) (*v1.Pod, *lab.Host) {
	w.Helper()
	pod := cluster.NewPod(namespace, name, on.Name, app(name))
	if change != nil {
		change(pod)
	}
	host := on.Host
	if !pod.Spec.HostNetwork {
		var err error
		host, err = w.AddPodOn(on.Host)
		w.must(err)
		w.serve(host)
		w.nobodys(host)
	}
	pod, err := w.CreatePod(w.Context(), pod, host.V4, host.V6)
	w.must(err)
	w.Cleanup(func() {
		ctx := context.WithoutCancel(w.Context())
		if err := w.DeletePod(ctx, namespace, name); err != nil {
			w.Error(err)
		}
		if host != on.Host {
			if err := w.RemovePod(host); err != nil {
				w.Error(err)
			}
		}
	})
	return pod, host
}

// nobodys waits until no EndpointSlice names a new pod's addresses, and no node acts on one that did: another pod may
// have had them a moment before.
func (w *world) nobodys(pod *lab.Host) {
	w.Helper()
	w.eventually(func() error {
		objects, err := w.objects()
		if err != nil {
			return err
		}
		for _, slice := range objects.EndpointSlices {
			for _, endpoint := range slice.Endpoints {
				if slices.Contains(endpoint.Addresses, pod.V4.String()) || slices.Contains(endpoint.Addresses, pod.V6.String()) {
					return fmt.Errorf("EndpointSlice %s/%s names %v, which is a new pod's now", slice.Namespace, slice.Name, endpoint.Addresses)
				}
			}
		}
		return nil
	})
	w.settled()
}

// endpoint waits until the Service's EndpointSlices say of a pod's addresses what want accepts.
func (w *world) endpoint(namespace, service string, pod *lab.Host, want func(discovery.EndpointConditions) bool) {
	w.Helper()
	w.eventually(func() error {
		list, err := w.Client().DiscoveryV1().EndpointSlices(namespace).List(w.Context(), metav1.ListOptions{
			LabelSelector: discovery.LabelServiceName + "=" + service,
		})
		if err != nil {
			return err
		}
		missing := at(pod, 0)
		for _, slice := range list.Items {
			for _, endpoint := range slice.Endpoints {
				if want(endpoint.Conditions) {
					missing = slices.DeleteFunc(missing, func(a netip.AddrPort) bool {
						return slices.Contains(endpoint.Addresses, a.Addr().String())
					})
				}
			}
		}
		if len(missing) > 0 {
			return fmt.Errorf("the endpoints of %s/%s are not so yet: %v", namespace, service, missing)
		}
		return nil
	})
}

func ready(c discovery.EndpointConditions) bool       { return ptr.Deref(c.Ready, false) }
func notReady(c discovery.EndpointConditions) bool    { return !ptr.Deref(c.Ready, true) }
func terminating(c discovery.EndpointConditions) bool { return ptr.Deref(c.Terminating, false) }

// reconfigure gives all nodes other arguments, as an administrator does: each ends by itself, and its service manager
// starts it anew.
func (w *world) reconfigure(arguments string) {
	w.Helper()
	for _, m := range w.members {
		m.Configure(arguments)
	}
	for _, m := range w.members {
		m.Ends(75)
		m.Anew()
	}
	for _, m := range w.members {
		m.Ready()
	}
}

// asks returns the address that a new flow of a host is seen from: the first answer counts.
func (w *world) asks(protocol string, from *lab.Host, to netip.AddrPort) (seen netip.Addr) {
	w.Helper()
	w.eventually(func() (err error) {
		seen, err = w.askWithin(2*time.Second, protocol, from, to)
		return err
	})
	return seen
}

// metrics are a node's. It waits for one that does not serve them yet.
func (w *world) metrics(m *member) (text string) {
	w.Helper()
	w.eventually(func() error {
		got, err := w.get(m.Host, metricsAt, "/metrics")
		if err != nil && !errors.Is(err, syscall.ECONNREFUSED) {
			w.Fatal(err)
		}
		text = got.body
		return err
	})
	return text
}

// metric is the sum over all labels of a node's metric.
func (w *world) metric(m *member, name string) float64 {
	w.Helper()
	return metric(w.T, w.metrics(m), name)
}

// askWithin asks once, in a new flow, which address a host is seen from.
func (w *world) askWithin(patience time.Duration, protocol string, from *lab.Host, to netip.AddrPort) (netip.Addr, error) {
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	return from.Ask(ctx, network(protocol, to), to, 0)
}

// network is the name of a protocol over the family of an address: tcp4.
func network(protocol string, to netip.AddrPort) string {
	if to.Addr().Is4() {
		return protocol + "4"
	}
	return protocol + "6"
}

// seen fails unless the first answer to a new flow says that the host is seen as want.
func (w *world) seen(protocol string, from *lab.Host, to netip.AddrPort, want netip.Addr) {
	w.Helper()
	if seen := w.asks(protocol, from, to); seen != want {
		w.Errorf("%s to %s (%s) is seen as %s, want %s", from.Name, to, protocol, seen, want)
	}
}

// leaves fails unless new flows of a host to the outside are seen as these addresses, and as its node in a
// family that has none of them.
func (w *world) leaves(protocol string, from *lab.Host, as ...string) {
	w.Helper()
	for _, to := range w.outside() {
		w.seen(protocol, from, to, identity(from, to, as))
	}
}

// identity is the one of these addresses that is of the family of a destination, or the node's.
func identity(from *lab.Host, to netip.AddrPort, as []string) netip.Addr {
	for _, text := range as {
		if addr := netip.MustParseAddr(text); addr.Is4() == to.Addr().Is4() {
			return addr
		}
	}
	node := from
	if from.Node != nil {
		node = from.Node
	}
	return like(to.Addr(), node)
}

// like is the address of a host that is of another's family.
func like(addr netip.Addr, host *lab.Host) netip.Addr {
	if addr.Is4() {
		return host.V4
	}
	return host.V6
}

// outer is the address at which nodes speak with a host: IPv4 if the cluster has it.
func outer(h *lab.Host) netip.Addr {
	if h.V4.IsValid() {
		return h.V4
	}
	return h.V6
}

// masqueraded fails unless a pod has seen a client as the node by which it came: by its address on the way to
// another node, and by that on the pods' network on the way to its own.
func (w *world) masqueraded(node *lab.Host, seen netip.Addr, to netip.AddrPort) {
	w.Helper()
	want := []netip.Addr{node.V4, node.V6}
	for _, cidr := range node.PodCIDRs() {
		want = append(want, cidr.Addr().Next())
	}
	if !slices.Contains(want, seen) {
		w.Errorf("the client of %s is seen as %s, want one of %s", to, seen, want)
	}
}

// refused waits until every node says that a Service is refused something for this reason, or, if the reason is
// empty, nothing. What is refused of a single pod a node says when it is asked for the whole cluster.
func (w *world) refused(service, reason string) {
	w.Helper()
	w.eventually(func() error {
		for _, m := range w.members {
			if err := m.saysRefused(service, reason, "--all"); err != nil {
				return err
			}
		}
		return nil
	})
}

// refusedOn waits until these nodes and no others refuse an endpoint of a Service for this reason: those
// that would bind it.
func (w *world) refusedOn(service, reason string, nodes ...*member) {
	w.Helper()
	w.eventually(func() error {
		for _, m := range w.members {
			want := ""
			if slices.Contains(nodes, m) {
				want = reason
			}
			if err := m.saysRefused(service, want); err != nil {
				return err
			}
		}
		return nil
	})
}

// saysRefused returns an error unless a node lists a refusal of a Service for this reason, or, if the reason
// is empty, none.
func (m *member) saysRefused(service, reason string, flags ...string) error {
	out, errs, status := m.Openshift(append([]string{"egress", "refused", "--socket=" + m.Socket(), "--no-headers"}, flags...)...)
	if status != 0 {
		return fmt.Errorf("%s: %s", m.Name, errs)
	}
	found := false
	for line := range strings.Lines(out) {
		about := strings.HasPrefix(line, service+" ")
		if about && reason == "" {
			return fmt.Errorf("%s: %s", m.Name, line)
		}
		found = found || about && strings.Contains(line, " "+reason+" ")
	}
	if !found && reason != "" {
		return fmt.Errorf("%s does not say that %s is refused, %s, but:\n%s", m.Name, service, reason, out)
	}
	return nil
}

// warned waits until a Service has an Event with this reason and none with another, and returns one.
func (w *world) warned(namespace, service, reason string) (event v1.Event) {
	w.Helper()
	svc := w.getService(namespace, service)
	w.eventually(func() error {
		events, err := w.warnings(svc)
		if err != nil {
			return err
		}
		other := func(e v1.Event) bool { return e.Reason != reason }
		if len(events) == 0 || slices.ContainsFunc(events, other) {
			return fmt.Errorf("%s/%s has these Events, want %s: %v", namespace, service, reason, told(events))
		}
		event = events[0]
		return nil
	})
	return event
}

// saidOnce fails unless an Event about a refusal that has been lifted is as it was: nobody deletes or
// repeats it.
func (w *world) saidOnce(event v1.Event) {
	w.Helper()
	now, err := w.Client().CoreV1().Events(event.Namespace).Get(w.Context(), event.Name, metav1.GetOptions{})
	if err != nil || now.Count != 1 {
		w.Errorf("the Event %s, %s, is there %d times, %v; want once", event.Reason, event.Message, now.Count, err)
	}
}

// warnings are the nodes' Events about a Service, not about another one of the same name. The API server has
// some of its own.
func (w *world) warnings(svc *v1.Service) ([]v1.Event, error) {
	list, err := w.Client().CoreV1().Events(svc.Namespace).List(w.Context(), metav1.ListOptions{
		FieldSelector: fields.Set{"involvedObject.kind": "Service", "involvedObject.uid": string(svc.UID)}.String(),
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(e v1.Event) bool { return e.Source.Component != eventSource }), nil
}

// eventSource is the component that nodes write Events as.
const eventSource = "network.openshift.io/egress-snat"

// hasEvent returns an error unless an Event of a reason has these texts. about is its object, for example Node/node-1, or empty for any.
func (w *world) hasEvent(reason, about string, texts ...string) error {
	events, err := w.Client().CoreV1().Events("").List(w.Context(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, e := range events.Items {
		of := e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name
		lacks := slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(e.Message, text) })
		if e.Reason == reason && (about == "" || about == of) && !lacks {
			return nil
		}
	}
	return fmt.Errorf("no Event %s about %q says %q; there are: %v", reason, about, texts, told(events.Items))
}

// told is what Events say.
func told(events []v1.Event) (result []string) {
	for _, e := range events {
		result = append(result, e.Reason+": "+e.Message)
	}
	return result
}

// flow is one that began under an identity, and is to end with it.
type flow struct {
	*lab.Flow
	protocol string
	from     *lab.Host
	to       netip.AddrPort
}

// flows opens one of each protocol and family to the outside.
func (w *world) flows(from *lab.Host, protocols ...string) (opened []flow) {
	w.Helper()
	for _, protocol := range protocols {
		for _, to := range w.outside() {
			f, err := from.Dial(w.Context(), network(protocol, to), to, 0)
			w.must(err)
			w.Cleanup(func() { _ = f.Close() })
			opened = append(opened, flow{f, protocol, from, to})
		}
	}
	return opened
}

// ended fails unless the flows, whose identity is not right any more, have ended: TCP is reset, UDP is seen as
// these addresses.
func (w *world) ended(flows []flow, as ...string) {
	w.Helper()
	for _, f := range flows {
		want := identity(f.from, f.to, as)
		if f.protocol == "udp" {
			var seen netip.Addr
			w.eventually(func() (err error) {
				seen, err = f.Ask(w.Context())
				return err
			})
			if seen != want {
				w.Errorf("the UDP flow of %s to %s is seen as %s, want %s", f.from.Name, f.to, seen, want)
			}
			continue
		}
		if seen, err := f.Ask(w.Context()); !errors.Is(err, syscall.ECONNRESET) {
			w.Errorf("the TCP flow of %s to %s is not reset, but seen as %s: %v", f.from.Name, f.to, seen, err)
		}
	}
}

// live fails unless the flows are what they were.
func (w *world) live(flows []flow, as ...string) {
	w.Helper()
	for _, f := range flows {
		if seen, err := f.Ask(w.Context()); err != nil || seen != identity(f.from, f.to, as) {
			w.Errorf("the %s flow of %s to %s is seen as %s, want %s: %v", f.protocol, f.from.Name, f.to, seen, identity(f.from, f.to, as), err)
		}
	}
}

// younger waits until a Service that is made now is younger than this one.
func (w *world) younger(than *v1.Service) {
	w.Helper()
	w.eventually(func() error {
		if time.Now().Unix() <= than.CreationTimestamp.Unix() {
			return errors.New("creation times have seconds and no less")
		}
		return nil
	})
}

// ask lets hosts ask the outside which address it sees them from, until undisturbed ends that.
func (w *world) ask(i *identities, hosts ...*lab.Host) *lab.Traffic {
	traffic := lab.StartTraffic(lab.TrafficConfig{To: w.outside(), Rate: 50, Timeout: 15 * time.Second, Check: i.check}, hosts...)
	w.Cleanup(func() { traffic.Stop() })
	return traffic
}

// undisturbed ends traffic, and fails if any of it was wrong, unanswered or broken.
func (w *world) undisturbed(traffic *lab.Traffic) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), soon)
	defer cancel()
	w.must(traffic.Round(ctx))
	sum := traffic.Stop()
	if sum.Wrong+sum.Unanswered+sum.Broken > 0 {
		w.Errorf("the traffic was disturbed: %s", sum)
	}
	line, _, _ := strings.Cut(sum.String(), "\n")
	w.Log(line)
}

// noneWrong ends traffic, and fails if a pod was seen as another one. It returns the figures.
func (w *world) noneWrong(traffic *lab.Traffic) (figures string) {
	w.Helper()
	sum := traffic.Stop()
	if sum.Wrong > 0 {
		w.Errorf("pods were seen as others: %s", sum)
	}
	figures, _, _ = strings.Cut(sum.String(), "\n")
	return figures
}

// editServiceStatus gives a Service another status, as a load balancer's controller does.
func (w *world) editServiceStatus(namespace, name string, status v1.ServiceStatus) {
	w.Helper()
	patch, err := json.Marshal(map[string]any{"status": status})
	w.must(err)
	_, err = w.Client().CoreV1().Services(namespace).Patch(w.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	w.must(err)
}
