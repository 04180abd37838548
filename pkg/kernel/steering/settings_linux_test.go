package steering

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
)

// interfaceSettings are those of a node whose eth0 leads to other nodes and their pods, and cni0 to its own.
var interfaceSettings = []string{
	filterPath("all"), filterPath("eth0"), filterPath("cni0"), redirectsPath("all"), redirectsPath("eth0"), redirectsPath("cni0"),
}

// onStrictNode runs test for each transport on a node that has all these settings at 1, of which steering changes some. d
// is what it desires.
func onStrictNode(t *testing.T, test func(n *node, d kernel.Desired, changed map[string]string)) {
	for transport, changed := range map[Transport]map[string]string{
		VXLAN:  {filterPath("eth0"): "2"},
		Direct: {filterPath("eth0"): "2", redirectsPath("all"): "0", redirectsPath("eth0"): "0"},
	} {
		t.Run(string(transport), func(t *testing.T) {
			c := newCluster(t, kernel.IPv4, lab.Config{Nodes: 2, Pods: 2})
			c.use(transport)
			n := c.nodes[0]
			n.anew()
			for _, path := range interfaceSettings {
				n.setting(path, "1")
			}
			d := c.desired()
			d.Steering = n.steering(nil)
			test(n, d, changed)
		})
	}
}

// setting is what an administrator makes of a setting.
func (n *node) setting(path, value string) {
	n.c.Helper()
	n.c.run(n.host, "sysctl -q -w %s=%s", path, value)
}

// has fails unless the settings are 1, but for some that are otherwise.
func (n *node) has(what string, otherwise map[string]string) {
	n.c.Helper()
	want, got := map[string]string{}, map[string]string{}
	for _, path := range interfaceSettings {
		want[path], got[path] = "1", strings.TrimSpace(n.c.run(n.host, "sysctl -n %s", path))
	}
	maps.Copy(want, otherwise)
	if diff := cmp.Diff(want, got); diff != "" {
		n.c.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func (n *node) cleanup() {
	n.c.Helper()
	n.inside(func() error { return Cleanup(n.c.Context()) })
	n.anew()
}

// anew has another process on the node.
func (n *node) anew() { n.restart(newPath(n.config())) }

// TestSettings_PutBackByAnotherProcess: a setting is changed where steering needs it, once, and is what it was after a
// clean-up.
func TestSettings_PutBackByAnotherProcess(t *testing.T) {
	onStrictNode(t, func(n *node, d kernel.Desired, changed map[string]string) {
		if !n.write(d) || n.write(d) {
			n.c.Error("want a change the first time alone")
		}
		n.has("written", changed)
		n.anew()
		if n.write(d) {
			n.c.Error("the next process has changed something")
		}
		n.cleanup()
		n.has("after a clean-up", nil)
		n.cleanup() // nothing is there
		n.has("after another one", nil)
	})
}

// TestSettings_OutliveTheTable: somebody deletes the table with the record of them; the process remembers.
func TestSettings_OutliveTheTable(t *testing.T) {
	onStrictNode(t, func(n *node, d kernel.Desired, changed map[string]string) {
		n.write(d)
		n.nft("delete table %s", n.name())
		n.read()
		n.write(d)
		n.has("written again", changed)
		n.cleanup()
		n.has("after a clean-up", nil)
	})
}

// TestSettings_ChangedByOthers: what steering needs is told, and repaired; what it can do without is left alone, also by
// the clean-up.
func TestSettings_ChangedByOthers(t *testing.T) {
	onStrictNode(t, func(n *node, d kernel.Desired, changed map[string]string) {
		n.write(d)
		fingerprint := n.print()
		for path, now := range changed {
			n.setting(path, "1")
			want := "sysctl " + path + "=1: should be: sysctl " + path + "=" + now
			if n.print() == fingerprint || n.untouched() || !slices.Contains(n.read(), want) {
				n.c.Errorf("%s is set to 1, and the differences are %q; want %q", path, n.read(), want)
			}
			n.write(d)
			n.has("repaired", changed)
		}
		if n.print() != fingerprint || !n.untouched() {
			n.c.Error("it is another state after the repair")
		}
		n.setting(filterPath("eth0"), "0")
		n.setting(filterPath("all"), "0")
		off := map[string]string{filterPath("eth0"): "0", filterPath("all"): "0"}
		if n.write(d) {
			n.c.Error("filters that are off were changed")
		}
		n.cleanup()
		n.has("after a clean-up", off)
	})
}

// TestSettings_OfCIDRsThatComeLater: cluster CIDRs that come with a change alone have the next look find what settings they ask for.
func TestSettings_OfCIDRsThatComeLater(t *testing.T) {
	onStrictNode(t, func(n *node, d kernel.Desired, changed map[string]string) {
		if n.c.transport == Direct {
			n.c.Skip("the uplink leads to all pods, and has its settings anyway")
		}
		without := d
		without.ClusterCIDRs = nil
		n.write(without)
		n.has("without CIDRs", nil)
		n.updateTo(d)
		if found := n.read(); len(found) != 1 || !strings.Contains(found[0], filterPath("eth0")) {
			n.c.Errorf("the differences are %q, want %s", found, filterPath("eth0"))
		}
		n.write(d)
		n.has("written", changed)
	})
}

func (n *node) print() (fingerprint string) {
	n.c.Helper()
	n.inside(func() (err error) {
		fingerprint, err = n.Fingerprint(n.c.Context())
		return err
	})
	return fingerprint
}

// TestSettings_EachNextHop: the pods of other nodes may be behind several interfaces, and behind a router that has an IPv6 address alone.
func TestSettings_EachNextHop(t *testing.T) {
	for _, hops := range []string{
		"nexthop via 192.0.2.77 dev eth0 nexthop via 192.0.2.78 dev eth0",
		"via inet6 fe80::77 dev eth0",
	} {
		onStrictNode(t, func(n *node, d kernel.Desired, changed map[string]string) {
			n.setting("net.ipv6.conf.eth0.disable_ipv6", "0") // as a next hop
			n.c.run(n.host, "ip route del %s", n.c.nodes[1].host.PodCIDRs()[0])
			n.c.run(n.host, "ip route add %s %s", n.c.nodes[1].host.PodCIDRs()[0], hops)
			n.write(d)
			n.has("while pods are "+hops, changed)
		})
	}
}
