package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestNode_SecondOneRefusesToRun: beside the first one, whatever its configuration, in a container
// too, and before it has changed anything. However the first one
// ends, another can start at once.
func TestNode_SecondOneRefusesToRun(t *testing.T) {
	belongsTo(t, usual)
	w := newWatchedWorld(t, settings{})
	first := w.members[1]
	rules := func() [2][]string { return [2][]string{programmed(first, families[0]), programmed(first, families[1])} }
	w.proxierAtRest(first)
	before := rules()
	refused := func(what string, in []string, says string, args ...string) {
		t.Helper()
		cmd := first.Command(t.Context(), append([]string{"start", "node", "--config=" + first.Config()}, args...)...)
		// ip netns exec NAMESPACE program
		cmd.Args = slices.Insert(cmd.Args, 4, in...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		err := cmd.Run()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 1 {
			t.Errorf("%s: ended with %v, want status 1", what, err)
		}
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		if last := lines[len(lines)-1]; !strings.HasPrefix(last, "error: ") || !strings.Contains(last, says) {
			t.Errorf("%s: the last line is %q, want an error with %q", what, last, says)
		} else {
			t.Logf("%s: %s", what, last)
		}
		if diff := cmp.Diff(before, rules()); diff != "" {
			t.Errorf("%s: the rules are others (-want +got):\n%s", what, diff)
		}
	}
	container := []string{"unshare", "--mount", "--pid", "--fork", "--kill-child"}
	pid := fmt.Sprintf("process %d", first.PID())
	refused("the same again", nil, pid)
	refused("in a container", container, "in another container")
	refused("a clean-up", nil, pid, "--cleanup")
	refused("another configuration", nil, pid, "--config="+w.otherConfig(first, map[string]any{
		"cluster-cidr": []string{"10.0.0.0/8"}, "egress-snat-socket": []string{""}, "egress-snat-cni-socket": []string{""}, "healthz-bind-address": []string{"127.0.0.1:1"}, "metrics-bind-address": []string{"127.0.0.1:2"},
	}))
	refused("without egress SNAT", nil, pid, "--config="+w.otherConfig(first, map[string]any{"egress-snat": []string{"false"}}))

	first.Stop()
	first.AnewReady()
	first.Kill()
	first.AnewReady()
	first.Printed.Reset()
	first.Configure(`v: ["3"]`)
	first.Ends(75)
	contained := &logger{member: first, script: `exec unshare --mount --pid --fork --kill-child "$@"`}
	contained.start(w)
	w.publish()
	w.published()
	w.proxierAtRest(first)
	before = rules()
	refused("beside a container", nil, "process ")
	w.must(contained.cmd.Process.Kill())
	<-contained.ended
	first.Start()
	first.Ready()
	w.publish()
	w.published()
	w.calm("second nodes refused, successors welcome")
}

// proxierAtRest waits until the proxier serves press/blog as it is now. It writes no more than
// once in a second.
func (w *watchedWorld) proxierAtRest(m *member) {
	w.Helper()
	for i, family := range families {
		w.eventually(func() error {
			save := m.Save(family)
			if !strings.Contains(save, "-A KUBE-SERVICES -d "+w.blogIPs()[i]) || strings.Contains(save, "has no endpoints") {
				return fmt.Errorf("%s, %s: the proxier does not serve press/blog on %s", m.Name, family, w.blogIPs()[i])
			}
			return nil
		})
	}
}

// otherConfig writes a configuration that is a node's but for some proxyArguments, into a file
// of its own, whose name it returns.
func (w *watchedWorld) otherConfig(m *member, arguments map[string]any) string {
	w.Helper()
	text, err := os.ReadFile(m.Config())
	w.must(err)
	config := map[string]any{}
	w.must(yaml.Unmarshal(text, &config))
	maps.Copy(config["proxyArguments"].(map[string]any), arguments)
	text, err = yaml.Marshal(config)
	w.must(err)
	m.Write(m.File("other.yaml"), text)
	return m.File("other.yaml")
}
