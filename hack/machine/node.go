//go:build linux

package realnode

import (
	_ "embed"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/lab"
)

// debianPlugins has Debian's package containernetworking-plugins.
const debianPlugins = "/usr/lib/cni"

var (
	//go:embed node.sh
	script []byte
	//go:embed containerd.toml
	containerdConfig []byte
	//go:embed kubelet.yaml
	kubeletConfig []byte
)

// Config says what a node is like.
type Config struct {
	// Name is the Node object's.
	Name string
	Host *lab.Host
	// Kubelet is the program, and Kubeconfig what it reaches the API server with.
	Kubelet, Kubeconfig string
	// Image is what MakeImage returned.
	Image string
	// Network is the configuration of the network plugins, a conflist. Plugins are programs besides Debian's.
	Network json.RawMessage
	Plugins []string
}

// Require skips the test where a tool is missing, but fails it when the environment has CI=true.
func Require(t testing.TB) {
	t.Helper()
	var missing []string
	for tool, debian := range map[string]string{
		"containerd": "containerd", "runc": "runc", "unshare": "util-linux", filepath.Join(debianPlugins, "bridge"): "containernetworking-plugins",
	} {
		if _, err := exec.LookPath(tool); err != nil {
			missing = append(missing, debian)
		}
	}
	if len(missing) == 0 {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("tools are missing: apt-get install %s", strings.Join(missing, " "))
	}
	t.Skipf("tools are missing: apt-get install %s", strings.Join(missing, " "))
}

// Start starts a node's container runtime and kubelet, which then make themselves known to the API server. They end, and
// what they have made in the machine is gone, at the end of the test at the latest, and when its process ends.
func Start(t testing.TB, c Config) *Node {
	t.Helper()
	dir, err := c.Host.MkdirTemp(c.Name + "-machine-")
	if err == nil {
		err = c.write(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	logFile := lab.LogFile(t, c.Name+"-machine")
	log, err := os.Create(logFile)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() // the processes have their own
	n := &Node{Cgroup: c.cgroup(), t: t, log: logFile}
	n.command = exec.Command(filepath.Join(dir, "node.sh"), "/run/netns/"+c.Host.Name, dir, n.Cgroup, c.Name,
		c.Kubelet, "--kubeconfig="+c.Kubeconfig, "--node-ip="+addresses(c.Host))
	n.command.Env = c.Host.Command(t.Context(), "kubelet").Env
	n.command.Stdout, n.command.Stderr = log, log
	// In a group of its own: ^C at the terminal is for the test, which ends it in turn.
	n.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if n.pipe, err = n.command.StdinPipe(); err == nil {
		err = n.command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

// Node is a machine that runs.
type Node struct {
	// Cgroup is the name of its own in each hierarchy.
	Cgroup string

	t       testing.TB
	log     string
	command *exec.Cmd
	pipe    io.Closer
}

// Close ends the node as the end of the test's process does, and fails the test if anything is left. Calling it again does
// nothing.
func (n *Node) Close() {
	n.t.Helper()
	if n.command.ProcessState != nil {
		return
	}
	_ = n.pipe.Close()
	hung := time.AfterFunc(time.Minute, func() { _ = n.command.Process.Kill() })
	defer hung.Stop()
	if err := n.command.Wait(); err != nil {
		n.t.Errorf("a machine has ended with %v; its log is %s", err, n.log)
	}
}

// write makes the folder that is /mnt on the node.
func (c Config) write(dir string) error {
	for _, folder := range []string{"cni", "net.d"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o755); err != nil {
			return err
		}
	}
	kubelet := strings.ReplaceAll(string(kubeletConfig), "CGROUP", c.cgroup())
	for name, content := range map[string][]byte{
		"node.sh": script, "containerd.toml": containerdConfig, "kubelet.yaml": []byte(kubelet), "net.d/cluster.conflist": c.Network,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o755); err != nil {
			return err
		}
	}
	plugins, err := filepath.Glob(filepath.Join(debianPlugins, "*"))
	if err != nil {
		return err
	}
	for _, plugin := range append(plugins, c.Plugins...) {
		if err := os.Symlink(plugin, filepath.Join(dir, "cni", filepath.Base(plugin))); err != nil {
			return err
		}
	}
	return os.Link(c.Image, filepath.Join(dir, "image.tar"))
}

func (c Config) cgroup() string { return "origin-node-" + c.Host.Name }

func addresses(host *lab.Host) string {
	var texts []string
	if host.V4.IsValid() {
		texts = append(texts, host.V4.String())
	}
	if host.V6.IsValid() {
		texts = append(texts, host.V6.String())
	}
	return strings.Join(texts, ",")
}
