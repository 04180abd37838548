package netns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// putService puts a Service of a namespace, of an age in seconds, in front of these pods.
func (n *node) putService(namespace string, age int, svc *v1.Service, pods ...netip.Addr) {
	n.Helper()
	svc.Namespace = namespace
	svc.CreationTimestamp.Time = time.Unix(int64(100000-age), 0).UTC()
	n.putInFront(svc, pods...)
}

// putInFront puts a Service in front of these pods.
func (n *node) putInFront(svc *v1.Service, pods ...netip.Addr) {
	n.Helper()
	objects := []runtime.Object{svc}
	for _, slice := range endpoints(svc, pods...) {
		objects = append(objects, slice)
	}
	n.put(svc.Namespace+"-"+svc.Name+".yaml", objects...)
}

// removeService removes what putInFront put.
func (n *node) removeService(namespace, name string) {
	n.Helper()
	n.remove(namespace + "-" + name + ".yaml")
}

// refused waits until 'openshift egress refused' has the reason for the Service, in a line with
// these words too, or, if reason is empty, has nothing of it.
func (n *node) refused(service, reason string, words ...string) {
	n.Helper()
	words = append(words, reason)
	n.Eventually(soon, func() error {
		out, errs, status := n.Openshift("egress", "refused", "--socket="+n.Socket(), "--no-headers")
		if status != 0 {
			return errors.New(errs)
		}
		for line := range strings.Lines(out) {
			if !strings.HasPrefix(line, service+" ") {
				continue
			}
			if reason != "" && !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, " "+word+" ") }) {
				return nil
			}
			if reason == "" {
				return fmt.Errorf("still refused: %s", line)
			}
		}
		if reason == "" {
			return nil
		}
		return fmt.Errorf("refused is not %s of %s, but:\n%s", words, service, out)
	})
}

// TestAddress_OfANodeWhereAllowed: a node's own address as an external IP, where that is allowed.
func TestAddress_OfANodeWhereAllowed(t *testing.T) {
	everyWay(t, func(n *node) {
		n.Configure(`egress-snat-allow-node-ips: ["true"]`)
		n.serve(n.Outside(), whoamiPort, "udp4")
		n.remembers()
		n.putService("shop", 0, service("web", webIPs, []string{n.Node().V4.String()}, allProtocols...), n.Pod(1).V4)
		n.start()
		n.Ready()
		n.metric(`egress_snat_bindings{ip_family="IPv4"} 3`)
		n.holdsPlan(soon)
		const port = 4000
		n.asks("udp4", n.Pod(1), port, n.Node().V4)
		id := n.tracked("udp", n.Pod(1).V4, port)
		// Unbound, the pod is masqueraded to the same address, so its flows are right.
		n.removeService("shop", "web")
		n.holdsPlan(soon) // no rule at all
		n.Stop()
		n.restart()
		n.asks("udp4", n.Pod(1), port, n.Node().V4)
		if now := n.tracked("udp", n.Pod(1).V4, port); now != id {
			n.Errorf("the flow was made anew: %s, then %s", id, now)
		}
	})
}

// asks waits until the pod, from a fixed port, is seen as want. Its flow goes on where it
// was, unless somebody ends it.
func (n *node) asks(network string, pod *lab.Host, port uint16, want netip.Addr) {
	n.Helper()
	n.Eventually(soon, func() error {
		ctx, cancel := context.WithTimeout(n.Context(), time.Second)
		defer cancel()
		seen, err := pod.Ask(ctx, network, n.outside(network), port)
		if err == nil && seen != want {
			err = fmt.Errorf("%s from port %d (%s) is seen as %s, want %s", pod.Name, port, network, seen, want)
		}
		return err
	})
}

// remembers has the node's kernel remember UDP flows for longer than a test may take between two
// questions on a busy machine. What ends a flow then is no lapse of time.
func (n *node) remembers() {
	n.Helper()
	for _, name := range []string{"nf_conntrack_udp_timeout", "nf_conntrack_udp_timeout_stream"} {
		if _, err := n.Node().Run(n.Context(), "sysctl", "-w", "net.netfilter."+name+"=3600"); err != nil {
			n.Fatal(err)
		}
	}
}

