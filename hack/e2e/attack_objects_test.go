package e2e

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/hack/lab"
)

// What somebody can do who writes objects of the API server: a kubelet, with the rights that it has in real clusters.

// kubelet is the user of a node's kubelet.
func (w *world) kubelet(m *member) *somebody {
	w.Helper()
	file := filepath.Join(w.TempDir(), "kubelet.kubeconfig")
	w.must(w.WriteKubeconfig(w.Context(), file, cluster.Kubeconfig{User: "system:node:" + m.Name, Groups: []string{"system:nodes"}}))
	return w.as(file)
}

// TestAttack_NodeAddresses: a kubelet writes egress IPs, a pod's addresses, a partner's or another node's into its Node, where no
// network is said to have egress IPs. Nobody else's pods are unbound, the partner still sees the egress IPs, and the Node is told of.
// So it is, too, after processes have started while the kubelet lies, and when it cannot register another Node.
func TestAttack_NodeAddresses(t *testing.T) {
	w := newSteeredWorld(t, settings{restricted: true}, nil)
	liar, honest := w.members[2], w.pods[:2]
	kubelet := w.kubelet(liar)
	var i identities
	i.expect(w.egressIPs, honest...)
	traffic := lab.StartTraffic(lab.TrafficConfig{To: w.everywhere(), Rate: 100, Timeout: 15 * time.Second, Check: i.check}, honest...)
	w.Cleanup(func() { traffic.Stop() })
	pod, other, partner := addresses(w.pods[1].V4, w.pods[1].V6), addresses(w.members[1].Host.V4, w.members[1].Host.V6), addresses(w.Far().V4, w.Far().V6)
	own := addresses(liar.Host.V4, liar.Host.V6)
	added := func(ip netip.Addr) string {
		return ip.String() + " of the node node-3 is not the one that it registered with"
	}
	ignored := func(ip netip.Addr) string {
		return ip.String() + " of the node node-3 is ignored because it is not the one"
	}
	egress := addrs(w.egressIPs)
	w.registered = map[string]map[v1.NodeAddress]bool{liar.Name: {}}
	for _, address := range nodeAddresses(own, nil) {
		w.registered[liar.Name][address] = true
	}
	for _, lie := range []struct {
		name               string
		internal, external []netip.Addr
		told               string // part of the Event; empty for none
	}{
		{"egress IPs", append(slices.Clone(egress), own...), nil, ignored(egress[0])},
		{"egress IPs alone", egress, nil, added(egress[1])},
		{"a pod's", append(pod, own...), nil, pod[0].String() + " of the node node-3 is ignored"},
		{"a partner's as ExternalIPs", own, partner, ""},
		{"a partner's as further InternalIPs", append(slices.Clone(own), partner...), nil, ""},
		{"a partner's alone", partner, nil, added(partner[0])},
		{"another node's", other, nil, other[0].String() + " of the node node-3 is that of another node, node-2"},
	} {
		w.scenario(lie.name, func() {
			w.writeAddresses(kubelet, liar, lie.internal, lie.external)
			if lie.told != "" {
				w.eventTold("NodeAddressIgnored", lie.told)
			}
			w.settled(w.members[:2]...)
			for range 3 { // about a second: what is not told is seen by its effects alone
				w.must(traffic.Round(w.Context()))
			}
		})
	}
	w.scenario("processes start while it lies", func() {
		w.writeAddresses(kubelet, liar, append(slices.Clone(egress), partner...), nil)
		w.eventTold("NodeAddressIgnored", added(egress[1]))
		for _, m := range w.members[:2] {
			m.Kill()
			m.Start()
			m.Ready()
		}
		for range 3 {
			w.must(traffic.Round(w.Context()))
		}
	})
	if err := kubelet.client.CoreV1().Nodes().Delete(w.Context(), liar.Name, metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		w.Errorf("a kubelet deletes its own Node: %v; want the API server to forbid that", err)
	}
	w.undisturbed(traffic)
	w.writeAddresses(kubelet, liar, own, nil)
	w.settled()
	w.answered()
	w.only(w.holder.Host, w.sends(w.answered))
}

func addresses(list ...netip.Addr) []netip.Addr { return list }

func nodeAddresses(internal, external []netip.Addr) (list []v1.NodeAddress) {
	for kind, ips := range map[v1.NodeAddressType][]netip.Addr{v1.NodeInternalIP: internal, v1.NodeExternalIP: external} {
		for _, ip := range ips {
			list = append(list, v1.NodeAddress{Type: kind, Address: ip.String()})
		}
	}
	return list
}

// writeAddresses has a kubelet write its Node's addresses.
func (w *world) writeAddresses(kubelet *somebody, m *member, internal, external []netip.Addr) {
	w.Helper()
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"addresses": nodeAddresses(internal, external)}})
	w.must(err)
	_, err = kubelet.client.CoreV1().Nodes().Patch(w.Context(), m.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	w.must(err)
}

// TestAttack_PoolLabel: a kubelet cannot give its Node the label of the nodes that egress IPs are put on. The former one it can, and
// that is told.
func TestAttack_PoolLabel(t *testing.T) {
	w := newIdleWorld(t, settings{nodes: 1, restricted: true, onLAN: true, arguments: poolArguments})
	m := w.members[0]
	kubelet := w.kubelet(m)
	label := func(key string) error {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:""}}}`, key)
		_, err := kubelet.client.CoreV1().Nodes().Patch(w.Context(), m.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
	if err := label("node-restriction.kubernetes.io/egress-assignable"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "is not allowed to modify labels") {
		w.Errorf("a kubelet gives its own Node the label: %v; want NodeRestriction to refuse that", err)
	}
	w.must(label("network.openshift.io/egress-assignable"))
	w.start()
	w.eventTold("EgressLabelUnprotected", "kubectl label node node-1 node-restriction.kubernetes.io/egress-assignable= network.openshift.io/egress-assignable-")
}
