package e2e

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/hack/machine"
)

// TestDaemonSet_ReplacesKubeProxy: images/node/daemonset.yaml on two nodes with real kubelets, on which kube-proxy has run, from
// its installation to its removal.
func TestDaemonSet_ReplacesKubeProxy(t *testing.T) {
	belongsTo(t, long)
	for name, s := range map[string]settings{
		"legacy": {backend: lab.Legacy}, "nft": {backend: lab.NFT}, "nftables": {backend: lab.NFT, nftables: true},
	} {
		t.Run(name, func(t *testing.T) {
			before := surroundings(t)
			w := newDaemonSetWorld(t, s)
			w.scenario("install", w.installs)
			w.scenario("privileges", w.hasFewPrivileges)
			w.scenario("commands", w.isAsked)
			w.scenario("configuration", w.followsItsConfiguration)
			w.scenario("rolling update", w.updatesWithoutASign)
			w.scenario("delete", w.leavesTheRules)
			w.scenario("CNI plugin", w.installsThePlugin)
			w.scenario("clean-up", w.cleansUp)
			for _, m := range w.machines {
				m.Close()
			}
			unchanged(t, before)
		})
	}
}

// installs: kube-proxy has written its rules on each node and is gone. Its rules stay active until the node has written its own.
func (w *daemonSetWorld) installs() {
	w.runKubeProxy()
	w.answers(w.egressIPs)
	w.apply()
	w.rolledOut()
	w.leave()
	w.answers(w.egressIPs)
	w.settled()
	for _, m := range w.members {
		const setting, want = "/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_established", "86400" // kube-proxy's default
		got, err := m.Host.Run(w.Context(), "cat", setting)
		w.must(err)
		if strings.TrimSpace(got) != want {
			w.Errorf("%s: %s is %s, want %s", m.Name, setting, got, want)
		}
	}
}

