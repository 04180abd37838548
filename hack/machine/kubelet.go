//go:build linux

package machine

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/lab"
)

// debianPlugins has Debian's package containernetworking-plugins.
const debianPlugins = "/usr/lib/cni"

var (
	//go:embed kubelet.sh
	kubeletScript []byte
	//go:embed containerd.toml
	containerdConfig []byte
	//go:embed containerd2.toml
	containerd2Config []byte
	//go:embed crio.toml
	crioConfig []byte
	//go:embed policy.json
	crioPolicy []byte
	//go:embed kubelet.yaml
	kubeletConfig []byte
)

// Kubelet says what a node of Kubernetes is like.
type Kubelet struct {
	// Name is the Node object's.
	Name string
	Host *lab.Host
	// Program is the kubelet, and Kubeconfig what it reaches the API server with.
	Program, Kubeconfig string
	// Image is what MakeImage returned, and Images are archives of more images.
	Image   string
	Images  []string
	Runtime Runtime
	// Network is the configuration of the network plugins, a conflist. Plugins are programs besides those of the runtime.
	Network json.RawMessage
	Plugins []string
}

// Runtime is a container runtime and its network plugins. The zero one is Debian's containerd.
type Runtime struct {
	program string // as kubelet.sh calls it
	folder  string // its programs are in bin
	plugins string // a folder
	config  []byte
}

var debian = Runtime{"containerd", "/usr", debianPlugins, containerdConfig}

// RequireKubelet skips the test where a tool is missing, but fails it when the environment has CI=true.
func RequireKubelet(t testing.TB) {
	t.Helper()
	require(t, map[string]string{
		"containerd": "containerd", "runc": "runc", "unshare": "util-linux", filepath.Join(debianPlugins, "bridge"): "containernetworking-plugins",
	})
}

// RequireRuntime is RequireKubelet for a runtime that hack/build-runtime.sh builds, which it returns: containerd or crio. The environment
// variable of that name, in capitals, names its folder.
func RequireRuntime(t testing.TB, program string) Runtime {
	t.Helper()
	require(t, map[string]string{"runc": "runc", "conmon": "conmon", "unshare": "util-linux"})
	variable := strings.ToUpper(program)
	folder := os.Getenv(variable)
	if folder == "" {
		lab.Lacks(t, "the environment variable %s does not name a folder of hack/build-runtime.sh; run 'make test-e2e E2E=all'", variable)
	}
	config := map[string][]byte{"containerd": containerd2Config, "crio": crioConfig}[program]
	return Runtime{program, folder, filepath.Join(folder, "cni"), config}
}

// Start starts the container runtime and the kubelet, which then make themselves known to the API server.
func (k Kubelet) Start(t testing.TB) *Machine {
	t.Helper()
	if k.Runtime.program == "" {
		k.Runtime = debian
	}
	dir, err := k.Host.MkdirTemp(k.Name + "-machine-")
	if err == nil {
		err = k.write(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	return start(t, k.Host, k.Name, dir, kubeletScript, k.Name, k.Runtime.program, k.Program, "--kubeconfig="+k.Kubeconfig, "--node-ip="+addresses(k.Host))
}

// write makes the folder that is /mnt on the machine.
func (k Kubelet) write(dir string) error {
	for _, folder := range []string{"cni", "net.d", "images"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o755); err != nil {
			return err
		}
	}
	// The usual time, on a machine that is not emulated.
	config := fmt.Appendf(slices.Clone(kubeletConfig), "runtimeRequestTimeout: %s\n", lab.Stretch(2*time.Minute))
	for name, content := range map[string][]byte{
		"runtime.toml": k.Runtime.config, "policy.json": crioPolicy, "kubelet.yaml": config, "net.d/cluster.conflist": k.Network,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	if err := os.Symlink(k.Runtime.folder, filepath.Join(dir, "runtime")); err != nil {
		return err
	}
	plugins, err := filepath.Glob(filepath.Join(k.Runtime.plugins, "*"))
	if err != nil {
		return err
	}
	for _, plugin := range append(plugins, k.Plugins...) {
		if err := os.Symlink(plugin, filepath.Join(dir, "cni", filepath.Base(plugin))); err != nil {
			return err
		}
	}
	for i, image := range append(k.Images, k.Image) {
		if err := os.Symlink(image, filepath.Join(dir, "images", strconv.Itoa(i))); err != nil {
			return err
		}
	}
	return nil
}

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