// tracked returns the conntrack id of a pod's flow from a port; it fails unless there is one.
func (n *node) tracked(protocol string, pod netip.Addr, port int) string {
	n.Helper()
	family := "ipv4"
	if pod.Is6() {
		family = "ipv6"
	}
	out, err := n.Node().Run(n.Context(), "conntrack", "-L", "-f", family, "-p", protocol, "--orig-src", pod.String(), "--orig-port-src", fmt.Sprint(port), "-o", "id")
	if err != nil {
		n.Fatal(err)
	}
	_, id, found := strings.Cut(out, " id=")
	if !found || strings.Count(out, " id=") != 1 {
		n.Fatalf("not one flow of %s from port %d:\n%s", pod, port, out)
	}
	return strings.Fields(id)[0]
}

// TestFlows_EndWhenTheirBindingChanges: UDP flows from fixed ports, which conntrack would keep, get another
// source address as soon as a binding is added, changed, moved or removed; flows of other pods
// stay the same.
func TestFlows_EndWhenTheirBindingChanges(t *testing.T) {
	everyWay(t, func(n *node) {
		const port, other = 4000, 4001
		pod1, pod2 := n.Pod(1), n.Pod(2)
		udp := []v1.ServicePort{{Name: "udp", Port: 80, Protocol: v1.ProtocolUDP}}
		n.serve(n.Outside(), whoamiPort, "udp4", "udp6", "tcp4")
		n.remembers()
		n.start()
		n.Ready()
		begin := func() {
			n.asks("udp4", pod2, other, n.Node().V4)
			n.asks("udp6", pod2, other, n.Node().V6)
		}
		begin()
		ids := func() string {
			n.Helper()
			return n.tracked("udp", pod2.V4, other) + " " + n.tracked("udp", pod2.V6, other)
		}
		others := ids()
		tcp, err := pod1.Dial(n.Context(), "tcp4", n.outside("tcp4"), 0)
		if err != nil {
			n.Fatal(err)
		}
		for _, step := range []struct {
			what   string
			do     func()
			v4, v6 netip.Addr
		}{
			{"unbound", func() {}, n.Node().V4, n.Node().V6},
			{"added", func() {
				n.putService("shop", 9, service("web", webIPs, []string{egressV4.String(), egressV6.String()}, udp...), pod1.V4, pod1.V6)
			}, egressV4, egressV6},
			{"changed", func() {
				n.putService("shop", 9, service("web", webIPs, []string{anotherV4.String(), anotherV6.String()}, udp...), pod1.V4, pod1.V6)
			}, anotherV4, anotherV6},
			{"moved, the pod's address used by another namespace", func() {
				n.putService("shop", 9, service("web", webIPs, []string{anotherV4.String(), anotherV6.String()}, udp...))
				n.putService("bank", 8, service("atm", dbIPs, []string{egressV4.String(), egressV6.String()}, udp...), pod1.V4, pod1.V6)
			}, egressV4, egressV6},
			{"removed in one family", func() {
				n.putService("bank", 8, service("atm", dbIPs, []string{egressV4.String()}, udp...), pod1.V4, pod1.V6)
			}, egressV4, n.Node().V6},
			{"removed", func() { n.removeService("bank", "atm") }, n.Node().V4, n.Node().V6},
		} {
			n.Log(step.what)
			step.do()
			n.asks("udp4", pod1, port, step.v4)
			n.asks("udp6", pod1, port, step.v6)
			begin()
			if now := ids(); now != others {
				n.Fatalf("%s: flows of an unbound pod were made anew: %s, then %s", step.what, others, now)
			}
		}
		if seen, err := tcp.Ask(n.Context()); err != nil || seen != n.Node().V4 {
			n.Errorf("a flow of a protocol that was never bound is seen as %v, %v", seen, err)
		}
		n.Eventually(soon, func() error {
			text, err := n.get(metricsURL)
			if err == nil && (!strings.Contains(text, "egress_snat_conntrack_deletions_total") || strings.Contains(text, `egress_snat_conntrack_deletions_total{ip_family="IPv4"} 0`)) {
				err = errors.New("no deletions are counted")
			}
			return err
		})
	})
}

