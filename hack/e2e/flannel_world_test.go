package e2e

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/hack/lab"
)

// flannelWay says how flannel and the nodes are configured.
type flannelWay struct {
	backend  string // flannel's: vxlan or host-gw
	nftables bool   // the rules are nftables', flannel's and ours
	direct   bool   // steering has no tunnel
}

// flannelWays are all.
func flannelWays() (ways []flannelWay) {
	for _, nftables := range []bool{false, true} {
		for _, direct := range []bool{false, true} {
			for _, backend := range []string{"vxlan", "host-gw"} {
				ways = append(ways, flannelWay{backend, nftables, direct})
			}
		}
	}
	return ways
}

func (w flannelWay) String() string {
	return w.backend + ", " + w.rules() + ", steering " + w.steering()
}

func (w flannelWay) rules() string {
	return map[bool]string{false: "iptables", true: "nftables"}[w.nftables]
}

func (w flannelWay) steering() string {
	return map[bool]string{false: "VXLAN", true: "direct"}[w.direct]
}

// flannelWorld is a cluster in which flannel's daemons make the pods' network between the nodes, and masquerade what leaves it.
type flannelWorld struct {
	*besideWorld
	way                 flannelWay
	program, kubeconfig string
	daemons             map[*member]*neighbour
}

// bulkPort is the port of servers that get megabytes and fragments.
const bulkPort = 9000

func newFlannelWorld(t *testing.T, way flannelWay) *flannelWorld {
	t.Helper()
	programs := os.Getenv("FLANNEL")
	if programs == "" {
		lab.Lacks(t, "the environment variable FLANNEL does not name the directory of flannel's daemon; run 'make test-e2e'")
	}
	w := &flannelWorld{way: way, program: filepath.Join(programs, "flanneld"), daemons: map[*member]*neighbour{}}
	s := settings{flannel: true, nftables: way.nftables}
	if way.direct {
		s.arguments = direct
	}
	w.besideWorld = newBesideWorld(t, s, w.install)
	for _, pod := range slices.Concat(w.pods, w.unbound) {
		w.run(pod, "ip link set eth0 mtu "+w.mtu())
	}
	return w
}

// install starts flannel's daemons in a cluster whose nodes do not run yet.
func (w *flannelWorld) install(cluster *world) {
	w.besideWorld = &besideWorld{steeredWorld: &steeredWorld{world: cluster}}
	w.kubeconfig = w.members[0].File("flannel.kubeconfig")
	w.must(w.WriteKubeconfig(w.Context(), w.kubeconfig, flannelUser))
	configuration, err := json.Marshal(map[string]any{
		"Network": lab.ClusterV4, "EnableIPv6": true, "IPv6Network": lab.ClusterV6,
		"EnableNFTables": w.way.nftables, "Backend": map[string]string{"Type": w.way.backend},
	})
	w.must(err)
	for _, m := range w.members {
		cidrs := m.Host.PodCIDRs()
		// A Node without annotations makes flannel's daemon panic.
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"annotations": map[string]string{"node.alpha.kubernetes.io/ttl": "0"}},
			"spec":     map[string]any{"podCIDR": cidrs[0], "podCIDRs": cidrs},
		})
		w.must(err)
		_, err = w.Client().CoreV1().Nodes().Patch(w.Context(), m.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		w.must(err)
		m.Write(m.File("net-conf.json"), configuration)
	}
	w.startDaemons()
	for _, m := range w.members { // as the CNI plugin does it
		w.run(m.Host, "ip link set cni0 mtu "+w.mtu())
	}
}

var flannelUser = cluster.Kubeconfig{User: "flannel", Groups: []string{"system:masters"}}

// flannelHealth is where a daemon says whether it is ready.
var flannelHealth = netip.MustParseAddrPort("127.0.0.1:8411")

