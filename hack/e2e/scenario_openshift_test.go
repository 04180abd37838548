package e2e

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	configclient "github.com/openshift/client-go/config/clientset/versioned"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/origin-node/hack/lab"
	process "github.com/openshift/origin-node/hack/node"
)

// OpenShift's Network has the cluster CIDRs, and a policy on external IPs. Its kind comes with a
// CustomResourceDefinition.

const networkCRD = "testdata/networks.crd.yaml"

// The nodes have no cluster CIDRs but those of the Network.
var openShift = settings{arguments: `cluster-cidr: null`}

// TestNetwork_GivesClusterCIDRsAndPolicy: OpenShift's Network gives nodes their cluster CIDRs, and its policy says who may have which external IP.
func TestNetwork_GivesClusterCIDRsAndPolicy(t *testing.T) {
	belongsTo(t, usual)
	w := newIdleWorld(t, openShift)
	w.installNetworks()
	w.putNetwork(nil, lab.ClusterV4, lab.ClusterV6)
	w.start()
	pods := w.shop(append(w.ips(10), w.ips(11)...)...)
	shop := func(as ...string) {
		w.Helper()
		w.settled()
		for _, pod := range pods {
			w.leaves("tcp", pod, as...)
		}
	}
	policy := func(allowed, rejected []string) {
		w.Helper()
		w.putNetwork(&configv1.ExternalIPPolicy{AllowedCIDRs: allowed, RejectedCIDRs: rejected}, lab.ClusterV4, lab.ClusterV6)
	}
	everywhere := []string{"0.0.0.0/0", "::/0"}

	w.scenario("its cluster networks are the cluster CIDRs", func() {
		shop(w.ips(10)...)
		for _, to := range at(pods[1], port) {
			w.seen("tcp", pods[0], to, like(to.Addr(), pods[0]))
		}
	})
	w.scenario("a policy that allows the address changes nothing", func() {
		flows := w.flows(pods[0], "tcp", "udp")
		policy([]string{"203.0.113.0/24", "2001:db8:113::/48"}, nil)
		w.atRest()
		shop(w.ips(10)...)
		w.live(flows, w.ips(10)...)
	})
	w.scenario("an address that the policy does not allow is refused", func() {
		flows := w.flows(pods[0], "tcp", "udp")
		policy([]string{"203.0.113.11/32", "2001:db8:113::11/128"}, nil)
		w.refused("shop/web", "NotAllowed")
		if event := w.warned("shop", "web", "NotAllowed"); !strings.Contains(event.Message, "config.openshift.io") {
			w.Errorf("the Event does not name the policy: %s", event.Message)
		}
		w.atRest()
		shop()
		w.ended(flows)
	})
	w.scenario("one that it rejects is refused, although it allows it, too", func() {
		policy(everywhere, []string{"2001:db8:113::10/128"})
		shop("203.0.113.10")
		policy(everywhere, []string{"203.0.113.0/28"})
		shop("2001:db8:113::10")
	})
	w.scenario("an empty policy forbids all, none allows all", func() {
		policy(nil, nil)
		shop()
		w.putNetwork(nil, lab.ClusterV4, lab.ClusterV6)
		shop(w.ips(10)...)
		w.refused("shop/web", "")
	})
	w.scenario("a cluster network that is added is inside", func() {
		inside := netip.MustParsePrefix("198.51.100.0/24")
		partner := netip.AddrPortFrom(inside.Addr().Next(), port)
		w.must(w.AddAddr(w.Outside(), partner.Addr()))
		w.seen("tcp", pods[0], partner, netip.MustParseAddr("203.0.113.10"))
		w.putNetwork(nil, lab.ClusterV4, lab.ClusterV6, inside)
		shop(w.ips(10)...)
		w.seen("tcp", pods[0], partner, pods[0].Node.V4)
	})
	w.scenario("in a family without a cluster network nobody is bound", func() {
		w.putNetwork(nil, lab.ClusterV4)
		shop("203.0.113.10")
		w.refused("shop/web", "NoClusterCIDR")
		w.must(w.network.ConfigV1().Networks().Delete(w.Context(), "cluster", metav1.DeleteOptions{}))
		shop()
		w.putNetwork(nil, lab.ClusterV4, lab.ClusterV6)
		shop(w.ips(10)...)
	})
}

