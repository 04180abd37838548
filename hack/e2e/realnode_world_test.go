package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/hack/machine"
	"github.com/openshift/origin-node/pkg/egress/cni"
)

// realWorld is a cluster of nodes with kubelets and container runtimes, whose pods start when the CNI plugin lets them.
// External IPs are of the nodes' own network.
type realWorld struct {
	*world
	// machines are the kubelets and runtimes, in the order of the members.
	machines []*machine.Machine
	// images are archives of images besides that of the pods.
	images []string
	// runtime is that of the machines, Debian's if zero. cni is the version of CNI; 1.0.0 if empty.
	runtime machine.Runtime
	cni     string
}

// These are the first and the last of the host numbers of pods on a node: so few that an address is soon another pod's.
const firstPodNumber, lastPodNumber = 100, 111

// newRealWorld makes one of two nodes, or of more if the settings say so.
func newRealWorld(t *testing.T, s settings) *realWorld {
	t.Helper()
	machine.RequireKubelet(t)
	var runtime machine.Runtime
	if s.runtime != "" {
		runtime = machine.RequireRuntime(t, s.runtime)
	}
	s.nodes, s.onLAN, s.kubelets = max(s.nodes, 2), true, true
	s.arguments += `egress-snat-watch-pods: ["true"]`
	w := &realWorld{world: newIdleWorld(t, s), runtime: runtime, cni: s.cni}
	w.must(w.Apply(t.Context(), "../../images/node/rbac-cni.yaml"))
	w.letKubelets()
	w.start()
	image := machine.MakeImage(t)
	for _, m := range w.members {
		further := withPlugin(m)
		if s.cni != "" {
			further = strings.Replace(further, "}", `, "unanswered": "refuse"}`, 1) // of which STATUS tells
		}
		w.startMachine(m, image, further)
	}
	w.ready()
	return w
}

// startMachine starts a node's kubelet and container runtime, whose list has further plugins behind the network plugin.
func (w *realWorld) startMachine(m *member, image, further string) {
	w.Helper()
	kubeconfig := m.File("kubelet.kubeconfig")
	w.must(w.WriteKubeconfig(w.Context(), kubeconfig, cluster.Kubeconfig{User: "system:node:" + m.Name, Groups: []string{kubelets}}))
	w.machines = append(w.machines, machine.Kubelet{
		Name: m.Name, Host: m.Host, Program: filepath.Join(cluster.RequireBinaries(w.T), "kubelet"), Kubeconfig: kubeconfig, Image: image,
		Images:  w.images,
		Runtime: w.runtime,
		Network: conflist(w.cni, m, "/mnt/ipam", firstPodNumber, lastPodNumber, further),
		Plugins: []string{w.recorded(m)},
	}.Start(w.T))
}

// recorded returns our plugin in a script that notes first what a runtime calls; see called.
func (w *realWorld) recorded(m *member) string {
	w.Helper()
	script := filepath.Join(m.File("plugin"), cni.Plugin)
	w.must(os.Mkdir(filepath.Dir(script), 0o755))
	w.must(os.WriteFile(script, fmt.Appendf(nil, "#!/bin/sh\necho \"$CNI_COMMAND\" >>%q\nexec %q\n", m.File("calls"),
		filepath.Join(filepath.Dir(os.Getenv("OPENSHIFT")), cni.Plugin)), 0o755))
	return script
}

// called is how often a node's runtime has called our plugin with each command.
func (w *realWorld) called(m *member) map[string]int {
	w.Helper()
	calls, err := os.ReadFile(m.File("calls"))
	w.must(err)
	commands := map[string]int{}
	for _, command := range strings.Fields(string(calls)) {
		commands[command]++
	}
	return commands
}

// kubelets is the group of kubelets.
const kubelets = "system:nodes"

// letKubelets gives kubelets their rights. That no node changes another's objects is the business of an authorizer which this
// API server does not have.
func (w *realWorld) letKubelets() {
	w.Helper()
	_, err := w.Client().RbacV1().ClusterRoleBindings().Create(w.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "kubelets"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: kubelets}},
	}, metav1.CreateOptions{})
	w.must(err)
}

// ready waits until pods can be scheduled to each node.
func (w *realWorld) ready() {
	w.Helper()
	for _, m := range w.members {
		w.reportsReady(m, v1.ConditionTrue, "kubelet is posting ready status")
	}
}

// reportsReady waits until the kubelet has set its Node's condition Ready to a status, with a text in its message, and the taints are those
// of this status: they follow the condition.
func (w *realWorld) reportsReady(m *member, status v1.ConditionStatus, text string) {
	w.Helper()
	w.eventually(func() error {
		node, err := w.Client().CoreV1().Nodes().Get(w.Context(), m.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == v1.NodeReady && condition.Status == status && strings.Contains(condition.Message, text) &&
				(status == v1.ConditionTrue) == (len(node.Spec.Taints) == 0) {
				return nil
			}
		}
		return fmt.Errorf("%s is not Ready=%s with %q; it has the taints %v, and its conditions are %v", m.Name, status, text, node.Spec.Taints, node.Status.Conditions)
	})
}

// claim makes a namespace with a Service web that has these external IPs.
func (w *realWorld) claim(namespace string, externalIPs ...string) {
	w.Helper()
	w.namespace(namespace)
	_, err := w.CreateService(w.Context(), cluster.NewService(namespace, "web", web, externalIPs, tcp80))
	w.must(err)
}