// hasFewPrivileges: the processes have what the manifest says and no more, and nothing is refused to them.
func (w *daemonSetWorld) hasFewPrivileges() {
	want := map[string]string{
		"CapEff": "0000000000003400", "CapBnd": "0000000000003400", // NET_BIND_SERVICE, NET_ADMIN, NET_RAW
		"NoNewPrivs": "1", "Seccomp": "2",
	}
	refused := regexp.MustCompile(`(?i).*(permission denied|not permitted|read-only file system).*`)
	for _, m := range w.members {
		got := map[string]string{}
		for line := range strings.Lines(w.inPod(m, "cat", "/proc/1/status")) {
			if key, value, _ := strings.Cut(line, ":"); want[key] != "" {
				got[key] = strings.TrimSpace(value)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			w.Errorf("%s: the process of the node (-want +got):\n%s", m.Name, diff)
		}
		for _, line := range refused.FindAllString(w.kubectl("logs", w.podOf(m), "--container=node"), -1) {
			w.Errorf("%s: something is refused: %s", m.Name, line)
		}
	}
}

// isAsked: the commands for operators work in the pods.
func (w *daemonSetWorld) isAsked() {
	lists := ""
	for _, m := range w.members {
		if out := w.inPod(m, "openshift", "egress", "verify"); strings.Contains(out, "warning") {
			w.Errorf("%s: openshift egress verify:\n%s", m.Name, out)
		}
		lists += fmt.Sprintf("%s:\n%s", m.Name, w.inPod(m, "openshift", "egress", "list"))
	}
	if !strings.Contains(lists, w.egressIPs[0]) { // all pods may be on one node
		w.Errorf("openshift egress list:\n%s", lists)
	}
}

// followsItsConfiguration: when the ConfigMap has changed, each node starts again by itself, in the same pod.
func (w *daemonSetWorld) followsItsConfiguration() {
	w.edit("proxyArguments:", "proxyArguments:\n      egress-snat-protocols: [all]")
	w.apply()
	for _, m := range w.members {
		w.kubectl("annotate", w.podOf(m), "look=now") // or the kubelet looks in a minute
		m.Configure("egress-snat-protocols: [all]")
	}
	w.eventually(func() error {
		for _, m := range w.members {
			if status := w.restarts(m); status != "1 75" {
				return fmt.Errorf("%s: restarts and last exit status are %q, want \"1 75\"", m.Name, status)
			}
		}
		return nil
	})
	w.settled()
	w.leave()
}

// updatesWithoutASign: while one pod after the other is replaced, a kept connection lives, and every new one leaves from the
// egress IP.
func (w *daemonSetWorld) updatesWithoutASign() {
	was := w.rules()
	kept := w.keepConnection()
	w.kubectl("rollout", "restart", "daemonset/origin-node")
	ctx, cancel := context.WithCancel(w.Context())
	ended := make(chan error, 1)
	go func() { defer cancel(); ended <- w.tryRolledOut() }()
	flows := 0
	for ctx.Err() == nil {
		for _, pod := range w.pods("shop") {
			w.must(w.left(pod))
			flows++
		}
		w.must(kept())
	}
	w.must(<-ended)
	w.Logf("%d flows began meanwhile", flows)
	if diff := cmp.Diff(was, w.rules()); diff != "" {
		w.Errorf("the rules are not as before (-want +got):\n%s", diff)
	}
}

// leavesTheRules: pods go on to leave from the egress IPs without the DaemonSet.
func (w *daemonSetWorld) leavesTheRules() {
	was := w.rules()
	w.kubectl("delete", "daemonset", "origin-node", "--cascade=foreground")
	w.leave()
	if diff := cmp.Diff(was, w.rules()); diff != "" {
		w.Errorf("the rules are not as before (-want +got):\n%s", diff)
	}
}

// installsThePlugin: with the patch for it, the CNI plugin is where the network plugins are, and in their list.
func (w *daemonSetWorld) installsThePlugin() {
	w.edit("proxyArguments:", "proxyArguments:\n      egress-snat-cni-install: [/opt/cni/bin]")
	w.apply()
	// The runtimes of the test's machines have their lists elsewhere, and the kubelets their folders.
	w.patch("daemonset-cni.yaml", "path: /etc/cni/net.d", "path: /mnt/net.d", "path: /var/lib/kubelet/", "path: /mnt/kubelet/")
	w.rolledOut()
	for _, m := range w.members {
		if out := w.inPod(m, "ls", "-l", "/opt/cni/bin/origin-node-cni"); !strings.HasPrefix(out, "-rwxr-xr-x") {
			w.Errorf("%s: the plugin is %s", m.Name, out)
		}
		w.eventually(func() error { return w.listed(m, true) })
	}
}

// listed returns an error unless the plugin is in the network plugin's list, or is not.
func (w *daemonSetWorld) listed(m *member, want bool) error {
	list := w.inPod(m, "cat", "/etc/cni/net.d/cluster.conflist")
	if strings.Contains(list, "origin-node-cni") != want {
		return fmt.Errorf("%s: the CNI plugin should be in the list: %v; the list is\n%s", m.Name, want, list)
	}
	return nil
}

// cleansUp: nothing of ours, and nothing of kube-proxy's, is left in the kernel.
func (w *daemonSetWorld) cleansUp() {
	w.patch("daemonset-cleanup.yaml")
	w.rolledOut()
	for _, m := range w.members {
		w.must(w.listed(m, false))
	}
	w.kubectl("delete", "-f", w.manifest, "-f", w.file("rbac.yaml"))
	ours := regexp.MustCompile(`(?m)^.*(OPENSHIFT|openshift|KUBE-(SERVICES|SVC|SEP|EXT|NODEPORTS|POSTROUTING)|table \S+ kube-proxy|steer0).*$`)
	for _, m := range w.members {
		for _, command := range [][]string{{"iptables-save"}, {"ip6tables-save"}, {"nft", "list", "ruleset"}, {"ip", "rule"}, {"ip", "link"}} {
			out, err := m.Host.Run(w.Context(), command[0], command[1:]...)
			w.must(err)
			for _, line := range ours.FindAllString(out, -1) {
				w.Errorf("%s: %v still has: %s", m.Name, command, line)
			}
		}
	}
	for _, pod := range w.pods("shop") {
		w.seenAs(pod) // as its node
	}
}

// leave waits until all pods of the Service leave from the egress IPs.
func (w *daemonSetWorld) leave() {
	w.Helper()
	w.eventually(func() error {
		var errs []error
		for _, pod := range w.pods("shop") {
			errs = append(errs, w.left(pod))
		}
		return errors.Join(errs...)
	})
}

// left returns an error unless new flows of a pod leave from the egress IPs.
func (w *daemonSetWorld) left(pod realPod) error {
	for _, to := range w.outside() {
		answer, err := machine.Ask(w.Context(), pod.on.Host, pod.ip, to)
		if err != nil {
			return err
		}
		if want := identity(pod.on.Host, to, w.egressIPs); answer.Seen != want {
			return fmt.Errorf("%s on %s is seen by %s as %v, want %s", pod.name, pod.on.Name, to, answer.Seen, want)
		}
	}
	return nil
}
