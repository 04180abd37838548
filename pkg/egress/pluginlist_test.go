package egress

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/cni"
	"github.com/openshift/origin-node/pkg/egress/conflist"
)

const (
	bridge      = `{"cniVersion": "1.0.0", "name": "cluster", "plugins": [{"type": "bridge"}]}`
	bridgeOfOld = `{"cniVersion": "0.2.0", "name": "cluster", "plugins": [{"type": "bridge"}]}`
	withPlugin  = `{"cniVersion": "1.0.0", "name": "cluster", "plugins": [{"type": "bridge"}, {"type": "origin-node-cni", "waitSeconds": 20}]}`
)

// listTest is a pluginList of a folder that the network plugin writes a list into.
type listTest struct {
	*testing.T
	*pluginList
}

func newListTest(t *testing.T, install, expected bool) *listTest {
	t.Helper()
	config := Attaching{Socket: attachments.DefaultSocket, Lists: t.TempDir()}
	if install {
		config.Install = t.TempDir()
	}
	return &listTest{t, newPluginList(klog.Background(), config, func() bool { return expected })}
}

func (l *listTest) file() string { return filepath.Join(l.folder, "10-net.conflist") }

func (l *listTest) writes(list string) {
	l.Helper()
	if err := os.WriteFile(l.file(), []byte(list), 0o644); err != nil {
		l.Fatal(err)
	}
}

// installs the plugin's binary.
func (l *listTest) installs() {
	l.Helper()
	if err := os.WriteFile(filepath.Join(l.plugins, cni.Plugin), nil, 0o755); err != nil {
		l.Fatal(err)
	}
}

// sees looks, and expects a complaint with a text, or none, and what of the plugin is in the list then.
func (l *listTest) sees(complaint, entry string) {
	l.Helper()
	_, missing := l.look()
	if (missing == nil) != (complaint == "") || missing != nil && !strings.Contains(missing.Error(), complaint) {
		l.Errorf("says %v, expected %q", missing, complaint)
	}
	list, err := conflist.Read(l.file())
	if err != nil {
		return
	}
	if got := string(list.Entry(cni.Plugin)); (got == "") != (entry == "") || !strings.Contains(got, entry) {
		l.Errorf("the list has %q, expected %q", got, entry)
	}
}

// TestPluginList_Tells only if the plugin was there, and changes nothing.
func TestPluginList_Tells(t *testing.T) {
	l := newListTest(t, false, false)
	l.sees("", "")
	l.writes(bridge)
	l.sees("", "")
	l.writes(withPlugin)
	l.sees("", "origin-node-cni")
	l.writes(bridge)
	l.sees("egress-snat-cni-install", "")
	if err := os.Remove(l.file()); err != nil {
		t.Fatal(err)
	}
	l.sees(conflist.ErrNone.Error(), "")

	l = newListTest(t, false, true)
	l.writes(bridge)
	l.sees("egress-snat-cni-install", "") // pods were started with it
}

// TestPluginList_Puts the plugin where it was, as it was, but only if pods can start then.
func TestPluginList_Puts(t *testing.T) {
	l := newListTest(t, true, false)
	l.sees(conflist.ErrNone.Error(), "")
	l.writes(bridge[:30])
	l.sees("10-net.conflist", "") // half written
	l.writes(bridge)
	l.sees("make install-cni", "")
	l.installs()
	l.writes(bridgeOfOld)
	l.sees("0.2.0", "")
	l.writes(bridge)
	l.sees("", "origin-node-cni")
	l.sees("", "origin-node-cni")
	l.writes(withPlugin)
	l.sees("", "20")
	l.writes(bridge)
	l.sees("", "20")
	if err := RemovePlugin(l.folder); err != nil {
		t.Fatal(err)
	}
	if list, err := conflist.Find(l.folder); err != nil || list.Entry(cni.Plugin) != nil || len(list.Plugins) != 1 {
		t.Errorf("list %+v, err %v after the clean-up", list, err)
	}
}
