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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/origin-node/hack/cluster"
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
	runs map[string]*sandbox // by container ID
}

// sandbox is a pod's network namespace with its network.
type sandbox struct {
	*lab.Host
	pod  *v1.Pod
	conf *libcni.RuntimeConf
	ips  []netip.Addr
}

// newCNIWorld makes a cluster of one node that answers the CNI plugin, with a Service shop/web that has these external
// IPs and no pods, and the namespace bank, where no Service has any.
func newCNIWorld(t *testing.T, s settings) *cniRuntime {
	t.Helper()
	if _, err := os.Stat(filepath.Join(pluginDir, "bridge")); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("%v; install containernetworking-plugins", err)
	}
	s.nodes, s.arguments = 1, `egress-snat-watch-pods: ["true"]`
	w := newIdleWorld(t, s)
	w.must(w.Apply(t.Context(), "../../images/node/rbac-cni.yaml"))
	w.start()
	w.namespace("shop")
	w.namespace("bank")
	_, err := w.CreateService(t.Context(), cluster.NewService("shop", "web", web, w.ips(10), tcp80))
	w.must(err)
	w.settled()
	dir, err := w.Node().MkdirTemp("cni-")
	w.must(err)
	own := filepath.Dir(os.Getenv("OPENSHIFT"))
	return &cniRuntime{
		world: w, on: w.members[0], dir: dir, runs: map[string]*sandbox{},
		cni: libcni.NewCNIConfigWithCacheDir([]string{own, pluginDir}, filepath.Join(dir, "cache"), nil),
	}
}

func (r *cniRuntime) socket() string { return r.on.File("cni.sock") }

// list is the list of plugins, which gives pods these host numbers of the node's pod network.
func (r *cniRuntime) list(first, last int) *libcni.NetworkConfigList {
	r.Helper()
	list, err := libcni.NetworkConfFromBytes(conflist(r.on, filepath.Join(r.dir, "ipam"), first, last))
	r.must(err)
	return list
}

// conflist is the list of plugins of a node, which gives pods these host numbers of the node's pod networks and remembers that
// in a folder.
func conflist(m *member, ipam string, first, last int) []byte {
	var ranges []string
	for _, cidr := range m.Host.PodCIDRs() {
		network := strings.TrimSuffix(cidr.Addr().String(), "0") // of 10.128.0.0/24
		ranges = append(ranges, fmt.Sprintf(`[{"subnet": %q, "rangeStart": "%[2]s%[3]d", "rangeEnd": "%[2]s%[4]d"}]`, cidr, network, first, last))
	}
	return fmt.Appendf(nil, `{"cniVersion": "1.0.0", "name": "cluster", "plugins": [
		{"type": "bridge", "bridge": "cni0", "isGateway": true, "ipam": {"type": "host-local", "dataDir": %q, "ranges": [%s],
			"routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]}},
		{"type": "origin-node-cni", "socket": %q}]}`, ipam, strings.Join(ranges, ", "), m.File("cni.sock"))
}

// create creates a pod that is bound to the node, and of which no EndpointSlice knows an address.
func (r *cniRuntime) create(namespace, name string, labels map[string]string) *v1.Pod {
	r.Helper()
	pod := cluster.NewPod(namespace, name, r.on.Name, labels)
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, cluster.ByHand, "true")
	pod, err := r.Client().CoreV1().Pods(namespace).Create(r.Context(), pod, metav1.CreateOptions{})
	r.must(err)
	return pod
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
	_, err := r.SetPodStatus(r.Context(), s.pod, cluster.RunningStatus(s.pod, true, s.ips...))
	r.must(err)
}

// firstPackets fails unless the first packets of a pod that has just been started leave from these addresses, and from
// its node's in a family that has none of them.
func (r *cniRuntime) firstPackets(s *sandbox, as ...string) {
	r.Helper()
	for _, to := range r.outside() {
		ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
		seen, err := s.Ask(ctx, network("tcp", to), to, 0)
		cancel()
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
	out, errs, status := r.on.Openshift("egress", "list", "--socket="+r.on.Socket(), "--no-headers")
	if status != 0 {
		r.Fatal(errs)
	}
	for _, ip := range ips {
		if strings.Contains(out, ip.String()+" ") {
			r.Errorf("%s is bound although it is nobody's:\n%s", ip, out)
		}
	}
}
