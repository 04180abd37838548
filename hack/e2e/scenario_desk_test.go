package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/pkg/egress/portblocks"
)

// deskWorld is a cluster with a pool, and somebody who has kubectl, the plugin and a kubeconfig, and no node.
type deskWorld struct {
	*poolWorld
	kubectl string
	// path is the folder with the plugin.
	path string
}

// TestDesk_SaysWhatTheNodesSay: 'kubectl egress' finds the plugin, and says of the whole cluster what the nodes say of their own
// pods and addresses, without a node; to a user of few rights it says what these leave out. On a node, top and collect tell of
// it.
func TestDesk_SaysWhatTheNodesSay(t *testing.T) {
	w := &deskWorld{poolWorld: newPoolWorld(t, 3), kubectl: filepath.Join(cluster.RequireBinaries(t), "kubectl"), path: t.TempDir()}
	w.must(os.Symlink(os.Getenv("OPENSHIFT"), filepath.Join(w.path, "kubectl-egress")))
	viewer := filepath.Join(w.path, "viewer.kubeconfig")
	w.must(w.Apply(w.Context(), "../../images/node/rbac-viewer.yaml"))
	w.must(w.WriteKubeconfig(w.Context(), viewer, cluster.Kubeconfig{User: "desk", Groups: []string{"origin-node-viewers"}}))
	w.scenario("list is what all nodes list of their pods", func() { w.listsAsNodes(viewer) })
	w.scenario("addresses and pool are what the holders have", func() { w.knowsHolders(viewer) })
	w.scenario("a watch tells of a change", func() { w.watches(viewer) })
	w.scenario("who has a port is what a Lease tells", func() { w.knowsWho(viewer) })
	w.scenario("a user of one namespace is told what is left out", w.leavesOut)
	w.scenario("top counts flows, and collect writes them down", w.collects)
}

// egress runs 'kubectl egress' at the desk.
func (w *deskWorld) egress(kubeconfig string, args ...string) (stdout, stderr string, status int) {
	w.Helper()
	cmd := w.command(w.Context(), kubeconfig, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); cmd.ProcessState == nil {
		w.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func (w *deskWorld) command(ctx context.Context, kubeconfig string, args ...string) *exec.Cmd {
	cmd := w.Control().Command(ctx, w.kubectl, append([]string{"egress", "--kubeconfig=" + kubeconfig}, args...)...)
	for i, variable := range cmd.Env {
		if path, ok := strings.CutPrefix(variable, "PATH="); ok {
			cmd.Env[i] = "PATH=" + w.path + ":" + path
		}
	}
	cmd.Env = append(cmd.Env, "HOME="+w.path)
	return cmd
}

// rows returns those of a JSON document of list, by pod, without what only nodes know.
func (w *deskWorld) rows(document string) map[string]any {
	w.Helper()
	var list struct{ Bindings []map[string]any }
	w.must(json.Unmarshal([]byte(document), &list))
	rows := map[string]any{}
	for _, row := range list.Bindings {
		delete(row, "here")
		delete(row, "since")
		rows[fmt.Sprint(row["podIP"])] = row
	}
	return rows
}

func (w *deskWorld) listsAsNodes(viewer string) {
	w.eventually(func() error {
		want := map[string]any{}
		for _, m := range w.members {
			out, errs, status := m.Openshift("egress", "list", "--all", "--socket="+m.Socket(), "-o", "json")
			if status != 0 {
				return fmt.Errorf("%s: status %d: %s", m.Name, status, errs)
			}
			for pod, row := range w.rows(out) {
				if row.(map[string]any)["node"] == m.Name {
					want[pod] = row
				}
			}
		}
		out, errs, status := w.egress(viewer, "list", "-A", "-o", "json")
		if status != 0 || errs != "" {
			return fmt.Errorf("the desk: status %d: %s", status, errs)
		}
		if diff := cmp.Diff(want, w.rows(out)); diff != "" || len(want) != len(w.members)*len(w.families) {
			return fmt.Errorf("the desk lists otherwise than %d rows of the nodes (-nodes +desk):\n%s", len(want), diff)
		}
		return nil
	})
	out, _, _ := w.egress(viewer, "list", "-n", "shop", "-o", "wide")
	w.Logf("\n%s", out)
}

func (w *deskWorld) knowsHolders(viewer string) {
	for _, ip := range w.egressIPs {
		holder := w.holderOf(ip, nil)
		w.eventually(func() error {
			epochs, err := w.leased(holder)
			if err != nil {
				return err
			}
			out, errs, status := w.egress(viewer, "addresses")
			want := []string{ip, "shop", holder.Name, fmt.Sprint(epochs[ip]), fmt.Sprint(len(w.members))}
			for line := range strings.Lines(out) {
				if slices.Equal(strings.Fields(line), want) {
					return nil
				}
			}
			return fmt.Errorf("status %d: addresses has no line %v: %s\n%s", status, want, errs, out)
		})
		out, errs, status := w.egress(viewer, "pool", "-o", "json")
		var pool struct {
			Members []struct {
				Name, State string
				Held        []string
			}
			Unheld []any
		}
		w.must(json.Unmarshal([]byte(out), &pool))
		i := slices.IndexFunc(pool.Members, func(m struct {
			Name, State string
			Held        []string
		}) bool {
			return m.Name == holder.Name
		})
		if status != 0 || len(pool.Members) != len(w.members) || len(pool.Unheld) != 0 || i < 0 || pool.Members[i].State != "live" || !slices.Contains(pool.Members[i].Held, ip) {
			w.Errorf("status %d: pool does not say that %s is on %s, which is live: %s\n%s", status, ip, holder.Name, errs, out)
		}
	}
	out, _, _ := w.egress(viewer, "pool")
	w.Logf("\n%s", out)
}

// printed is what a process has printed so far.
type printed struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (p *printed) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buf.Write(text)
}

func (p *printed) has(texts ...string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for line := range strings.Lines(p.buf.String()) {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			return nil
		}
	}
	return fmt.Errorf("no line has all of %v:\n%s", texts, &p.buf)
}

