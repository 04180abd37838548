package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/origin-node/hack/cluster"
	process "github.com/openshift/origin-node/hack/node"
)

// TestKubeconfig_BadOneIsExplainedInTheLog: nodes are restarted with kubeconfigs that do not work.
// Each goes on with the rules that it has, is not ready, and says what is wrong and where; with a
// good kubeconfig it catches up.
func TestKubeconfig_BadOneIsExplainedInTheLog(t *testing.T) {
	belongsTo(t, usual)
	badly := []struct {
		name       string
		kubeconfig func(w *world, m *member) cluster.Kubeconfig
		says       []string // in one line
		lacks      string   // the kind of object that it waits for; none if it gets none at all
	}{
		{"another cluster's CA", func(_ *world, m *member) cluster.Kubeconfig {
			k := rightful(m)
			k.ForeignCA = true
			return k
		}, []string{"certificate signed by unknown authority", "the certificate authority in FILE did not sign the certificate of the API server at SERVER"}, ""},
		{"a token that has ended", func(*world, *member) cluster.Kubeconfig {
			return cluster.Kubeconfig{ServiceAccount: "expired", Lifetime: -time.Hour}
		}, []string{"Unauthorized", "SERVER does not accept the token, which expired at 20", "in FILE"}, ""},
		{"a certificate that has ended", func(_ *world, m *member) cluster.Kubeconfig {
			k := rightful(m)
			k.Lifetime = -time.Hour
			return k
		}, []string{"Unauthorized", `SERVER does not accept the client certificate of "USER", which expired at 20`, "in FILE"}, ""},
		{"no rights", func(_ *world, m *member) cluster.Kubeconfig {
			return cluster.Kubeconfig{User: rightful(m).User}
		}, []string{`User "USER" cannot list resource "nodes"`, "bind the ClusterRole of images/node/rbac.yaml"}, ""},
		{"no right to EndpointSlices", withoutRight("endpointslices"), []string{`User "USER" cannot list resource "endpointslices"`}, "EndpointSlices, EndpointSlices for other proxies, EndpointSlices of headless Services"},
		{"no right to Services", withoutRight("services"), []string{`User "USER" cannot list resource "services"`}, "Services, headless Services, objects of MetalLB"}, // which belong to Services
	}
	w := newWatchedWorld(t, settings{nodes: 1 + len(badly)})
	var managers []*process.Manager
	for i, bad := range badly {
		m := w.members[1+i]
		k := bad.kubeconfig(w.world, m)
		k.Server = m.link.URL()
		m.Printed.Reset()
		w.must(w.WriteKubeconfig(t.Context(), m.File("node.kubeconfig"), k))
		m.Ends(75)
		managers = append(managers, m.Manage())
		m.Anew()
	}
	w.publish()
	w.published(w.members[0])
	for i, bad := range badly {
		m := w.members[1+i]
		replace := strings.NewReplacer("FILE", m.File("node.kubeconfig"), "SERVER", m.link.URL(), "USER", rightful(m).User)
		line := m.saysInOneLine(w.world, replace, bad.says...)
		t.Logf("%s: %s", bad.name, line)
		if bad.lacks != "" {
			m.Says("waitingFor=\"" + bad.lacks + "\"")
			w.eventually(func() error { return managers[i].Told("egress SNAT waiting for " + bad.lacks) })
		} else {
			w.eventually(func() error { return managers[i].Told("STATUS=Waiting for the API server: ") })
			// kube-proxy's own word: it is good where there is one at all and no write is due.
			if err := w.healthy(m); err == nil {
				t.Errorf("%s: its /healthz is good", bad.name)
			}
		}
		if managers[i].Told("READY=1") == nil || strings.Contains(m.Printed.String(), inPlace) {
			t.Errorf("%s: it says that it is ready", bad.name)
		}
		objects, err := w.objects()
		w.must(err)
		if m.CheckPlan(objects, families...) == nil {
			t.Errorf("%s: it knows of a change all the same", bad.name)
		}
	}
	w.round(w.residents, w.blog)
	for _, m := range w.members[1:] {
		w.must(w.NodeKubeconfig(t.Context(), m.File("node.kubeconfig"), m.Name, m.link.URL()))
		m.Ends(75)
		m.AnewReady()
	}
	w.published()
	for i, m := range w.members[1:] {
		w.eventually(func() error { return errors.Join(w.healthy(m), managers[i].Told("READY=1")) })
	}
	w.calm("six nodes with six bad kubeconfigs")
}

