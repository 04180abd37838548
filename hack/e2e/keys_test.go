package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/hack/lab"
)

// keysSecret is where nodes share the keys by which they know each other.
const keysSecret = "origin-node-keys"

// secrets are those in the namespace of the Leases.
func (w *world) secrets() ([]v1.Secret, error) {
	list, err := w.Client().CoreV1().Secrets(leaseNamespace).List(w.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// keys are those in the Secret, as text.
func (w *world) keys() string {
	w.Helper()
	secret, err := w.Client().CoreV1().Secrets(leaseNamespace).Get(w.Context(), keysSecret, metav1.GetOptions{})
	w.must(err)
	return string(secret.Data["keys"])
}

// keptKeys is the file in which a node keeps keys.
func keptKeys(m *member) string { return m.Socket() + ".keys" }

// kept waits until all nodes keep the keys in the Secret, of which there is one, and returns it.
func (w *world) kept() (key string) {
	w.Helper()
	w.eventually(func() error {
		if key = w.keys(); len(key) != 65 {
			return fmt.Errorf("the Secret has %d bytes of keys, want a line of 64 characters", len(key))
		}
		for _, m := range w.members {
			info, err := os.Stat(keptKeys(m))
			if err != nil {
				return err
			}
			text, err := os.ReadFile(keptKeys(m))
			if err != nil || !bytes.HasPrefix(text, []byte(key)) || info.Mode() != 0o600 {
				return errors.Join(fmt.Errorf("%s keeps other keys, in a file of the mode %v", m.Name, info.Mode()), err)
			}
		}
		return nil
	})
	return key
}

// faulty returns an error unless a node's metric of faults has this value for a reason.
func (w *world) faulty(m *member, reason string, value float64) error {
	w.Helper()
	got, err := w.get(m.Host, metricsAt, "/metrics")
	if err != nil {
		return err
	}
	if line := fmt.Sprintf("egress_snat_steering_fault{reason=%q} %v\n", reason, value); !strings.Contains(got.body, line) {
		return fmt.Errorf("%s has not %s", m.Name, line)
	}
	return nil
}

// verifies returns an error unless 'openshift egress verify' on a node warns of what is between nodes, with a text; of nothing if it is
// empty.
func (w *world) verifies(m *member, text string) error {
	out, errs, _ := m.Openshift("egress", "verify", "--socket="+m.Socket())
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "between nodes: ") && text == "" || strings.HasPrefix(line, "between nodes: warning: ") && strings.Contains(line, text) {
			if text == "" {
				return fmt.Errorf("%s warns: %s", m.Name, line)
			}
			return nil
		}
	}
	if text == "" {
		return nil
	}
	return fmt.Errorf("%s does not warn of %q: %s%s", m.Name, text, out, errs)
}

// TestKeys_ByDefault: nodes share a key that nobody has given them. It is kept when rbac.yaml is applied again, is another one when
// somebody empties the Secret, and stays when somebody deletes that, which all nodes say.
func TestKeys_ByDefault(t *testing.T) {
	w := newSteeredWorld(t, settings{families: families[:1]}, nil)
	moves := func(to *member) {
		w.Helper()
		w.movesWithin(to, atLast)
		w.knownBy("both")
	}
	var first string
	w.scenario("one that nobody has given them", func() {
		first = w.kept()
		moves(w.members[1])
		for _, m := range w.members {
			w.eventually(func() error { return w.verifies(m, "") })
			if strings.Contains(m.Printed.String(), strings.TrimSpace(first)) {
				w.Errorf("the log of %s has the key", m.Name)
			}
		}
	})
	w.scenario("rbac.yaml is applied again", func() {
		w.must(w.Apply(t.Context(), rbacFile))
		if w.keys() != first {
			w.Error("there are other keys")
		}
	})
	w.scenario("somebody empties the Secret", func() {
		_, err := w.Client().CoreV1().Secrets(leaseNamespace).Patch(t.Context(), keysSecret, types.JSONPatchType, []byte(`[{"op": "remove", "path": "/data"}]`), metav1.PatchOptions{})
		w.must(err)
		w.eventually(func() error { return differ(first, w.keys()) })
		if w.kept() == first {
			w.Error("the key is as it was")
		}
		moves(w.members[2])
	})
	w.scenario("somebody deletes it", func() {
		w.must(w.Client().CoreV1().Secrets(leaseNamespace).Delete(t.Context(), keysSecret, metav1.DeleteOptions{}))
		const says = "it does not exist: apply images/node/rbac.yaml"
		for _, m := range w.members {
			w.eventually(func() error { return w.faulty(m, "keys", 1) })
			w.eventually(func() error { return w.verifies(m, says) })
			w.eventually(func() error { return w.hasEvent("EgressKeysFailing", "Node/"+m.Name, says) })
		}
		moves(w.members[0])
		w.must(w.Apply(t.Context(), rbacFile))
		w.kept()
		for _, m := range w.members {
			w.eventually(func() error { return w.faulty(m, "keys", 0) })
		}
		moves(w.members[1])
	})
	w.clean(1)
}