func (w *deskWorld) watches(viewer string) {
	ctx, cancel := context.WithCancel(w.Context())
	defer cancel()
	watch, out := w.command(ctx, viewer, "list", "-w", "-A"), &printed{}
	watch.Stdout, watch.Stderr = out, out
	w.must(watch.Start())
	defer func() {
		cancel()
		_ = watch.Wait() // it was killed
	}()
	pod := w.pods[0].V4.String()
	w.eventually(func() error { return out.has("ADDED", pod) })
	w.must(w.DeletePod(w.Context(), "shop", "web-1"))
	w.eventually(func() error { return out.has("DELETED", pod) })
}

// knowsWho has a Lease that tells which ports a pod has, as nodes with port blocks write it.
func (w *deskWorld) knowsWho(viewer string) {
	ip := w.egressIPs[0]
	asked := func(port string) string {
		return net.JoinHostPort(ip, port)
	}
	text := fmt.Sprintf(`[{"pod": {"namespace": "shop", "name": "web-9", "uid": "uid-9", "ip": %q}, "service": "shop/web", "egressIP": %q, "ports": {"first": 32256, "last": 32767}, "since": "2026-11-27T08:00:00Z"}]`, w.pods[1].V4, ip)
	seconds := int32(3600)
	_, err := w.Client().CoordinationV1().Leases("origin-node").Create(w.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "node-9", Annotations: map[string]string{portblocks.AssignedAnnotation: text}},
		Spec:       coordinationv1.LeaseSpec{LeaseDurationSeconds: &seconds, RenewTime: &metav1.MicroTime{Time: time.Now()}},
	}, metav1.CreateOptions{})
	w.must(err)
	out, errs, status := w.egress(viewer, "who", asked("32300"))
	for _, want := range []string{"shop/web-9\n", "uid-9\n", "node-9\n", "32256-32767\n", "2026-11-27T08:00:00.000Z\n"} {
		if status != 0 || errs != "" || !strings.Contains(out, want) {
			w.Errorf("status %d, want %q: %s\n%s", status, want, errs, out)
		}
	}
	out, errs, status = w.egress(viewer, "who", asked("2000"))
	if status != 1 || out != "" || !strings.Contains(errs, "nobody has "+asked("2000")+" now, according to the Leases of ") {
		w.Errorf("nobody: status %d: %s\n%s", status, errs, out)
	}
}