// TestNode_WaitsForItsNodeObject: with the rights that we ship the log says what is missing,
// and nothing of rights.
func TestNode_WaitsForItsNodeObject(t *testing.T) {
	belongsTo(t, usual)
	w := newIdleWorld(t, settings{nodes: 1})
	m := w.members[0]
	w.must(w.Client().CoreV1().Nodes().Delete(t.Context(), m.Name, metav1.DeleteOptions{}))
	began := time.Now()
	m.Start()
	line := m.saysInOneLine(w, strings.NewReplacer(), "Waiting for the Node object of this node", fmt.Sprintf("nodes %q not found", m.Name))
	time.Sleep(time.Until(began.Add(10 * time.Second))) // the fault is its length; kube-proxy waits for half a minute
	if log := m.Printed.String(); strings.Contains(log, inPlace) {
		t.Error("it says that it is ready")
	}
	_, err := w.CreateNode(t.Context(), m.Name, m.Host.V4, m.Host.V6)
	w.must(err)
	created := time.Now()
	m.Ready()
	if strings.Contains(strings.ToLower(m.Printed.String()), "forbidden") {
		t.Error("the log speaks of something forbidden")
	}
	t.Logf("it is ready %s after there was a Node; until then: %s", since(created), line)
}

// TestRights_TakenAwayWhileRunning: while nodes run, their rights are taken away, and a token
// ends. A running watch goes on. A node that has to begin one anew logs why it may not,
// and keeps the rules that it has.
func TestRights_TakenAwayWhileRunning(t *testing.T) {
	belongsTo(t, usual)
	w := newWatchedWorld(t, settings{})
	watching, forbidden, expired := w.members[0], w.members[1], w.members[2]
	const lifetime = 10 * time.Second
	w.must(w.WriteKubeconfig(t.Context(), expired.File("node.kubeconfig"), cluster.Kubeconfig{Server: expired.link.URL(), ServiceAccount: "short", Lifetime: lifetime}))
	expired.Ends(75)
	expired.AnewReady()

	bindings := w.Client().RbacV1().ClusterRoleBindings()
	binding, err := bindings.Get(t.Context(), cluster.NodeGroup, metav1.GetOptions{})
	w.must(err)
	w.must(bindings.Delete(t.Context(), cluster.NodeGroup, metav1.DeleteOptions{}))
	// The API server accepts a token for up to ten seconds after its end, for it remembers that it was good.
	holder := w.as(expired.File("node.kubeconfig"))
	w.eventually(func() error {
		_, err := holder.client.CoreV1().Services("").List(t.Context(), metav1.ListOptions{})
		if apierrors.IsUnauthorized(err) {
			return nil
		}
		return errors.Join(errors.New("the API server still accepts the token"), err)
	})
	forbidden.link.Reset()
	expired.link.Reset()
	for m, says := range map[*member][]string{
		forbidden: {`User "USER" cannot watch resource "nodes"`, "bind the ClusterRole of images/node/rbac.yaml"},
		expired:   {"Unauthorized", "SERVER does not accept the token, which expired at 20", "in FILE"},
	} {
		replace := strings.NewReplacer("FILE", m.File("node.kubeconfig"), "SERVER", m.link.URL(), "USER", rightful(m).User)
		t.Logf("%s: %s", m.Name, m.saysInOneLine(w.world, replace, says...))
	}
	w.publish()
	w.published(watching)
	w.round(w.residents, w.blog)

	binding.ObjectMeta = metav1.ObjectMeta{Name: binding.Name}
	_, err = bindings.Create(t.Context(), binding, metav1.CreateOptions{})
	w.must(err)
	back := time.Now()
	w.must(w.NodeKubeconfig(t.Context(), expired.File("node.kubeconfig"), expired.Name, expired.link.URL()))
	expired.Ends(75)
	expired.AnewReady()
	w.published()
	w.calm(fmt.Sprintf("rights taken away, a token ended; all nodes up to date %s after both were mended", since(back)))
}

// rightful is the kubeconfig that a node has as a rule.
func rightful(m *member) cluster.Kubeconfig {
	return cluster.Kubeconfig{User: "system:origin-node:" + m.Name, Groups: []string{cluster.NodeGroup}}
}

// withoutRight returns the kubeconfig of a node that has the rights of others but for a resource.
func withoutRight(resource string) func(w *world, m *member) cluster.Kubeconfig {
	return func(w *world, m *member) cluster.Kubeconfig {
		user := rightful(m).User
		w.grantAllBut(user, func(r right) bool { return r.resource == resource })
		return cluster.Kubeconfig{User: user}
	}
}

// saysInOneLine waits until the log has a line with all of these texts, and returns it.
func (m *member) saysInOneLine(w *world, replace *strings.Replacer, texts ...string) (line string) {
	w.Helper()
	w.eventually(func() error {
		scanner := bufio.NewScanner(strings.NewReader(m.Printed.String()))
		for scanner.Scan() {
			line = strings.ReplaceAll(scanner.Text(), `\"`, `"`)
			if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, replace.Replace(text)) }) {
				return nil
			}
		}
		return errors.Join(scanner.Err(), fmt.Errorf("the log of %s has no line with %q", m.Name, texts))
	})
	return line
}

// healthy returns an error unless the node's /healthz is good.
func (w *world) healthy(m *member) error {
	got, err := w.get(m.Host, netip.MustParseAddrPort("127.0.0.1:10256"), "/healthz")
	if err == nil && got.status != http.StatusOK {
		err = fmt.Errorf("%s: /healthz says %d: %s", m.Name, got.status, got.body)
	}
	return err
}