// TestFlows_EndAfterAKill: what changes while no node runs, or is killed in the middle of it,
// is made good at the next start; flows that are right live on.
func TestFlows_EndAfterAKill(t *testing.T) {
	onBackends(t, func(n *node) {
		const port = 4000
		pod1, pod2 := n.Pod(1), n.Pod(2)
		ips := []string{egressV4.String(), egressV6.String()}
		n.serve(n.Outside(), whoamiPort, "udp4", "udp6")
		n.remembers()
		n.putService("shop", 9, service("web", webIPs, ips, allProtocols...), pod1.V4, pod1.V6, pod2.V4, pod2.V6)
		n.start()
		for _, network := range []string{"udp4", "udp6"} {
			for _, pod := range []*lab.Host{pod1, pod2} {
				n.asks(network, pod, port, of(network, egressV4, egressV6))
			}
		}
		right := n.tracked("udp", pod2.V4, port)
		n.Kill()
		n.putService("shop", 9, service("web", webIPs, ips, allProtocols...), pod2.V4, pod2.V6)
		n.restart()
		for _, network := range []string{"udp4", "udp6"} {
			n.asks(network, pod1, port, n.nodeIP(network))
		}
		// Killed between the write of the rules and the deletion of the flows.
		n.dieAfterRestore("OPENSHIFT-EGRESS-REMOVED")
		n.putService("bank", 9, service("atm", dbIPs, []string{anotherV4.String()}, allProtocols...), pod1.V4)
		n.asks("udp4", pod1, port, anotherV4)
		n.removeService("bank", "atm")
		if status := n.Exit(); status == 0 {
			n.Fatalf("the node was not killed")
		}
		n.asks("udp4", pod1, port, anotherV4) // the flow lives on
		n.mendRestore()
		n.restart()
		n.asks("udp4", pod1, port, n.Node().V4)
		if now := n.tracked("udp", pod2.V4, port); now != right {
			n.Errorf("a flow that was right was made anew: %s, then %s", right, now)
		}
	})
}

// dieAfterRestore lets the node be killed as soon as it has restored IPv4 rules with a
// text in them. mendRestore takes that away.
func (n *node) dieAfterRestore(text string) {
	n.Helper()
	for _, name := range []string{"iptables-restore", "ip6tables-restore"} {
		script := fmt.Sprintf("#!/bin/sh\npayload=$(cat)\nprintf '%%s\\n' \"$payload\" | PATH=%s %s \"$@\" || exit\ncase $payload in *\"-A %s\"*) kill -9 $PPID ;; esac\n", n.Path(), name, text)
		if err := os.WriteFile(filepath.Join(n.BinDir, name), []byte(script), 0o755); err != nil {
			n.Fatal(err)
		}
	}
}

// flowsEnd makes UDP flows of pod-1, bound to the egress IPs, then lets end happen, after
// which the flows, and new ones, must leave from the node's addresses.
func (n *node) flowsEnd(end func()) {
	n.Helper()
	const port = 4000
	n.serve(n.Outside(), whoamiPort, "udp4", "udp6")
	n.putService("shop", 9, service("web", webIPs, []string{egressV4.String(), egressV6.String()}, allProtocols...), n.Pod(1).V4, n.Pod(1).V6)
	n.start()
	for _, network := range []string{"udp4", "udp6"} {
		n.asks(network, n.Pod(1), port, of(network, egressV4, egressV6))
	}
	n.Ready()
	end()
	for _, network := range []string{"udp4", "udp6"} {
		n.asks(network, n.Pod(1), port, n.nodeIP(network))
		n.Sees(network, n.Pod(1), n.outside(network), n.nodeIP(network))
	}
}