// deploy makes a Deployment web for the Service, with the same number of pods on each node. They speak to the outside as soon as
// they can.
func (w *realWorld) deploy(namespace string, replicas int32) {
	w.Helper()
	d := cluster.NewDeployment(namespace, "web", replicas, web)
	d.Spec.Template.Spec = machine.PodSpec(w.outside())
	d.Spec.Template.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: v1.LabelHostname, WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: web},
		MatchLabelKeys: []string{"pod-template-hash"}, NodeTaintsPolicy: ptr.To(v1.NodeInclusionPolicyHonor),
	}}
	_, err := w.Client().AppsV1().Deployments(namespace).Create(w.Context(), d, metav1.CreateOptions{})
	w.must(err)
}

// realPod is a pod that runs.
type realPod struct {
	name string
	uid  string
	on   *member
	ip   netip.Addr // the first one
}

// pods are those of a Deployment web that run and are to go on.
func (w *realWorld) pods(namespace string) []realPod {
	w.Helper()
	found, err := w.running(w.Context(), namespace)
	w.must(err)
	return found
}

// running is pods for any goroutine.
func (w *realWorld) running(ctx context.Context, namespace string) (found []realPod, err error) {
	list, err := w.Client().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: labels.SelectorFromSet(web).String()})
	if err != nil {
		return nil, err
	}
	for _, pod := range list.Items {
		if pod.DeletionTimestamp != nil || pod.Status.Phase != v1.PodRunning {
			continue
		}
		for _, m := range w.members {
			if m.Name == pod.Spec.NodeName {
				found = append(found, realPod{namespace + "/" + pod.Name, string(pod.UID), m, netip.MustParseAddr(pod.Status.PodIP)})
			}
		}
	}
	return found, nil
}

// rollsOut waits until the Deployments web of these namespaces are rolled out.
func (w *realWorld) rollsOut(namespaces ...string) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), soon)
	defer cancel()
	var errs []error
	for _, namespace := range namespaces {
		errs = append(errs, w.RolledOut(ctx, namespace, "web"))
	}
	w.must(errors.Join(errs...))
}

// began fails unless the first flows that a pod began, right after its start, were seen as these addresses, or as its node in
// a family that has none of them. It returns how long the slowest took.
func (w *realWorld) began(pod realPod, as ...string) (slowest time.Duration) {
	w.Helper()
	wrong, slowest := w.first(pod, as...)
	for _, flow := range wrong {
		w.Error(flow)
	}
	return slowest
}

// first returns which of a pod's first flows were seen otherwise than began says.
func (w *realWorld) first(pod realPod, as ...string) (wrong []string, slowest time.Duration) {
	w.Helper()
	answers, err := machine.First(w.Context(), pod.on.Host, pod.ip)
	w.must(err)
	if len(answers) != len(w.outside()) {
		w.Fatalf("%s tells of %d first flows, want %d", pod.name, len(answers), len(w.outside()))
	}
	for i, to := range w.outside() {
		if want := identity(pod.on.Host, to, as); answers[i].Seen != want {
			wrong = append(wrong, fmt.Sprintf("the first flow of %s on %s to %s was seen as %v, want %s", pod.name, pod.on.Name, to, answers[i].Seen, want))
		}
		slowest = max(slowest, answers[i].After)
	}
	return wrong, slowest
}

// seenAs fails unless a new flow of a pod to each address outside is seen as began says.
func (w *realWorld) seenAs(pod realPod, as ...string) {
	w.Helper()
	for _, to := range w.outside() {
		answer, err := machine.Ask(w.Context(), pod.on.Host, pod.ip, to)
		w.must(err)
		if want := identity(pod.on.Host, to, as); answer.Seen != want {
			w.Errorf("%s on %s is seen by %s as %v, want %s", pod.name, pod.on.Name, to, answer.Seen, want)
		}
	}
}

// surroundings are what a kubelet or a container runtime could change on this machine: sysctls, mounts, cgroups and folders.
func surroundings(t *testing.T) []string {
	t.Helper()
	lines := sysctls(t)
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for mount := range strings.Lines(string(mounts)) {
		if !strings.Contains(mount, " /run/netns") { // which labs come and go in
			lines = append(lines, mount)
		}
	}
	for _, pattern := range []string{"/sys/fs/cgroup/*", "/sys/fs/cgroup/*/*", "/run/container*", "/run/crio*", "/run/systemd/*", "/opt/*", "/var/lib/*", "/var/log/*"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, slices.DeleteFunc(found, ofAnotherTest)...)
	}
	return lines
}

// ofAnotherTest says whether a cgroup is of a test that runs in another process, beside this one.
func ofAnotherTest(cgroup string) bool {
	var pid int
	if _, err := fmt.Sscanf(filepath.Base(cgroup), "origin-node-lab-%d-", &pid); err != nil || pid == os.Getpid() {
		return false
	}
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return err == nil
}

// sysctls are those that a kubelet sets for the whole machine.
func sysctls(t *testing.T) (lines []string) {
	t.Helper()
	for _, sysctl := range []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"} {
		value, err := os.ReadFile(filepath.Join("/proc/sys", sysctl))
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, sysctl+" = "+string(value))
	}
	return lines
}

// unchanged fails the test unless surroundings returns what it did.
func unchanged(t *testing.T, before []string) {
	t.Helper()
	if diff := cmp.Diff(before, surroundings(t)); diff != "" {
		t.Errorf("the machine is not as before (-want +got):\n%s", diff)
	}
}
