package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/cni/libcni"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/hack/kubelettest"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/attachments"
)

// pluginDir has Debian's package containernetworking-plugins.
const pluginDir = "/usr/lib/cni"

// cniRuntime starts and ends pods on a node as container runtimes do, with Debian's network plugin and ours.
type cniRuntime struct {
	*world
	on   *member
	cni  *libcni.CNIConfig
	dir  string
	own  string              // the folder with our plugin
	runs map[string]*sandbox // by container ID
	// kubelet tells the node of pods; nil if the API server does.
	kubelet *kubelettest.Kubelet
}

// sandbox is a pod's network namespace with its network.
type sandbox struct {
	*lab.Host
	pod  *v1.Pod
	conf *libcni.RuntimeConf
	ips  []netip.Addr
}

// watchPods has a node learn the labels of its pods from the API server.
const watchPods = `egress-snat-watch-pods: ["true"]`

// newCNIWorld makes a cluster of one node that answers the CNI plugin, with a Service shop/web that has these external
// IPs and no pods, and the namespace bank, where no Service has any.
func newCNIWorld(t *testing.T, s settings) *cniRuntime {
	t.Helper()
	s.arguments = watchPods
	return newCNIWorldOf(t, s, func(w *world) { w.must(w.Apply(t.Context(), "../../images/node/rbac-cni.yaml")) })
}

// newKubeletWorld is newCNIWorld with a node that may not read pods, and that a kubelet answers.
func newKubeletWorld(t *testing.T, s settings) *cniRuntime {
	t.Helper()
	k := &kubelettest.Kubelet{}
	r := newCNIWorldOf(t, s, func(w *world) { k.ServeTest(t, w.members[0].File("pods.sock")) })
	r.kubelet = k
	return r
}

// newCNIWorldOf makes a world in which something is prepared before the node starts.
func newCNIWorldOf(t *testing.T, s settings, prepare func(*world)) *cniRuntime {
	t.Helper()
	s.nodes = 1
	w := newIdleWorld(t, s)
	prepare(w)
	w.start()
	w.namespace("shop")
	w.namespace("bank")
	_, err := w.CreateService(t.Context(), cluster.NewService("shop", "web", web, w.ips(10), tcp80))
	w.must(err)
	w.settled()
	return newCNIRuntime(w, w.members[0])
}

// newCNIRuntime returns the runtime of a node that answers the CNI plugin.
func newCNIRuntime(w *world, on *member) *cniRuntime {
	w.Helper()
	if _, err := os.Stat(filepath.Join(pluginDir, "bridge")); err != nil {
		lab.Lacks(w.T, "%v; install containernetworking-plugins", err)
	}
	dir, err := on.Host.MkdirTemp("cni-")
	w.must(err)
	own := filepath.Dir(os.Getenv("OPENSHIFT"))
	return &cniRuntime{
		world: w, on: on, dir: dir, own: own, runs: map[string]*sandbox{},
		cni: libcni.NewCNIConfigWithCacheDir([]string{own, pluginDir}, filepath.Join(dir, "cache"), nil),
	}
}

func (r *cniRuntime) socket() string { return r.on.File("cni.sock") }

// list is the list of plugins, which gives pods these host numbers of the node's pod network.
func (r *cniRuntime) list(first, last int) *libcni.NetworkConfigList {
	r.Helper()
	return r.listOf(first, last, withPlugin(r.on))
}

// listWithout is list as the network plugin writes it.
func (r *cniRuntime) listWithout(first, last int) *libcni.NetworkConfigList {
	r.Helper()
	return r.listOf(first, last, "")
}

func (r *cniRuntime) listOf(first, last int, further string) *libcni.NetworkConfigList {
	r.Helper()
	list, err := libcni.NetworkConfFromBytes(conflist("", r.on, filepath.Join(r.dir, "ipam"), first, last, further))
	r.must(err)
	return list
}

// startWith starts the node, which has ended, with these arguments.
func (r *cniRuntime) startWith(arguments string) {
	r.Helper()
	r.on.Configure(arguments)
	r.on.AnewReady()
}

// withPlugin is what a node's list of plugins has beside the network plugin.
func withPlugin(m *member) string {
	return fmt.Sprintf(`, {"type": "origin-node-cni", "socket": %q}`, m.File("cni.sock"))
}

// conflist is the list of plugins of a node by a version of CNI, 1.0.0 if empty, with further ones behind bridge, which gives pods these
// host numbers of the node's pod networks and remembers that in a folder.
func conflist(version string, m *member, ipam string, first, last int, further string) []byte {
	if version == "" {
		version = "1.0.0"
	}
	return fmt.Appendf(nil, `{"cniVersion": %q, "name": "cluster", "plugins": [
		{"type": "bridge", "bridge": "cni0", "isGateway": true, "ipam": %s} %s]}`, version, hostLocal(m, ipam, first, last), further)
}