// TestFlows_BegunDuringAFlush: a flow that began while somebody had removed the rules ends when they are
// back, also where a change is what brings them back.
func TestFlows_BegunDuringAFlush(t *testing.T) {
	everyWay(t, func(n *node) {
		n.serve(n.Outside(), whoamiPort, "udp4")
		bind := func(pods ...netip.Addr) {
			n.putService("shop", 9, service("web", webIPs, []string{egressV4.String()}, allProtocols...), pods...)
		}
		bind(n.Pod(1).V4)
		n.start()
		n.Ready()
		for port := uint16(4000); port < 4005; port++ {
			if n.Arguments["proxy-mode"] != nil || n.Arguments["egress-snat-backend"] != nil {
				n.nft("delete table ip " + steering.LocalTable) // with no rule at all nothing would be tracked
			} else {
				n.Iptables("-t", "nat", "-F")
			}
			ctx, cancel := context.WithTimeout(n.Context(), time.Second)
			_, _ = n.Pod(1).Ask(ctx, "udp4", n.outside("udp4"), port) // seen as the node, or unanswered
			cancel()
			if port%2 == 0 {
				bind(n.Pod(1).V4, n.Pod(2).V4)
			} else {
				bind(n.Pod(1).V4)
			}
			n.asks("udp4", n.Pod(1), port, egressV4)
		}
	})
}

// TestFlows_EndWithEgressSNAT: switched off, or cleaned up, it leaves no identity behind, and no rule.
func TestFlows_EndWithEgressSNAT(t *testing.T) {
	for name, end := range map[string]func(*node){
		"switched off": func(n *node) {
			n.Configure(`egress-snat: ["false"]`)
			n.start()
		},
		"cleaned up": func(n *node) {
			if _, errs, status := n.Openshift("start", "node", "--config="+n.Config(), "--manifests="+n.manifests(), "--cleanup"); status != 0 {
				n.Fatal(errs)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			everyWay(t, func(n *node) {
				n.flowsEnd(func() {
					n.Stop()
					end(n)
				})
				n.Eventually(soon, func() error { // the journal goes last
					left, err := n.Node().Run(n.Context(), "sh", "-c", "set -e; iptables-save; ip6tables-save; nft list ruleset")
					if err == nil && (strings.Contains(left, "OPENSHIFT-EGRESS") || strings.Contains(left, steering.LocalTable)) {
						err = fmt.Errorf("rules are left:\n%s", left)
					}
					return err
				})
			})
		})
	}
}

// TestFlows_OfARestoredSnapshot: somebody restores rules of ours from before, under which flows
// begin; they end with the repair.
func TestFlows_OfARestoredSnapshot(t *testing.T) {
	everyWay(t, func(n *node) {
		n.flowsEnd(func() {
			restore := n.snapshot()
			n.removeService("shop", "web")
			n.holdsPlan(soon) // no rule at all
			// The node sleeps while the old rules do their work.
			n.Signal(syscall.SIGSTOP)
			restore()
			for _, network := range []string{"udp4", "udp6"} {
				n.asks(network, n.Pod(1), 4000, of(network, egressV4, egressV6))
			}
			n.Signal(syscall.SIGCONT)
		})
	})
}

// snapshot returns what restores the rules that the kernel holds now.
func (n *node) snapshot() (restore func()) {
	n.Helper()
	if n.Backend != reconcile.NFTables {
		v4, v6 := n.Save(v1.IPv4Protocol), n.Save(v1.IPv6Protocol)
		return func() {
			n.AsSomebodyElse(v4, "iptables-restore", "-w")
			n.AsSomebodyElse(v6, "ip6tables-restore", "-w")
		}
	}
	var tables string
	for _, family := range []string{"ip", "ip6"} {
		table, err := n.Node().Run(n.Context(), "nft", "list", "table", family, steering.LocalTable)
		if err != nil {
			n.Fatal(err)
		}
		tables += "table " + family + " " + steering.LocalTable + "\ndelete table " + family + " " + steering.LocalTable + "\n" + table
	}
	return func() { n.AsSomebodyElse(tables, "nft", "-f", "-") }
}