// startDaemons starts the daemons of all nodes, and waits until they have done their work.
func (w *flannelWorld) startDaemons() {
	w.Helper()
	for _, m := range w.members {
		w.daemons[m] = w.runNeighbour("flanneld-"+m.Name, m.Host, []string{"NODE_NAME=" + m.Name}, w.program, "--kube-subnet-mgr", "--ip-masq", "--iface=eth0",
			"--kubeconfig-file="+w.kubeconfig, "--net-config-path="+m.File("net-conf.json"), "--subnet-file="+m.File("subnet.env"),
			"--healthz-ip="+flannelHealth.Addr().String(), fmt.Sprintf("--healthz-port=%d", flannelHealth.Port()))
	}
	for _, m := range w.members {
		w.eventually(func() error { return w.daemonReady(m) })
		for _, peer := range w.members {
			for _, cidr := range peer.Host.PodCIDRs() {
				w.eventually(func() error { return w.routed(m, peer, cidr) })
			}
		}
	}
}

// daemonReady returns an error unless the daemon of a node says that it has made its rules.
func (w *flannelWorld) daemonReady(m *member) error {
	got, err := w.get(m.Host, flannelHealth, "/readyz")
	if err == nil && got.status != http.StatusOK {
		err = fmt.Errorf("flannel's daemon on %s answers %d: %s", m.Name, got.status, got.body)
	}
	return err
}

// endDaemons kills them.
func (w *flannelWorld) endDaemons() {
	for _, daemon := range w.daemons {
		daemon.end(syscall.SIGKILL)
	}
}

// routed returns an error unless a node has flannel's route to another one's pods.
func (w *flannelWorld) routed(m, peer *member, cidr netip.Prefix) error {
	by := map[string]string{"vxlan": " dev flannel", "host-gw": " via " + like(cidr.Addr(), peer.Host).String() + " dev eth0"}[w.way.backend]
	out, err := m.Host.Run(w.Context(), "ip", "route", "get", cidr.Addr().Next().String())
	if err == nil && m != peer && !strings.Contains(out, by) {
		err = fmt.Errorf("%s has no route%s to the pods of %s: %s", m.Name, by, peer.Name, out)
	}
	return err
}

// flushChains empties the chains in which flannel masquerades.
func (w *flannelWorld) flushChains() {
	w.Helper()
	if w.way.nftables {
		w.onAll("nft flush chain ip flannel-ipv4 postrtg", "nft flush chain ip6 flannel-ipv6 postrtg")
	} else {
		w.onAll("iptables -w -t nat -F FLANNEL-POSTRTG", "ip6tables -w -t nat -F FLANNEL-POSTRTG")
	}
}

// masquerading waits until flannel has filled its chains of iptables again.
func (w *flannelWorld) masquerading() {
	w.Helper()
	for _, m := range w.members {
		for _, tool := range []string{"iptables", "ip6tables"} {
			w.eventually(func() error {
				out, err := m.Host.Run(w.Context(), tool, "-w", "-t", "nat", "-S", "FLANNEL-POSTRTG")
				if err == nil && !strings.Contains(out, "MASQUERADE") {
					err = fmt.Errorf("%s: %s has no rule of flannel's: %s", m.Name, tool, out)
				}
				return err
			})
		}
	}
}

// mtu is what flannel says that pods are to have.
func (w *flannelWorld) mtu() string {
	w.Helper()
	text, err := os.ReadFile(w.members[0].File("subnet.env"))
	w.must(err)
	_, after, _ := strings.Cut(string(text), "FLANNEL_MTU=")
	mtu, _, _ := strings.Cut(after, "\n")
	return mtu
}

// right is that of besideWorld. Megabytes and fragments arrive as well, both ways.
func (w *flannelWorld) right() {
	w.Helper()
	w.besideWorld.right()
	for i, pod := range w.pods {
		for _, to := range at(w.Outside(), bulkPort) {
			w.carries(pod, w.Outside(), to, identity(pod, to, w.egressIPs))
		}
		next := w.pods[(i+1)%len(w.pods)]
		for _, to := range at(next, bulkPort) {
			w.carries(pod, next, to, like(to.Addr(), pod))
		}
	}
}