// hostLocal is what conflist says of addresses.
func hostLocal(m *member, ipam string, first, last int) string {
	var ranges []string
	for _, cidr := range m.Host.PodCIDRs() {
		network := strings.TrimSuffix(cidr.Addr().String(), "0") // of 10.128.0.0/24
		ranges = append(ranges, fmt.Sprintf(`[{"subnet": %q, "rangeStart": "%[2]s%[3]d", "rangeEnd": "%[2]s%[4]d"}]`, cidr, network, first, last))
	}
	return fmt.Sprintf(`{"type": "host-local", "dataDir": %q, "ranges": [%s], "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]}`,
		ipam, strings.Join(ranges, ", "))
}

// create creates a pod that is bound to the node, and of which no EndpointSlice knows an address.
func (r *cniRuntime) create(namespace, name string, labels map[string]string) *v1.Pod {
	r.Helper()
	pod := cluster.NewPod(namespace, name, r.on.Name, labels)
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, cluster.ByHand, "true")
	pod, err := r.Client().CoreV1().Pods(namespace).Create(r.Context(), pod, metav1.CreateOptions{})
	r.must(err)
	r.tellKubelet(pod)
	return pod
}

// tellKubelet has the kubelet know a pod as it is now, if there is one.
func (r *cniRuntime) tellKubelet(pod *v1.Pod) {
	if r.kubelet != nil {
		r.kubelet.Set(pod)
	}
}

// relabel gives a pod these labels and no others.
func (r *cniRuntime) relabel(s *sandbox, labels map[string]string) {
	r.Helper()
	pod, err := r.Client().CoreV1().Pods(s.pod.Namespace).Get(r.Context(), s.pod.Name, metav1.GetOptions{})
	r.must(err)
	pod.Labels = labels
	pod, err = r.Client().CoreV1().Pods(s.pod.Namespace).Update(r.Context(), pod, metav1.UpdateOptions{})
	r.must(err)
	r.tellKubelet(pod)
}

// named returns an error unless EndpointSlices of shop/web name a pod, or do not.
func (r *cniRuntime) named(s *sandbox, want bool) error {
	slices, err := r.Client().DiscoveryV1().EndpointSlices("shop").List(r.Context(), metav1.ListOptions{LabelSelector: discovery.LabelServiceName + "=web"})
	if err != nil {
		return err
	}
	is := false
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			is = is || endpoint.TargetRef != nil && endpoint.TargetRef.UID == s.pod.UID
		}
	}
	if is != want {
		return fmt.Errorf("EndpointSlices name %s: %v", s.pod.Name, is)
	}
	return nil
}

// start gives a pod its network, again and again as runtimes do until the plugins let it.
func (r *cniRuntime) start(list *libcni.NetworkConfigList, pod *v1.Pod) (started *sandbox) {
	r.Helper()
	r.eventually(func() (err error) {
		started, err = r.tryStart(r.Context(), list, pod)
		return err
	})
	return started
}