// TestFlows_OfTheOtherBackend: a node that begins to use the other iptables ends the flows of
// bindings that its earlier run had written there.
func TestFlows_OfTheOtherBackend(t *testing.T) {
	for _, backend := range lab.Backends() {
		t.Run(string(backend), func(t *testing.T) {
			t.Parallel()
			n := newNode(t, lab.Config{IPv6: true, Pods: 1, Masquerade: true, Backend: backend})
			n.useOtherBackend(backend)
			n.flowsEnd(func() {
				n.Stop()
				if err := os.RemoveAll(n.BinDir); err != nil {
					t.Fatal(err)
				}
				n.removeService("shop", "web")
				n.start()
			})
		})
	}
}

// TestExclusions_InsideTheCluster: pods reach each other, Services by any of their addresses, their
// own external IP, and nodes, exactly as if they were not bound.
func TestExclusions_InsideTheCluster(t *testing.T) {
	everyWay(t, func(n *node) {
		pod1, pod2 := n.Pod(1), n.Pod(2)
		ports := allProtocols[:2]
		n.put("node-2.yaml", &v1.Node{
			TypeMeta: typeMeta("v1", "Node"), ObjectMeta: objectMeta("", "node-2"),
			Status: v1.NodeStatus{Addresses: []v1.NodeAddress{
				{Type: v1.NodeInternalIP, Address: n.Outside().V4.String()}, {Type: v1.NodeInternalIP, Address: n.Outside().V6.String()},
			}},
		})
		// Somebody outside that is no node.
		partner := map[string]netip.Addr{"4": netip.MustParseAddr("198.51.100.99"), "6": netip.MustParseAddr("2001:db8:113::99")}
		for _, ip := range []netip.Addr{partner["4"], partner["6"]} {
			if err := n.AddAddr(n.Outside(), ip); err != nil {
				n.Fatal(err)
			}
		}
		n.serve(n.Outside(), whoamiPort, "udp4", "udp6")
		n.serve(n.Node(), whoamiPort, "udp4", "udp6")
		n.serve(pod1, 80, "udp4", "udp6")
		n.serve(pod2, 80, "udp4", "udp6")
		n.putService("shop", 9, service("web", webIPs, []string{egressV4.String(), egressV6.String()}, ports...), pod1.V4, pod1.V6)
		db := service("db", dbIPs, []string{anotherV4.String(), anotherV6.String()}, ports...)
		db.Annotations = map[string]string{cluster.Annotation: "false"}
		n.putService("shop", 9, db, pod2.V4, pod2.V6)

		type question struct {
			network string
			to      netip.AddrPort
		}
		var questions []question
		for _, family := range []string{"4", "6"} {
			network := "udp" + family
			for _, to := range []netip.AddrPort{
				netip.AddrPortFrom(of(network, pod2.V4, pod2.V6), 80),
				netip.AddrPortFrom(of(network, netip.MustParseAddr(dbIPs[0]), netip.MustParseAddr(dbIPs[1])), 80),
				netip.AddrPortFrom(of(network, anotherV4, anotherV6), 80),
				netip.AddrPortFrom(of(network, egressV4, egressV6), 80),                                                               // hairpin
				netip.AddrPortFrom(n.nodeIP(network), whoamiPort),                                                                     // its own node
				netip.AddrPortFrom(n.outside(network).Addr(), whoamiPort),                                                             // another node
				netip.AddrPortFrom(of(network, netip.MustParseAddr("10.128.0.1"), netip.MustParseAddr("fd00:10:128::1")), whoamiPort), // the node on the pods' network
			} {
				questions = append(questions, question{network, to})
			}
		}
		answers := func() []string {
			n.Helper()
			var seen []string
			for _, q := range questions {
				var as netip.Addr
				n.Eventually(soon, func() (err error) {
					as, err = n.ask(q.network, pod1, q.to)
					return err
				})
				seen = append(seen, fmt.Sprintf("%s %s as %s", q.network, q.to, as))
			}
			return seen
		}

		n.Configure(`egress-snat: ["false"]`)
		n.start()
		n.Sees("udp4", pod1, netip.AddrPortFrom(netip.MustParseAddr(dbIPs[0]), 80), pod1.V4)
		n.Sees("udp6", pod1, netip.AddrPortFrom(netip.MustParseAddr(dbIPs[1]), 80), pod1.V6)
		without := answers()
		n.Stop()
		n.Configure("")
		n.restart()
		for _, family := range []string{"4", "6"} {
			n.Sees("udp"+family, pod1, netip.AddrPortFrom(partner[family], whoamiPort), of("udp"+family, egressV4, egressV6))
		}
		with := answers()
		for i := range questions {
			if with[i] != without[i] {
				n.Errorf("%s, want it as without egress SNAT: %s", with[i], without[i])
			}
		}
		n.Stop()
		n.Configure(`egress-snat-exclude-nodes: ["false"]`)
		n.restart()
		n.Sees("udp4", pod1, n.outside("udp4"), egressV4)
		// Its own external IP, where the proxier serves nothing and somebody outside does.
		for _, ip := range []netip.Addr{egressV4, egressV6} {
			if err := n.AddAddr(n.Outside(), ip); err != nil {
				n.Fatal(err)
			}
		}
		n.Sees("udp4", pod1, netip.AddrPortFrom(egressV4, whoamiPort), n.Node().V4)
		n.Sees("udp6", pod1, netip.AddrPortFrom(egressV6, whoamiPort), n.Node().V6)
	})
}