// leavesOut has a user who may list Services and EndpointSlices of shop, and nothing else.
func (w *deskWorld) leavesOut() {
	const user = "tenant"
	_, err := w.Client().RbacV1().Roles("shop").Create(w.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"list"}},
		{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"list"}},
	}}, metav1.CreateOptions{})
	w.must(err)
	_, err = w.Client().RbacV1().RoleBindings("shop").Create(w.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	w.must(err)
	kubeconfig := filepath.Join(w.path, "tenant.kubeconfig")
	w.must(w.WriteKubeconfig(w.Context(), kubeconfig, cluster.Kubeconfig{User: user}))
	out, errs, status := w.egress(kubeconfig, "list", "-n", "default")
	if status != 1 || out != "" || !strings.Contains(errs, "may list Services and EndpointSlices neither in all namespaces nor in") {
		w.Errorf("of another namespace: status %d, prints %q, %q", status, out, errs)
	}
	w.eventually(func() error { // the API server's authorizer learns of the role like everybody
		out, errs, status = w.egress(kubeconfig, "list", "-n", "shop")
		if status != 1 || out != "" || !strings.Contains(errs, "these may not be read. Give a node's configuration with --config=FILE") {
			return fmt.Errorf("without a configuration: status %d, prints %q, %q", status, out, errs)
		}
		return nil
	})
	out, errs, status = w.egress(kubeconfig, "list", "-n", "shop", "--config="+w.members[0].Config())
	if lines := strings.Count(out, "shop/web   node-"); status != 2 || lines != (len(w.members)-1)*len(w.families) || strings.Count(errs, "left out: ") != 5 {
		w.Errorf("status %d: shows %d rows, and that 5 things are left out:\n%s%s", status, lines, out, errs)
	}
	for _, resource := range []string{"services in all namespaces, but in shop", "endpointslices.discovery.k8s.io in all namespaces, but in shop", "nodes", "servicecidrs.networking.k8s.io", "leases.coordination.k8s.io in the namespace origin-node"} {
		if !strings.Contains(errs, "left out: no right to list "+resource+": ") {
			w.Errorf("does not say that %s are left out:\n%s", resource, errs)
		}
	}
}

// collects looks at the holder of the first egress IP while pods ask.
func (w *deskWorld) collects() {
	holder := w.holderOf(w.egressIPs[0], nil)
	for _, to := range w.everywhere() {
		w.seen("tcp", w.pods[1], to, identity(w.pods[1], to, w.egressIPs))
	}
	out, errs, status := holder.Openshift("egress", "top", "-b", "-n", "1", "--socket="+holder.Socket())
	if status != 0 || !strings.Contains(out, w.egressIPs[0]) || strings.Contains(out, " 0 flows") {
		w.Errorf("top: status %d, want flows of %s: %s\n%s", status, w.egressIPs[0], errs, out)
	}
	out, errs, status = holder.Openshift("egress", "collect", "--config="+holder.Config(), "--directory="+w.path)
	if status != 0 {
		w.Fatalf("collect: status %d: %s", status, errs)
	}
	w.Logf("collect leaves out:\n%s", errs)
	archive := strings.TrimSpace(out)
	content, err := exec.CommandContext(w.Context(), "tar", "--extract", "--to-stdout", "--gzip", "--file="+archive).Output()
	w.must(err)
	for _, want := range []string{`"network.openshift.io/egress-addresses": "{`, "-j OPENSHIFT-EGRESS-SNAT", "table ip openshift-egress-steering", "dev steer0", "egress_snat_tracked_flows", "nf_conntrack_max"} {
		if !strings.Contains(string(content), want) {
			w.Errorf("the archive lacks %q", want)
		}
	}
	kubeconfig, err := os.ReadFile(holder.File("node.kubeconfig"))
	w.must(err)
	for line := range strings.Lines(string(kubeconfig)) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), ": "); key == "client-key-data" && (value == "" || strings.Contains(string(content), value)) {
			w.Errorf("the archive has the node's %s", key)
		}
	}
}
