package starts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/containernetworking/cni/libcni"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/origin-node/hack/kubelettest"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/cni"
)

// world is a node that answers the plugin, and what starts pods there.
type world struct {
	dir     string
	lab     *lab.Lab
	kubelet kubelettest.Kubelet
	node    *exec.Cmd
	ends    []func() error
	cni     *libcni.CNIConfig
	// lists are the list of plugins without ours, and with it.
	lists [2]*libcni.NetworkConfigList
	pods  int
}

// objects are this node, whose address is to be filled in, and the Service.
const objects = `apiVersion: v1
kind: Node
metadata: {name: node-1}
status:
  addresses: [{type: InternalIP, address: %s}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  clusterIP: 172.30.0.20
  externalIPs: [203.0.113.10]
  selector: {app: web}
  ports: [{port: 80, protocol: TCP}]
`

func newWorld(ctx context.Context, by way) (w *world, err error) {
	w = &world{}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.dir, err = os.MkdirTemp("", "bench-"); err != nil {
		return w, err
	}
	w.ends = append(w.ends, func() error { return os.RemoveAll(w.dir) })
	if w.lab, err = lab.New(ctx, lab.Config{Backend: by.iptables}); err != nil {
		return w, err
	}
	w.ends = append(w.ends, w.lab.Close)
	stop, err := w.kubelet.Serve(w.file("pods.sock"))
	if err != nil {
		return w, err
	}
	w.ends = append(w.ends, func() error { stop(); return nil })
	own := filepath.Dir(os.Getenv("OPENSHIFT"))
	w.cni = libcni.NewCNIConfigWithCacheDir([]string{own, pluginFolder}, w.file("cache"), nil)
	for i, further := range []string{"", fmt.Sprintf(`, {"type": "origin-node-cni", "socket": %q}`, w.file("cni.sock"))} {
		if w.lists[i], err = libcni.NetworkConfFromBytes(fmt.Appendf(nil, `{"cniVersion": "1.0.0", "name": "cluster", "plugins": [
			{"type": "bridge", "bridge": "cni0", "isGateway": true, "ipam": {"type": "host-local", "dataDir": %q,
				"ranges": [[{"subnet": "10.128.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}} %s]}`, w.file("ipam"), further)); err != nil {
			return w, err
		}
	}
	return w, w.start(ctx, by)
}

func (w *world) file(name string) string { return filepath.Join(w.dir, name) }

// start starts the node's process, and returns when it answers the plugin.
func (w *world) start(ctx context.Context, by way) error {
	config := fmt.Sprintf(`kind: NodeConfig
apiVersion: v1
nodeName: node-1
proxyArguments:
  proxy-mode: [%q]
  cluster-cidr: [%q]
  nodeport-addresses: [primary]
  conntrack-max-per-core: ["0"]
  oom-score-adj: ["0"]
  egress-snat-socket: [%q]
  egress-snat-cni-socket: [%q]
  egress-snat-kubelet-socket: [%q]
  egress-snat-cni-conf-dir: [""]
`, by.mode, lab.ClusterV4, w.file("sock"), w.file("cni.sock"), w.file("pods.sock"))
	manifests := w.file("manifests")
	if err := errors.Join(os.Mkdir(manifests, 0o700), os.WriteFile(filepath.Join(manifests, "objects.yaml"), fmt.Appendf(nil, objects, w.lab.Node().V4), 0o600),
		os.WriteFile(w.file("node-config.yaml"), []byte(config), 0o600)); err != nil {
		return err
	}
	w.node = w.lab.Node().Command(ctx, os.Getenv("OPENSHIFT"), "start", "node", "--config="+w.file("node-config.yaml"), "--manifests="+manifests)
	log, err := os.Create(w.file("log"))
	if err != nil {
		return err
	}
	defer log.Close()
	w.node.Stdout, w.node.Stderr = log, log
	ended, err := lab.Start(w.node)
	if err != nil {
		return err
	}
	w.ends = append(w.ends, func() error {
		err := w.node.Process.Signal(syscall.SIGTERM)
		<-ended
		return err
	})
	client, late := cni.NewClient(w.file("cni.sock")), time.After(time.Minute)
	for {
		err := client.Ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ended:
			text, _ := os.ReadFile(w.file("log"))
			return fmt.Errorf("the node has ended:\n%s", text)
		case <-late:
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (w *world) list(plugin bool) *libcni.NetworkConfigList {
	if plugin {
		return w.lists[1]
	}
	return w.lists[0]
}

// pod is one that runs, with what the plugins are told of it.
type pod struct {
	host *lab.Host
	conf *libcni.RuntimeConf
}

// newPod makes a pod's network namespace, and has the kubelet know the pod.
func (w *world) newPod(namespace string) (pod, error) {
	host, err := w.lab.AddSandboxOn(w.lab.Node())
	if err != nil {
		return pod{}, err
	}
	w.pods++
	object := &v1.Pod{}
	object.Namespace, object.Name, object.Labels = namespace, fmt.Sprintf("web-%d", w.pods), map[string]string{"app": "web"}
	object.UID = types.UID(object.Name)
	w.kubelet.Set(object)
	return pod{host, &libcni.RuntimeConf{ContainerID: object.Name, NetNS: filepath.Join("/run/netns", host.Name), IfName: cni.Interface, Args: [][2]string{
		{"IgnoreUnknown", "1"}, {"K8S_POD_NAMESPACE", namespace}, {"K8S_POD_NAME", object.Name}, {"K8S_POD_UID", string(object.UID)},
	}}}, nil
}

func (w *world) close() (err error) {
	for i := len(w.ends) - 1; i >= 0; i-- {
		err = errors.Join(err, w.ends[i]())
	}
	return err
}