// TestProtocols_All: with egress-snat-protocols=all everything leaves from the egress IP,
// whatever the Service's ports are.
func TestProtocols_All(t *testing.T) {
	everyWay(t, func(n *node) {
		n.Configure(`egress-snat-protocols: ["all"]`)
		all := append([]string{"icmp4", "icmp6"}, networks...)
		n.serve(n.Outside(), whoamiPort, all...)
		pod := n.Pod(1)
		n.putWeb([]string{egressV4.String(), egressV6.String()})
		n.start()
		for _, network := range all {
			n.Sees(network, pod, n.outside(network), of(network, egressV4, egressV6))
		}
		n.holdsPlan(soon)
	})
}

// TestNetwork_GivesClusterCIDRsAndPolicy: OpenShift's Network object gives the cluster CIDRs where none
// are configured, and its policy takes effect while the node runs.
func TestNetwork_GivesClusterCIDRsAndPolicy(t *testing.T) {
	everyWay(t, func(n *node) {
		network := &configv1.Network{TypeMeta: typeMeta("config.openshift.io/v1", "Network"), ObjectMeta: objectMeta("", "cluster")}
		network.Status.ClusterNetwork = []configv1.ClusterNetworkEntry{{CIDR: lab.ClusterV4.String(), HostPrefix: 24}, {CIDR: lab.ClusterV6.String(), HostPrefix: 64}}
		policy := func(policy *configv1.ExternalIPPolicy) {
			n.Helper()
			network.Spec.ExternalIP = &configv1.ExternalIPConfig{Policy: policy}
			n.put("network.yaml", network)
		}
		n.Configure(`cluster-cidr: null`)
		n.serve(n.Outside(), whoamiPort, "tcp4", "tcp6")
		n.putWeb([]string{egressV4.String(), egressV6.String()})
		n.start()
		n.refused("shop/web", "NoClusterCIDR")
		policy(nil)
		sees := func(v4, v6 netip.Addr) {
			n.Helper()
			n.Sees("tcp4", n.Pod(1), n.outside("tcp4"), v4)
			n.Sees("tcp6", n.Pod(1), n.outside("tcp6"), v6)
		}
		sees(egressV4, egressV6)
		n.Says("Using the cluster CIDRs of the cluster's network configuration")
		policy(&configv1.ExternalIPPolicy{})
		sees(n.Node().V4, n.Node().V6)
		n.refused("shop/web", "NotAllowed")
		policy(&configv1.ExternalIPPolicy{AllowedCIDRs: []string{"203.0.113.0/24", "2001:db8::/32"}, RejectedCIDRs: []string{egressV6.String() + "/128"}})
		sees(egressV4, n.Node().V6)
		policy(nil)
		sees(egressV4, egressV6)
		n.refused("shop/web", "")
		n.holdsPlan(soon)
	})
}

