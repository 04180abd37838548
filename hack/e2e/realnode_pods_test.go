package e2e

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/hack/machine"
	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/cni"
)

// TestRealNode_PodsAPITellsLabels: pods of a real kubelet that speak at once leave from where they should. The node may not
// read pods: the kubelet tells it their labels. It puts the CNI plugin into the kubelet's list itself.
func TestRealNode_PodsAPITellsLabels(t *testing.T) {
	belongsTo(t, usual)
	before := surroundings(t)
	w := newPodsAPIWorld(t)
	w.claim("shop", w.ips(10)...)
	w.claim("bank")
	var old []realPod
	w.scenario("without the plugin", func() { old = w.leaks() })
	w.scenario("the node installs the plugin", func() { w.installs(old) })
	w.scenario("with the plugin", func() { w.speak(by(t, 50, 50, 200)) })
	for _, m := range w.machines {
		m.Close()
	}
	unchanged(t, before)
}

// newPodsAPIWorld makes a cluster of one node, whose kubelet tells it the labels of pods, and starts them without the plugin.
func newPodsAPIWorld(t *testing.T) *realWorld {
	t.Helper()
	machine.RequireKubelet(t)
	w := &realWorld{world: newIdleWorld(t, settings{nodes: 1, kubelets: true, backend: lab.NFT, nftables: true})}
	w.letKubelets()
	m := w.members[0]
	w.startMachine(m, machine.MakeImage(t), "")
	w.must(os.Symlink(w.machines[0].File("kubelet/pods-api/pods-api.sock"), m.File("pods.sock"))) // of which the path is too long
	m.Configure(w.installing(""))
	w.start()
	w.ready()
	return w
}

// installing has the node put the plugin of a folder, if there is one, into the list that its runtime uses.
func (w *realWorld) installing(from string) string {
	return fmt.Sprintf(`{egress-snat-cni-conf-dir: [%q], egress-snat-cni-install: [%q]}`, filepath.Dir(w.list()), from)
}

// list is the file with the list of plugins that the node's runtime uses.
func (w *realWorld) list() string { return w.machines[0].File("net.d/cluster.conflist") }

// podsAtOnce is how many pods speak at once: fewer than there are addresses, so that a pod that ends does not delay another.
const podsAtOnce = 10

// leaks fails if all first packets of pods that start without the plugin are right: then none of them would prove anything. It
// returns the last pods, which still run.
func (w *realWorld) leaks() (last []realPod) {
	w.Helper()
	for round := range 5 {
		w.remove(last)
		last = w.run(fmt.Sprintf("leaks-%d", round), podsAtOnce, round)
		var wrong []string
		for _, pod := range last {
			flows, _ := w.first(pod, w.own(pod)...)
			wrong = append(wrong, flows...)
		}
		if len(wrong) > 0 {
			w.Logf("%d of %d first flows are wrong", len(wrong), len(last)*len(w.outside()))
			return last
		}
	}
	w.Error("no first packet is wrong without the plugin")
	return last
}

// installs restarts the node so that it puts the plugin into the list, until the runtime uses it. Pods that run since before
// are told.
func (w *realWorld) installs(old []realPod) {
	w.Helper()
	m := w.members[0]
	m.Stop()
	m.Configure(w.installing(filepath.Dir(os.Getenv("OPENSHIFT"))))
	m.AnewReady()
	w.eventually(func() error {
		text, err := os.ReadFile(w.list())
		if err == nil && !strings.Contains(string(text), cni.Plugin) {
			err = fmt.Errorf("%s has no plugin:\n%s", w.list(), text)
		}
		return err
	})
	out, errs, status := m.Openshift("egress", "verify", "--socket="+m.Socket())
	for _, pod := range old {
		if status != 0 || !strings.Contains(out, "the pod "+pod.name+" ") {
			w.Errorf("'egress verify' does not tell of %s; status %d:\n%s%s", pod.name, status, out, errs)
		}
	}
	w.remove(old)
	for try := range 10 { // the runtime may not have read the list yet
		pods := w.run(fmt.Sprintf("first-%d", try), 1, 0)
		known := w.attached()
		w.remove(pods)
		if len(known) > 0 {
			return
		}
	}
	w.Fatal("the runtime does not use the plugin that is in its list")
}

// speak has this many pods speak. Their addresses go from one namespace's pods to the other's.
func (w *realWorld) speak(n int) {
	w.Helper()
	had, inherited := map[netip.Addr]string{}, 0
	for round := range n / podsAtOnce {
		pods := w.run(fmt.Sprintf("speaks-%d", round), podsAtOnce, round)
		want := map[string]bool{}
		for _, pod := range pods {
			w.began(pod, w.own(pod)...)
			namespace, _, _ := strings.Cut(pod.name, "/")
			if last := had[pod.ip]; last != "" && last != namespace {
				inherited++
			}
			had[pod.ip], want[pod.uid] = namespace, true
		}
		w.knows(want)
		w.remove(pods)
	}
	w.knows(map[string]bool{})
	if inherited == 0 {
		w.Error("no address went from one namespace's pod to another's")
	}
	w.Logf("%d pods, %d of them with an address of the other namespace's", n/podsAtOnce*podsAtOnce, inherited)
}

// knows waits until the node knows of these pods by the plugin, and of no others.
func (w *realWorld) knows(want map[string]bool) {
	w.Helper()
	w.eventually(func() error {
		if diff := cmp.Diff(want, w.attached()); diff != "" {
			return fmt.Errorf("attached pods by UID (-want +got):\n%s", diff)
		}
		return nil
	})
}

// run runs new pods, in turn of shop and bank, and returns them when all run.
func (w *realWorld) run(name string, n, first int) (running []realPod) {
	w.Helper()
	for i := range n {
		pod := cluster.NewPod([]string{"shop", "bank"}[(first+i)%2], fmt.Sprintf("%s-%d", name, i), "", web)
		pod.Spec = machine.PodSpec(w.outside())
		pod.Spec.NodeName = w.members[0].Name
		_, err := w.Client().CoreV1().Pods(pod.Namespace).Create(w.Context(), pod, metav1.CreateOptions{})
		w.must(err)
	}
	w.eventually(func() error {
		if running = slices.Concat(w.pods("shop"), w.pods("bank")); len(running) != n {
			return fmt.Errorf("%d pods run, want %d", len(running), n)
		}
		return nil
	})
	return running
}

// remove ends pods, and returns when they are gone.
func (w *realWorld) remove(pods []realPod) {
	w.Helper()
	for _, pod := range pods {
		namespace, name, _ := strings.Cut(pod.name, "/")
		w.must(w.Client().CoreV1().Pods(namespace).Delete(w.Context(), name, metav1.DeleteOptions{}))
	}
	w.eventually(func() error {
		left, err := w.Client().CoreV1().Pods("").List(w.Context(), metav1.ListOptions{})
		if err == nil && len(left.Items) > 0 {
			err = fmt.Errorf("%d pods are left", len(left.Items))
		}
		return err
	})
}

// own are the egress IPs of a pod's namespace.
func (w *realWorld) own(pod realPod) []string {
	if strings.HasPrefix(pod.name, "shop/") {
		return w.ips(10)
	}
	return nil
}

// attached are the UIDs of the pods that the node knows of by the plugin.
func (w *realWorld) attached() map[string]bool {
	w.Helper()
	all, err := attachments.Peek(attachments.Folder(w.members[0].File("cni.sock")))
	w.must(err)
	uids := map[string]bool{}
	for _, a := range all {
		if a.Released.IsZero() {
			uids[a.Pod.UID] = true
		}
	}
	return uids
}