// grantInNamespace gives a user a right in the namespace of the Leases, by a Role of the user's name and what it is for.
func (w *world) grantInNamespace(user, what string, rule rbacv1.PolicyRule) {
	w.Helper()
	meta := metav1.ObjectMeta{Namespace: leaseNamespace, Name: user + "-" + what}
	_, err := w.Client().RbacV1().Roles(leaseNamespace).Create(w.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}}, metav1.CreateOptions{})
	w.must(err)
	_, err = w.Client().RbacV1().RoleBindings(leaseNamespace).Create(w.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	w.must(err)
}

// TestKeys_MissingRight: a node that may not read the Secret has no key, announces nothing and believes nobody, learns from the
// Leases where egress IPs are, has no part in the pool, and says so. With the right it is like the others at once; without it again, a
// new process goes on with the keys of its file, unless somebody has changed that.
func TestKeys_MissingRight(t *testing.T) {
	belongsTo(t, usual)
	stranger := func(w *world) *member { return w.members[2] }
	w := newSteeredWorld(t, settings{families: families[:1], arguments: "egress-snat-assign-cidrs: [192.0.2.224/28]"}, func(w *world) {
		user := "without-secrets"
		w.grantAllBut(user, func(right) bool { return false })
		w.grantInNamespace(user, "leases", rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"list", "watch", "create", "patch"}})
		m := stranger(w)
		w.must(w.WriteKubeconfig(t.Context(), m.File("node.kubeconfig"), cluster.Kubeconfig{User: user, Server: m.link.URL()}))
		w.joinPool()
	})
	m := stranger(w.world)
	w.eventually(func() error { return w.faulty(m, "key_missing", 1) })
	w.eventually(func() error { return w.hasEvent("EgressKeyMissing", "Node/"+m.Name, "apply images/node/rbac.yaml") })
	w.eventually(func() error { return w.verifies(m, "learns from the Leases alone") })
	m.saysInOneLine(w.world, strings.NewReplacer(), "not in order", "secrets")
	w.movesWithin(w.members[1], atLast)
	w.knownBy("both", w.members[0])
	w.knownBy("lease", m)
	if sent := w.counted(m, "sent"); sent > 0 {
		t.Errorf("it has sent %v announcements", sent)
	}
	if _, errs, status := m.Openshift("egress", "pool", "--socket="+m.Socket()); status == 0 || !strings.Contains(errs, "it has no key by which the other nodes know it") {
		t.Errorf("egress pool: %d, %s", status, errs)
	}

	w.grantInNamespace("without-secrets", "secrets", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{keysSecret}, Verbs: []string{"list", "watch", "update"}})
	w.eventually(func() error { return w.faulty(m, "key_missing", 0) })
	w.movesWithin(w.members[0], atLast)
	w.knownBy("both", w.members[1], m)
	w.eventually(func() error {
		if _, errs, status := m.Openshift("egress", "pool", "--socket="+m.Socket()); status != 0 {
			return fmt.Errorf("egress pool: %s", errs)
		}
		return nil
	})
	w.kept()

	w.must(w.Client().RbacV1().Roles(leaseNamespace).Delete(t.Context(), "without-secrets-secrets", metav1.DeleteOptions{}))
	restart := func() {
		m.Stop()
		m.AnewReady()
	}
	w.scenario("a process that starts without the right has the keys of its file", func() {
		restart()
		w.eventually(func() error { return w.faulty(m, "keys", 1) })
		w.movesWithin(w.members[1], atLast)
		w.knownBy("both", w.members[0], m)
	})
	w.scenario("a file that somebody has changed is not trusted", func() {
		m.Stop()
		text, err := os.ReadFile(keptKeys(m))
		w.must(err)
		text[0] ^= 1
		w.must(os.WriteFile(keptKeys(m), text, 0o600))
		m.AnewReady()
		m.Says("the checksum at its end is wrong")
		w.eventually(func() error { return w.faulty(m, "key_missing", 1) })
		w.movesWithin(w.members[0], atLast)
		w.knownBy("lease", m)
	})
	w.clean(1)
}