// carries fails unless 10 MB and a datagram of 4,000 bytes get from a pod to a server and back, and the server sees this client.
func (w *flannelWorld) carries(pod, server *lab.Host, to netip.AddrPort, client netip.Addr) {
	w.Helper()
	if seen, err := w.megabytes(pod, server, to); err != nil || seen != client {
		w.Errorf("10 MB from %s to %s: from %s, want %s, %v", pod.Name, to, seen, client, err)
	}
	if seen := w.datagram(pod, server, to); seen != client {
		w.Errorf("a large datagram from %s to %s comes from %s, want %s", pod.Name, to, seen, client)
	}
}

// megabytes sends 10 MB there and 10 MB back, and returns which client the server has seen.
func (w *flannelWorld) megabytes(pod, server *lab.Host, to netip.AddrPort) (seen netip.Addr, err error) {
	w.Helper()
	const size = 10 << 20
	listener, err := server.Listen(w.Context(), network("tcp", to), fmt.Sprintf(":%d", to.Port()))
	w.must(err)
	defer func() { _ = listener.Close() }()
	served := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			defer conn.Close()
			seen = conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
			if err = conn.SetDeadline(time.Now().Add(soon)); err == nil {
				_, err = io.CopyN(conn, io.LimitReader(conn, size), size)
			}
		}
		served <- err
	}()
	conn, err := pod.DialContext(w.Context(), network("tcp", to), to.String())
	if err != nil {
		return netip.Addr{}, err
	}
	defer conn.Close()
	w.must(conn.SetDeadline(time.Now().Add(soon)))
	sent := make([]byte, size)
	_, _ = rand.Read(sent) // never fails
	go func() { _, _ = conn.Write(sent) }()
	got, err := io.ReadAll(conn)
	if err == nil && !bytes.Equal(got, sent) {
		err = fmt.Errorf("%d bytes have come back, which are others", len(got))
	}
	err = errors.Join(err, <-served) // the server has written seen before
	return seen, err
}

// datagram sends one of 4,000 bytes and gets it back, and returns which client the server has seen.
func (w *flannelWorld) datagram(pod, server *lab.Host, to netip.AddrPort) (seen netip.Addr) {
	w.Helper()
	var echo net.PacketConn
	w.must(server.Do(func() (err error) {
		echo, err = (&net.ListenConfig{}).ListenPacket(w.Context(), network("udp", to), fmt.Sprintf(":%d", to.Port()))
		return err
	}))
	clients := make(chan netip.Addr, 1000)
	go func() {
		defer close(clients)
		packet := make([]byte, 1<<16)
		for {
			n, from, err := echo.ReadFrom(packet)
			if err != nil {
				return
			}
			clients <- from.(*net.UDPAddr).AddrPort().Addr().Unmap()
			_, _ = echo.WriteTo(packet[:n], from) // lost like any datagram
		}
	}()
	conn, err := pod.DialContext(w.Context(), network("udp", to), to.String())
	w.must(err)
	defer conn.Close()
	sent, got := make([]byte, 4000), make([]byte, 1<<16)
	_, _ = rand.Read(sent) // never fails
	w.eventually(func() error {
		_, err := conn.Write(sent)
		w.must(conn.SetReadDeadline(time.Now().Add(time.Second)))
		n, readErr := conn.Read(got)
		if !bytes.Equal(got[:n], sent) {
			return errors.Join(fmt.Errorf("%s to %s: %d bytes have come back", pod.Name, to, n), err, readErr)
		}
		return nil
	})
	w.must(echo.Close())
	for client := range clients {
		if seen.IsValid() && seen != client {
			w.Errorf("%s to %s: comes from %s, and from %s", pod.Name, to, seen, client)
		}
		seen = client
	}
	return seen
}
