package scale

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"sigs.k8s.io/yaml"

	"github.com/openshift/origin-node/hack/bench/objects"
	"github.com/openshift/origin-node/hack/bench/program"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel/nft"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// node is one with a process.
type node struct {
	number int
	host   *lab.Host
	dir    string
	// member: it is of the pool, and holds egress IPs.
	member bool
	// silent: nodes do not tell it directly what they hold, so it follows the Leases alone.
	silent  bool
	kernel  *nft.Conn
	links   *netlink.Handle
	running *program.Program // nil if it is not
}

// user is that of its process.
func (n *node) user() string { return "system:origin-node:" + objects.Node(n.number) }

func (n *node) file(name string) string { return filepath.Join(n.dir, name) }

// prepare makes the node's files but for its kubeconfig, and opens its kernel.
func (n *node) prepare(ctx context.Context) (err error) {
	if err := os.Mkdir(n.dir, 0o700); err != nil {
		return err
	}
	arguments := map[string][]string{
		"proxy-mode":                 {"nftables"},
		"cluster-cidr":               {lab.ClusterV4.String()},
		"nodeport-addresses":         {"primary"},
		"conntrack-max-per-core":     {"0"}, // the limit is the machine's, not the namespace's
		"oom-score-adj":              {"0"},
		"profiling":                  {"true"}, // it costs nothing unless somebody asks
		"egress-snat-assign-cidrs":   {poolNetwork.Masked().String()},
		"egress-snat-socket":         {n.file("sock")},
		"egress-snat-cni-socket":     {n.file("cni")},
		"egress-snat-kubelet-socket": {n.file("kubelet")},
		"egress-snat-cni-conf-dir":   {n.file("net.d")},
	}
	if n.silent {
		arguments["egress-snat-announce-port"] = []string{"0"}
	}
	config, err := yaml.Marshal(map[string]any{
		"kind": "NodeConfig", "apiVersion": "v1", "nodeName": objects.Node(n.number), "masterKubeConfig": "kubeconfig", "proxyArguments": arguments,
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(n.file("node-config.yaml"), config, 0o600); err != nil {
		return err
	}
	own := netip.PrefixFrom(above(poolNetwork.Addr(), n.number), poolNetwork.Bits())
	if _, err := n.host.Run(ctx, "ip", "address", "add", own.String(), "dev", "eth0"); err != nil {
		return err
	}
	return n.host.Do(func() error {
		if n.kernel, err = nft.Open(ctx); err != nil {
			return err
		}
		n.links, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		return err
	})
}

func (n *node) start(ctx context.Context, openshift string) (err error) {
	command := n.host.Command(ctx, openshift, "start", "node", "--config="+n.file("node-config.yaml"))
	// The machine's own systemd-logind is no business of a node in a namespace.
	command.Env = append(command.Env, "DBUS_SYSTEM_BUS_ADDRESS=unix:path="+n.file("no-bus"))
	n.running, err = program.Start(n.host, command, openshift, program.InPlace)
	return err
}

func (n *node) stop() error {
	if n.running == nil {
		return nil
	}
	running := n.running
	n.running = nil
	return running.Stop()
}

func (n *node) close() error {
	err := n.stop()
	if n.kernel != nil {
		n.kernel.Close()
	}
	if n.links != nil {
		n.links.Close()
	}
	return err
}

// leads returns the node to which the kernel sends a pod's packets, by its address; an invalid one if they leave from here or
// get nowhere.
func (n *node) leads(pod netip.Addr) (to netip.Addr, err error) {
	ways := &nftables.Set{Table: &nftables.Table{Name: steering.Table, Family: nftables.TableFamilyIPv4}, Name: "ways"}
	const patience = 10 * time.Second
	if err := n.kernel.Within(patience); err != nil {
		return to, err
	}
	elements, err := n.kernel.GetSetElements(ways)
	if err != nil {
		return to, fmt.Errorf("%s: read where packets go: %w", n.host.Name, err)
	}
	for _, e := range elements {
		if !bytes.HasPrefix(e.Key, pod.AsSlice()) {
			continue
		}
		neighbours, err := n.links.NeighList(0, netlink.FAMILY_V4)
		if err != nil {
			return to, fmt.Errorf("%s: read neighbours: %w", n.host.Name, err)
		}
		for _, neighbour := range neighbours {
			if to, isHolder := holder(neighbour); isHolder && bytes.Equal(e.Val, nft.ClassID(neighbour.IP[len(neighbour.IP)-1]).AsSlice()) {
				return to, nil
			}
		}
	}
	return to, nil
}

// tunnelAddresses are those of the neighbours that stand for holders in the tunnel: the last byte is a holder's number.
var tunnelAddresses = netip.MustParsePrefix("169.254.77.0/24")

// holder returns the node that a neighbour stands for: its address is in the hardware address.
func holder(neighbour netlink.Neigh) (node netip.Addr, is bool) {
	ip, _ := netip.AddrFromSlice(neighbour.IP)
	if hardware := neighbour.HardwareAddr; tunnelAddresses.Contains(ip.Unmap()) && len(hardware) == 6 {
		return netip.AddrFrom4([4]byte(hardware[2:])), true
	}
	return node, false
}

// use is what a node has used by now.
type use struct {
	cpu      time.Duration
	received float64 // bytes from the API server
	asked    requests
	wall     time.Duration
}

// memory is what a node's process has in MiB.
type memory struct{ resident, peak float64 }

func (n *node) memory() (m memory, err error) {
	if m.resident, _, err = n.running.Memory(); err != nil {
		return m, err
	}
	m.peak, err = n.running.Peak()
	m.resident, m.peak = m.resident/(1<<20), m.peak/(1<<20)
	return m, err
}

// follows waits until the node's kernel is as it should, and returns how long that took.
func (n *node) follows(ctx context.Context, began time.Time, is func(*node) (bool, error)) (took time.Duration, err error) {
	const patience, pause = 3 * time.Minute, 5 * time.Millisecond
	err = n.running.Poll(ctx, "the kernel does not follow", patience, pause, func(context.Context) bool {
		so, wrong := is(n)
		err = wrong
		took = time.Since(began)
		return so || wrong != nil
	})
	return took, err
}