// tryStart is start but for trying again. What an attempt has left it ends first.
func (r *cniRuntime) tryStart(ctx context.Context, list *libcni.NetworkConfigList, pod *v1.Pod) (*sandbox, error) {
	for _, left := range r.runs {
		if left.pod.UID == pod.UID {
			if err := r.tryEnd(ctx, list, left); err != nil {
				return nil, err
			}
		}
	}
	host, err := r.AddSandboxOn(r.on.Host)
	if err != nil {
		return nil, err
	}
	s := &sandbox{Host: host, pod: pod, conf: &libcni.RuntimeConf{
		ContainerID: fmt.Sprintf("%s-%d", pod.UID, time.Now().UnixNano()), NetNS: filepath.Join("/run/netns", host.Name), IfName: "eth0",
		Args: [][2]string{{"IgnoreUnknown", "1"}, {"K8S_POD_NAMESPACE", pod.Namespace}, {"K8S_POD_NAME", pod.Name}, {"K8S_POD_UID", string(pod.UID)}},
	}}
	r.runs[s.conf.ContainerID] = s
	err = r.on.Host.Do(func() error {
		result, err := r.cni.AddNetworkList(ctx, list, s.conf)
		if err == nil {
			s.ips, err = addressesOf(result.(*current.Result))
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, r.tryEnd(r.Context(), list, s))
	}
	return s, nil
}

func addressesOf(result *current.Result) (ips []netip.Addr, err error) {
	for _, config := range result.IPs {
		ip, ok := netip.AddrFromSlice(config.Address.IP)
		if !ok {
			return nil, fmt.Errorf("no address: %v", config)
		}
		ips = append(ips, ip.Unmap())
	}
	return ips, nil
}

// tryEnd takes a pod's network, and then its network namespace.
func (r *cniRuntime) tryEnd(ctx context.Context, list *libcni.NetworkConfigList, s *sandbox) error {
	if err := r.on.Host.Do(func() error { return r.cni.DelNetworkList(ctx, list, s.conf) }); err != nil {
		return err
	}
	delete(r.runs, s.conf.ContainerID)
	return r.RemovePod(s.Host)
}

// end ends a pod, whose object goes later.
func (r *cniRuntime) end(list *libcni.NetworkConfigList, s *sandbox) {
	r.Helper()
	r.eventually(func() error { return r.tryEnd(r.Context(), list, s) })
}

// delete deletes a pod's object.
func (r *cniRuntime) delete(pod *v1.Pod) {
	r.Helper()
	r.must(r.DeletePod(r.Context(), pod.Namespace, pod.Name))
}

// sliced has the EndpointSlices name a pod soon.
func (r *cniRuntime) sliced(s *sandbox) {
	r.Helper()
	pod, err := r.SetPodStatus(r.Context(), s.pod, cluster.RunningStatus(s.pod, true, s.ips...))
	r.must(err)
	r.tellKubelet(pod)
}

// firstPackets fails unless the first packets of a pod that has just been started leave from these addresses, and from
// its node's in a family that has none of them.
func (r *cniRuntime) firstPackets(s *sandbox, as ...string) {
	r.Helper()
	for _, to := range r.outside() {
		seen, err := r.askWithin(20*time.Second, "tcp", s.Host, to)
		if want := identity(s.Host, to, as); err != nil || seen != want {
			r.Errorf("the first packet of %s/%s at %v is seen as %v, err %v; want %s", s.pod.Namespace, s.pod.Name, s.ips, seen, err, want)
		}
	}
}

// attached waits until the node knows those pods that run, and no others.
func (r *cniRuntime) attached() {
	r.Helper()
	want := slices.Sorted(maps.Keys(r.runs))
	r.eventually(func() error {
		all, err := attachments.Peek(attachments.Folder(r.socket()))
		var got []string
		for _, a := range all {
			if a.Released.IsZero() {
				got = append(got, a.ContainerID)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			err = errors.Join(err, fmt.Errorf("attachments (-want +got):\n%s", diff))
		}
		return err
	})
}

// holdsNoRuleFor fails if the node has a rule for one of these addresses.
func (r *cniRuntime) holdsNoRuleFor(ips []netip.Addr) {
	r.Helper()
	if err := r.bound(ips, false); err != nil {
		r.Error(err)
	}
}

func (r *cniRuntime) awaitRulesFor(ips []netip.Addr) {
	r.Helper()
	r.eventually(func() error { return r.bound(ips, true) })
}

// awaitNoRulesFor waits until these addresses are not bound, and the kernel has no rule that the plan has lost.
func (r *cniRuntime) awaitNoRulesFor(ips []netip.Addr) {
	r.Helper()
	r.eventually(func() error { return errors.Join(r.bound(ips, false), r.warns()) })
}

// bound returns an error unless all of these addresses are bound in the kernel, or none is to be.
func (r *cniRuntime) bound(ips []netip.Addr, want bool) error {
	out, errs, status := r.on.Openshift("egress", "list", "--socket="+r.on.Socket(), "--no-headers")
	if status != 0 {
		return errors.New(errs)
	}
	for _, ip := range ips {
		is, written := false, true
		for row := range strings.Lines(out) {
			if strings.HasPrefix(row, ip.String()+" ") {
				is, written = true, written && !strings.Contains(row, "<pending>")
			}
		}
		if is != want || !written {
			return fmt.Errorf("%s should be bound: %v; bound are:\n%s", ip, want, out)
		}
	}
	return nil
}

// warns returns an error unless 'openshift egress verify' finds no difference, and says these texts of the plugin.
func (r *cniRuntime) warns(texts ...string) error {
	out, errs, status := r.on.Openshift("egress", "verify", "--socket="+r.on.Socket())
	if status != 0 {
		return errors.New(out + errs)
	}
	for _, text := range texts {
		if !strings.Contains(out, "CNI plugin: warning: ") || !strings.Contains(out, text) {
			return fmt.Errorf("%q is missing in:\n%s", text, out)
		}
	}
	return nil
}

// holdsNoWarning fails if 'openshift egress verify' says anything of the plugin.
func (r *cniRuntime) holdsNoWarning() {
	r.Helper()
	if out, errs, status := r.on.Openshift("egress", "verify", "--socket="+r.on.Socket()); status != 0 || strings.Contains(out, "CNI") {
		r.Errorf("status %d:\n%s%s", status, out, errs)
	}
}
