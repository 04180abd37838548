package packages

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/hack/machine"
	"github.com/openshift/origin-node/hack/node"
)

const unit = "origin-node.service"

// underSystemd: what becomes of the service and of its rules when the deb is installed, upgraded and removed.
func underSystemd(t *testing.T, versions map[string]string) {
	files := map[string]string{"node-config.yaml": "../demo/node-config.yaml", "manifests": "../demo/manifests"}
	maps.Copy(files, versions)
	w := newService(t, files)
	w.install("/mnt/first")
	w.is("disabled", "is-enabled")
	w.is("inactive", "is-active")

	// One that waits for its API server: an upgrade does not wait with it.
	w.does("sh", "-c", "printf '"+noAPIServer+"' >/etc/origin/node/node.kubeconfig")
	w.does("systemctl", "enable", unit)
	w.does("systemctl", "start", "--no-block", unit)
	w.upgrade("/mnt/second", "activating")

	// A standalone one, which needs none.
	w.does("cp", "/mnt/node-config.yaml", config)
	w.does("sh", "-c", "echo OPTIONS=--manifests=/mnt/manifests >>"+sysconfig)
	w.does("systemctl", "restart", unit)
	w.upgrade("/mnt/first", "active") // also a way from one version to another
	w.rules(true)

	w.refused()
	w.listed(installed)
	w.does("dpkg", "--remove", "origin-node")
	w.rules(false)
	w.does("sh", "-c", "! grep origin-node-cni "+list)
	w.is("inactive", "is-active")
	w.does("sh", "-c", "! ls /etc/systemd/system/multi-user.target.wants/origin-node.service")

	// One that was stopped: whatever has taken its place keeps its rules.
	w.install("/mnt/second")
	w.does("systemctl", "start", unit)
	w.does("systemctl", "stop", unit)
	w.does("dpkg", "--purge", "origin-node")
	w.rules(true)
}

// list is one of CNI plugins, with ours. installed says that the node has put it there.
const (
	list      = "/etc/cni/net.d/10-test.conflist"
	installed = true
)

// listed has the network plugins' list name the CNI plugin. If the node has installed it there, a clean-up takes it out.
func (w *service) listed(installed bool) {
	w.Helper()
	w.does("sh", "-c", `mkdir -p /etc/cni/net.d && echo '{"cniVersion": "1.0.0", "name": "test", "plugins": [{"type": "bridge"}, {"type": "origin-node-cni"}]}' >`+list)
	if installed {
		w.does("sed", "-i", `s|^proxyArguments:|&\n  egress-snat-cni-install: ["/opt/cni/bin"]|`, config)
	}
}

// refused: a removal of the deb, and one of the rpm, that would leave a list with the CNI plugin is refused, and changes nothing:
// the same process goes on, enabled and with its rules.
func (w *service) refused() {
	w.Helper()
	w.listed(!installed)
	defer w.does("rm", list)
	pid := func() string { return w.does("systemctl", "show", unit, "--value", "--property=MainPID") }
	before := pid()
	for name, removal := range map[string][]string{"deb": {"dpkg", "--remove", "origin-node"}, "rpm": {"sh", "/mnt/preun", "0"}} {
		out, err := w.machine.Run(removal[0], removal[1:]...)
		if err == nil || !strings.Contains(err.Error(), "origin-node: not removed: "+list+" names the CNI plugin") {
			w.Errorf("%s: %v, %s; want the removal refused", name, err, out)
		}
		if now := pid(); now != before {
			w.Errorf("%s: the process %s runs, before it was %s", name, now, before)
		}
		w.is("enabled", "is-enabled")
		w.is("active", "is-active")
		w.rules(true)
	}
	intact(w.T, func(args ...string) string { w.Helper(); return w.does(args[0], args[1:]...) }, config, sysconfig)
}

const noAPIServer = `apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "https://192.0.2.250:6443"}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
current-context: none
users: [{name: none, user: {token: none}}]
`

// service is a machine with a package.
type service struct {
	*testing.T
	machine *machine.Debian
}

// newService boots a machine with copies of these files and folders in /mnt.
func newService(t *testing.T, files map[string]string) *service {
	t.Helper()
	machine.RequireDebian(t)
	dir := t.TempDir()
	for name, file := range files {
		command(t, "cp", "--recursive", file, filepath.Join(dir, name))
	}
	host := lab.ForTest(t, lab.Config{}).Node()
	return &service{T: t, machine: machine.BootFresh(t, "node", host, dir)}
}

// does runs a command in the machine.
func (w *service) does(name string, args ...string) string {
	w.Helper()
	out, err := w.machine.Run(name, args...)
	if err != nil {
		w.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// install installs a version, and keeps changed configuration files.
func (w *service) install(deb string) {
	w.Helper()
	w.does("dpkg", "--force-confdef", "--force-confold", "--install", deb)
}

// is fails the test unless systemctl answers a question about the unit so.
func (w *service) is(want, question string) {
	w.Helper()
	if got := w.does("sh", "-c", "systemctl "+question+" "+unit+" || true"); got != want {
		w.Errorf("systemctl %s: %s, want %s", question, got, want)
	}
}

// upgrade installs another version, and waits until the service, which is in that state, is that of another process.
func (w *service) upgrade(deb, state string) {
	w.Helper()
	service := func() (pid, active string) {
		return w.does("systemctl", "show", unit, "--value", "--property=MainPID"), w.does("systemctl", "show", unit, "--value", "--property=ActiveState")
	}
	var before string
	in := func(than string) func() error {
		return func() error {
			pid, active := service()
			if pid == "0" || pid == than || active != state {
				return fmt.Errorf("the service is %s with the process %s, want %s with another one than %q", active, pid, state, than)
			}
			before = pid
			return nil
		}
	}
	node.Eventually(w.T, time.Minute, in(""))
	w.install(deb)
	if state == "active" {
		w.rules(true)
	}
	node.Eventually(w.T, time.Minute, in(before))
}

// rules fails the test unless the kernel has rules of the node, or none at all.
func (w *service) rules(want bool) {
	w.Helper()
	saved := w.does("sh", "-c", "iptables-save; ip6tables-save; nft list tables")
	if got := strings.Contains(saved, "--to-source 192.0.2.100"); got != want {
		w.Errorf("rules of egress SNAT: %t, want %t:\n%s", got, want, saved)
	}
	if !want && strings.Contains(saved, "KUBE-") {
		w.Errorf("rules of the proxier are left:\n%s", saved)
	}
}