// TestCommands_AsAnOperatorUsesThem: as an operator uses them, on the binary.
func TestCommands_AsAnOperatorUsesThem(t *testing.T) {
	onBackends(t, func(n *node) {
		socket := "--socket=" + n.Socket()
		if _, errs, status := n.Openshift("egress", "list", socket); status != 1 || !strings.Contains(errs, n.Socket()) {
			n.Errorf("without a node: status %d, %s", status, errs)
		}
		n.putWeb([]string{egressV4.String(), egressV6.String()})
		n.start()
		n.Ready()
		out, errs, status := n.Openshift("egress", "list", socket, "--no-headers")
		if fields := strings.Fields(out); status != 0 || errs != "" || len(fields) < 4 || fields[0] != n.Pod(1).V4.String() || !strings.Contains(out, "shop/web") {
			n.Errorf("list: status %d, %s%s", status, out, errs)
		}
		out, _, _ = n.Openshift("egress", "list", socket, "-o", "json")
		var document struct {
			Node  string `json:"node"`
			Ready bool   `json:"ready"`
		}
		if err := json.Unmarshal([]byte(out), &document); err != nil || document.Node != "node-1" || !document.Ready {
			n.Errorf("list -o json: %v: %s", err, out)
		}
		out, errs, status = n.Openshift("egress", "explain", socket, n.Pod(1).V4.String(), n.Outside().V4.String(), "--protocol=tcp")
		if status != 0 || !strings.Contains(out, "This packet would leave as "+egressV4.String()) || !strings.Contains(out, "--to-source "+egressV4.String()) {
			n.Errorf("explain: status %d, %s%s", status, out, errs)
		}
		out, errs, status = n.Openshift("egress", "explain", socket, "shop/web")
		if status != 0 || !strings.Contains(out, egressV6.String()) {
			n.Errorf("explain a Service: status %d, %s%s", status, out, errs)
		}
		out, errs, status = n.Openshift("egress", "verify", socket)
		if status != 0 {
			n.Errorf("verify: status %d, %s%s", status, out, errs)
		}
		n.breakRestore() // so that the node cannot repair what is broken now
		n.Iptables("-t", "nat", "-F", "OPENSHIFT-EGRESS-SNAT")
		out, _, status = n.Openshift("egress", "verify", socket)
		if status != 1 || !strings.Contains(out, "lacks the rule") || !strings.Contains(out, "--to-source "+egressV4.String()) {
			n.Errorf("verify after a flush: status %d, %s", status, out)
		}
		n.mendRestore()
		n.holdsPlan(soon)
		for _, ip := range []string{anotherV4.String(), egressV4.String()} { // no change of before the start has a latency
			n.putWeb([]string{ip})
			n.holdsPlan(soon)
		}
		for _, metric := range []string{`egress_snat_rules{ip_family="IPv4"}`, "egress_snat_network_programming_duration_seconds_count", "egress_snat_conntrack_deletions_total"} {
			n.shows(metricsURL, metric)
		}
		n.serve(n.Outside(), whoamiPort, "tcp4")
		flow, err := n.Pod(1).Dial(n.Context(), "tcp4", n.outside("tcp4"), 0)
		if err != nil {
			n.Fatal(err)
		}
		defer func() { _ = flow.Close() }()
		n.metric(`egress_snat_tracked_flows{egress_ip="` + egressV4.String() + `"} 1`)
		n.metric(fmt.Sprintf(`egress_snat_port_usage_ratio{egress_ip="%s"} %g`, egressV4, 1.0/64512))
	})
}
