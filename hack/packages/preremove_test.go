package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openshift/origin-node/hack/lab"
)

// TestPreremove_SymbolicLinks: a clean-up names lists without symbolic links. A removal is not refused for a list behind a link that the
// clean-up takes the CNI plugin out of, but for one that it leaves.
func TestPreremove_SymbolicLinks(t *testing.T) {
	if os.Geteuid() != 0 {
		lab.Lacks(t, "needs root, to mount file systems")
	}
	const (
		setUp = `mount -t tmpfs tmpfs /etc && mount -t tmpfs tmpfs /run && mkdir -p /etc/cni/net.d /run/systemd/system /run/lists
echo '{"type": "origin-node-cni"}' >/run/lists/10-test.conflist
ln -s /run/lists/10-test.conflist ` + list + "\n"
		systemctl = "#!/bin/sh\n[ \"$1\" != is-active ] || echo active\n"
		program   = `#!/bin/sh
case "$*" in
*--dry-run*) echo /run/lists/10-test.conflist ;;
*--cleanup*) echo '{}' >/run/lists/10-test.conflist ;;
*) exit 1 ;;
esac
`
	)
	bin := t.TempDir()
	for name, script := range map[string]string{"systemctl": systemctl, "systemd-run": program} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(more string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-ec", setUp+more+"exec sh preremove.sh remove")
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := remove(""); err != nil || out != "" {
		t.Errorf("%v: %s", err, out)
	}
	const other = "/etc/cni/net.d/20-other.conflist"
	if out, err := remove("cp /run/lists/10-test.conflist " + other + "\n"); err == nil || !strings.Contains(out, "not removed: "+other+" names the CNI plugin") {
		t.Errorf("with another list: %v: %s", err, out)
	}
}
