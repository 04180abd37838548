package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/hack/lab"
)

const (
	prefix = "play"
	// port is the one at which the pods and the outside host tell who they see.
	port = 8080
)

// playground is a cluster that somebody plays with.
type playground struct {
	cluster.World
	dir, openshift, binaries string
	forwarder                net.Listener
	pods                     *cluster.Pods
	endPods                  func() error
}

// newCluster returns when everything runs and the shop's pods do.
func newCluster(ctx context.Context, dir, openshift, binaries string) (p *playground, err error) {
	p = &playground{dir: dir, openshift: openshift, binaries: binaries}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	p.World, err = cluster.NewWorld(ctx, lab.Config{Prefix: prefix, Nodes: 3, IPv6: true, Masquerade: true},
		cluster.Config{Binaries: binaries, Dir: filepath.Join(dir, "control-plane")})
	if err != nil {
		return p, err
	}
	if err := cluster.Serve(p.Outside(), port); err != nil {
		return p, err
	}
	nodes := map[string]*lab.Host{}
	for i, host := range p.Nodes() {
		nodes[nodeName(i)] = host
		if err := p.startNode(ctx, i); err != nil {
			return p, err
		}
	}
	p.pods, p.endPods = p.RunPods(ctx, nodes, port)
	if err := p.Apply(ctx, "hack/playground/objects.yaml"); err != nil {
		return p, err
	}
	for _, name := range []string{"web", "stranger"} {
		if err := p.rolledOut(ctx, name); err != nil {
			return p, err
		}
	}
	return p, p.forward(ctx)
}

func (p *playground) rolledOut(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return p.RolledOut(ctx, "shop", name)
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i+1) }

// file returns the path of a node's file.
func (p *playground) file(i int, name string) string {
	return filepath.Join(p.dir, nodeName(i)+"."+name)
}

// startNode starts the node's process, which ends with the lab, and with this process.
func (p *playground) startNode(ctx context.Context, i int) error {
	host := p.Nodes()[i]
	if _, err := p.CreateNode(ctx, nodeName(i), host.V4, host.V6); err != nil {
		return err
	}
	if err := p.NodeKubeconfig(ctx, p.file(i, "kubeconfig"), nodeName(i), ""); err != nil {
		return err
	}
	config := fmt.Sprintf(`kind: NodeConfig
apiVersion: v1
nodeName: %s
masterKubeConfig: %s
proxyArguments:
  cluster-cidr: [%q, %q]
  nodeport-addresses: [primary]
  conntrack-max-per-core: ["0"]
  egress-snat-socket: [%q]
  egress-snat-cni-socket: [""]
`, nodeName(i), filepath.Base(p.file(i, "kubeconfig")), lab.ClusterV4, lab.ClusterV6, p.file(i, "sock"))
	if err := os.WriteFile(p.file(i, "yaml"), []byte(config), 0o600); err != nil {
		return err
	}
	log, err := os.Create(p.file(i, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	process := host.Command(context.WithoutCancel(ctx), p.openshift, "start", "node", "--config="+p.file(i, "yaml"), "--loglevel=2")
	process.Stdout, process.Stderr = log, log
	_, err = lab.Start(process)
	return err
}

// forward makes the API server reachable on the machine's loopback, and writes the kubeconfig for it.
func (p *playground) forward(ctx context.Context) error {
	var err error
	if p.forwarder, err = (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0"); err != nil {
		return err
	}
	go func() {
		for {
			client, err := p.forwarder.Accept()
			if err != nil {
				return // closed
			}
			go p.carry(context.WithoutCancel(ctx), client)
		}
	}()
	return p.WriteKubeconfig(ctx, p.kubeconfig(), cluster.Kubeconfig{
		Server: "https://" + p.forwarder.Addr().String(), User: "player", Groups: []string{"system:masters"},
	})
}

func (p *playground) kubeconfig() string { return filepath.Join(p.dir, "kubeconfig") }

// carry carries a connection to the API server until either side ends.
func (p *playground) carry(ctx context.Context, client net.Conn) {
	defer client.Close()
	server, err := p.Control().DialContext(ctx, "tcp", netip.AddrPortFrom(p.Control().V4, 6443).String())
	if err != nil {
		return // the client sees its connection end, and the API server's log says why
	}
	defer server.Close()
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		go func() {
			_, _ = io.Copy(way[0], way[1]) // ends with either side
			done <- struct{}{}
		}()
	}
	<-done
}

// welcome says how to use the cluster, with commands that work as they are printed.
func (p *playground) welcome(ctx context.Context, w io.Writer) error {
	list, err := p.Client().CoreV1().Pods("shop").List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		return err
	}
	if len(list.Items) == 0 {
		return errors.New("the shop has no pods")
	}
	host := p.pods.Host("shop", list.Items[0].Name)
	if host == nil {
		return fmt.Errorf("pod shop/%s does not run", list.Items[0].Name)
	}
	kubectl := filepath.Join(p.binaries, "kubectl") + " --kubeconfig=" + p.kubeconfig()
	_, err = fmt.Fprintf(w, `The cluster is up: 3 nodes, a control plane, and a shop whose pods leave it from 203.0.113.10.

export KUBECONFIG=%[1]s

What runs where:
  %[2]s -n shop get pods,services -o wide
Who a pod of the shop is seen as, by the host outside:
  ip netns exec %[3]s bash -c 'head -1 </dev/tcp/%[4]s/%[5]d'
What its node has to say:
  %[6]s egress explain %[7]s --socket=%[8]s
What happens when the Service loses its address, and gets it back (ask again who the pod is seen as):
  %[2]s -n shop patch service web --type=merge -p '{"spec":{"externalIPs":[]}}'
  %[2]s -n shop patch service web --type=merge -p '{"spec":{"externalIPs":["203.0.113.10","2001:db8:113::10"]}}'

The logs of the nodes are %[9]s; 'make cluster-down' ends all of it.
`, p.kubeconfig(), kubectl, host.Name, p.Outside().V4, port, p.openshift, host.V4, p.socketOf(host), filepath.Join(p.dir, "node-*.log"))
	return err
}

// socketOf returns the status socket of a pod's node.
func (p *playground) socketOf(pod *lab.Host) string {
	for i, node := range p.Nodes() {
		if node == pod.Node {
			return p.file(i, "sock")
		}
	}
	return ""
}

// close ends everything.
func (p *playground) close() error {
	var errs []error
	if p.forwarder != nil {
		errs = append(errs, p.forwarder.Close())
	}
	if p.endPods != nil {
		errs = append(errs, p.endPods())
	}
	errs = append(errs, p.World.Close())
	return errors.Join(errs...)
}