// TestKeys_Rotation: the keys are replaced as nodes do it, a step at a time, while pods send: a second one is added, the two change
// places, the first one is dropped. With each of them all nodes hear each other, no announcement is refused, a process that starts anew is
// heard as well, and no address moves. In the end nobody believes what is signed with the former key.
func TestKeys_Rotation(t *testing.T) {
	belongsTo(t, long)
	w := newPoolWorld(t, 3)
	w.complete()
	former, next := w.kept(), strings.Repeat("5a", 32)+"\n"
	before := map[*member]float64{} // a node may have heard another one before it had the first key
	for _, m := range w.members {
		before[m] = w.counted(m, "unauthenticated")
	}
	noneRefused := func() {
		for _, m := range w.members {
			if n := w.counted(m, "unauthenticated"); n > before[m] {
				w.Errorf("%s has refused %v announcements", m.Name, n-before[m])
			}
		}
	}
	traffic := w.crowd(50)
	w.unmoved("the keys are rotated", func() {
		for _, now := range []struct{ step, keys string }{{"adding", former + next}, {"dropping", next + former}, {"steady", next}} {
			w.scenario(now.step, func() {
				w.writeKeys(now.keys, now.step)
				w.hearEachOther()
				w.complete()
				noneRefused()
				w.members[2].Stop()
				before[w.members[2]] = 0
				w.members[2].Start()
				w.members[2].Ready()
				w.hearEachOther()
				w.complete()
				noneRefused()
			})
		}
	})
	w.undisturbed(traffic)
	victim, traitor := w.members[1], w.members[2]
	traitor.Kill()
	w.lies(traitor.Host, liar{
		Bind: netip.AddrPortFrom(outer(traitor.Host), lab.AnnouncePort), To: []netip.AddrPort{netip.AddrPortFrom(outer(victim.Host), lab.AnnouncePort)},
		Nodes: []string{traitor.Name}, Addresses: addrs(w.egressIPs), Parts: 1, Key: []byte(strings.TrimSpace(former)),
	})
	w.eventually(func() error {
		if n := w.counted(victim, "unauthenticated"); n < 10 {
			return fmt.Errorf("%s has refused %v announcements that are signed with the former key", victim.Name, n)
		}
		return nil
	})
}

// writeKeys writes keys and a step of their rotation into the Secret, and waits until all nodes keep them, and no others.
func (w *world) writeKeys(keys, step string) {
	w.Helper()
	patch, err := json.Marshal(map[string]any{"stringData": map[string]string{"keys": keys, "step": step, "changed": time.Now().UTC().Format(time.RFC3339)}})
	w.must(err)
	_, err = w.Client().CoreV1().Secrets(leaseNamespace).Patch(w.Context(), keysSecret, types.MergePatchType, patch, metav1.PatchOptions{})
	w.must(err)
	w.eventually(func() error {
		for _, m := range w.members {
			text, err := os.ReadFile(keptKeys(m))
			if lines := strings.Count(keys, "\n"); err != nil || !strings.HasPrefix(string(text), keys) || strings.Count(string(text), "\n") != lines+1 {
				return errors.Join(fmt.Errorf("%s does not keep the %d keys of the Secret", m.Name, lines), err)
			}
		}
		return nil
	})
}

// hearEachOther waits until each node has believed a few announcements from now on, of the others, who say something every 9 s.
func (w *world) hearEachOther() {
	w.Helper()
	before := map[*member]float64{}
	for _, m := range w.members {
		before[m] = w.counted(m, "accepted")
	}
	w.eventually(func() error {
		for _, m := range w.members {
			if heard := w.counted(m, "accepted") - before[m]; heard < float64(len(w.members)) {
				return fmt.Errorf("%s has believed %v announcements", m.Name, heard)
			}
		}
		return nil
	})
}

func differ(before, after string) error {
	if before == after {
		return fmt.Errorf("still %s", before)
	}
	return nil
}