// TestNetwork_ComesAfterTheStart: a node learns of kinds that come later within a minute.
func TestNetwork_ComesAfterTheStart(t *testing.T) {
	belongsTo(t, long)
	w := newIdleWorld(t, openShift)
	w.start()
	pods := w.shopWithoutCIDRs(w.ips(10)...)
	w.refused("shop/web", "NoClusterCIDR")
	for _, pod := range pods {
		w.leaves("tcp", pod)
	}
	w.installNetworks()
	w.putNetwork(&configv1.ExternalIPPolicy{AllowedCIDRs: []string{"203.0.113.0/24"}}, lab.ClusterV4, lab.ClusterV6)
	process.Eventually(t, 2*soon, func() error {
		for _, m := range w.members {
			if !strings.Contains(m.Printed.String(), "Using the cluster CIDRs of the cluster's network configuration") {
				return fmt.Errorf("%s knows no Network", m.Name)
			}
		}
		return nil
	})
	w.settled()
	for _, pod := range pods {
		w.leaves("tcp", pod, "203.0.113.10")
	}
	w.refused("shop/web", "NotAllowed") // the IPv6 address
}

// shopWithoutCIDRs is shop where nothing is bound.
func (w *world) shopWithoutCIDRs(externalIPs ...string) (pods []*lab.Host) {
	w.Helper()
	w.namespace("shop")
	w.service("shop", "web", externalIPs, nil, tcp80, udp80)
	for i, m := range w.members {
		pods = append(pods, w.runPod("shop", fmt.Sprintf("web-%d", i+1), m, web))
	}
	for _, pod := range pods {
		w.endpoint("shop", "web", pod, ready)
	}
	return pods
}

// installNetworks gives the API server OpenShift's Network.
func (w *world) installNetworks() {
	w.Helper()
	w.must(w.Apply(w.Context(), networkCRD))
	client, err := configclient.NewForConfig(w.AdminConfig())
	w.must(err)
	w.eventually(func() error {
		_, err := client.ConfigV1().Networks().List(w.Context(), metav1.ListOptions{})
		return err
	})
	w.network = client
}

// putNetwork gives the Network a policy, nil for none, and cluster networks, as its operator does.
func (w *world) putNetwork(policy *configv1.ExternalIPPolicy, cidrs ...netip.Prefix) {
	w.Helper()
	var entries []configv1.ClusterNetworkEntry
	for _, cidr := range cidrs {
		entries = append(entries, configv1.ClusterNetworkEntry{CIDR: cidr.String(), HostPrefix: uint32(cidr.Addr().BitLen() - 8)})
	}
	networks := w.network.ConfigV1().Networks()
	w.eventually(func() error {
		object := &configv1.Network{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
		_, err := networks.Create(w.Context(), object, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		if object, err = networks.Get(w.Context(), "cluster", metav1.GetOptions{}); err != nil {
			return err
		}
		object.Spec.ClusterNetwork, object.Status.ClusterNetwork = entries, entries
		object.Spec.ExternalIP = nil
		if policy != nil {
			object.Spec.ExternalIP = &configv1.ExternalIPConfig{Policy: policy}
		}
		_, err = networks.Update(w.Context(), object, metav1.UpdateOptions{})
		return err
	})
}

// TestNetwork_CRDIsOfTheVendoredVersion keeps the CRD of the tests at the version of the vendored API.
func TestNetwork_CRDIsOfTheVendoredVersion(t *testing.T) {
	crd, err := os.ReadFile(networkCRD)
	if err != nil {
		t.Fatal(err)
	}
	modules, err := os.ReadFile("../../vendor/modules.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(crd)) {
		if strings.HasPrefix(line, "# github.com/openshift/api ") {
			if !strings.Contains(string(modules), line) {
				t.Errorf("%s is of %sbut another version is vendored: copy it anew", networkCRD, line)
			}
			return
		}
	}
	t.Errorf("%s does not say of which version of github.com/openshift/api it is", networkCRD)
}
