package attach

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/cni"
	"github.com/openshift/origin-node/pkg/egress/conflist"
)

const (
	bridge      = `{"cniVersion": "1.0.0", "name": "cluster", "plugins": [{"type": "bridge"}]}`
	bridgeOfOld = `{"cniVersion": "0.2.0", "name": "cluster", "plugins": [{"type": "bridge"}]}`
	withPlugin  = `{"cniVersion": "1.0.0", "name": "cluster", "plugins": [{"type": "bridge"}, {"type": "origin-node-cni", "waitSeconds": 20}]}`
	pluginFirst = `{"cniVersion": "1.0.0", "name": "cluster", "plugins": [{"type": "origin-node-cni"}, {"type": "bridge"}]}`
	// CNI 1.1 has a folder for them.
	pluginsElsewhere = `{"cniVersion": "1.1.0", "name": "cluster"}`
)

// listTest is a pluginList of a folder that the network plugin writes a list into.
type listTest struct {
	*testing.T
	*pluginList
	// labels is why the labels of pods are not known, and asked how often that was asked.
	labels error
	asked  int
	now    time.Time
}

func newListTest(t *testing.T, install, expected bool) *listTest {
	t.Helper()
	config := Config{Socket: attachments.DefaultSocket, Lists: t.TempDir()}
	if install {
		config.Install = t.TempDir()
	}
	l := &listTest{T: t, now: time.Now()}
	l.begins(config, filepath.Join(t.TempDir(), "cni-entry"), expected)
	return l
}

// begins has a process begin that finds the notes of the one before.
func (l *listTest) begins(config Config, notes string, expected bool) {
	l.pluginList = newPluginList(klog.Background(), config, notes, func() bool { return expected }, func() error {
		l.asked++
		return l.labels
	})
}

// restarts has another process look at the same folder.
func (l *listTest) restarts() {
	l.begins(Config{Socket: l.socket, Lists: l.folder, Install: l.plugins}, l.notes, false)
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
	_, missing := l.look(l.now)
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
	for socket, complaint := range map[string]string{attachments.DefaultSocket: "", "/var" + attachments.DefaultSocket: "the plugin asks no node"} {
		l.writes(strings.Replace(withPlugin, `"waitSeconds": 20`, fmt.Sprintf("%q: %q", "socket", socket), 1))
		l.sees(complaint, socket)
	}
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
	l.writes(pluginsElsewhere)
	l.sees("itself has no plugins", "")
	l.writes(bridge)
	l.labels = errNoSource
	l.sees(errUnlabelled.Error(), "")
	l.labels = nil
	l.sees("", "origin-node-cni")
	l.writes(strings.Replace(withPlugin, `"waitSeconds": 20`, `"waitSeconds": 20, "socket": "/run/former.sock"`, 1))
	l.sees("", "origin-node-cni")
	if text, err := os.ReadFile(l.file()); err != nil || strings.Contains(string(text), "former") || !strings.Contains(string(text), `"waitSeconds": 20`) {
		t.Errorf("after a change of the socket: %v\n%s", err, text)
	}
	l.writes(bridge)
	l.sees("", "origin-node-cni")
	l.sees("", "origin-node-cni")
	l.writes(pluginFirst)
	l.sees(errFirst.Error(), "origin-node-cni")
	l.writes(withPlugin)
	l.sees("", "20")
	l.writes(bridge)
	l.sees("", "20")
	if files, err := PluginLists(l.folder); err != nil || len(files) != 1 || filepath.Dir(files[0]) != l.folder {
		t.Errorf("the plugin is in %q, %v; want one file of %s", files, err, l.folder)
	}
	if err := RemovePlugin(l.folder); err != nil {
		t.Fatal(err)
	}
	if files, err := PluginLists(l.folder); err != nil || len(files) != 0 {
		t.Errorf("the plugin is in %q, %v after the clean-up", files, err)
	}
	if list, err := conflist.Find(l.folder); err != nil || list.Entry(cni.Plugin) != nil || len(list.Plugins) != 1 {
		t.Errorf("list %+v, err %v after the clean-up", list, err)
	}
}

// TestPluginList_KeepsOptions while no process runs. Notes that cannot be read are none.
func TestPluginList_KeepsOptions(t *testing.T) {
	l := newListTest(t, true, false)
	l.installs()
	l.writes(withPlugin)
	l.sees("", "20")
	l.writes(bridge)
	l.restarts()
	l.sees("", "20")
	l.writes(bridge)
	if err := os.WriteFile(l.notes, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.restarts()
	l.sees("", "{\n      \"type\": \"origin-node-cni\"\n    }")
}

// TestPluginList_SkippedList: CRI-O uses a later one if a plugin of the first one is missing.
func TestPluginList_SkippedList(t *testing.T) {
	l := newListTest(t, true, false)
	l.installs()
	write := func(folder, name, content string) string {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	l.writes(withPlugin)
	other := write(l.folder, "20-other.conflist", strings.Replace(bridge, "bridge", "macvlan", 1))
	l.sees("", "20") // no list is complete
	write(l.plugins, "macvlan", "")
	l.defaults = []string{t.TempDir(), filepath.Join(t.TempDir(), "none")}
	for _, named := range []string{l.file(), "the plugin bridge of that list is not in " + l.plugins + " or " + l.defaults[0] + ",", "uses " + other} {
		l.sees(named, "20")
	}
	elsewhere := write(l.defaults[0], "bridge", "")
	write(l.defaults[0], cni.Plugin, "")
	l.sees("", "20")
	if err := os.Remove(elsewhere); err != nil {
		t.Fatal(err)
	}
	single := write(l.folder, "00-multus.conf", `{"type": "multus"}`)
	l.sees("", "20")
	if err := os.Remove(single); err != nil {
		t.Fatal(err)
	}
	write(l.folder, "20-other.conflist", strings.Replace(withPlugin, "bridge", "macvlan", 1))
	l.sees("", "20")
	write(l.folder, "20-other.conflist", strings.Replace(bridge, "bridge", "macvlan", 1))
	write(l.plugins, "bridge", "")
	l.sees("", "20")
}

// TestPluginList_FoldersOfAContainer: a folder that is mounted into a container says nothing of others of the node.
func TestPluginList_FoldersOfAContainer(t *testing.T) {
	l, none := newListTest(t, true, false), filepath.Join(t.TempDir(), "none")
	for _, test := range []struct {
		plugins  string
		defaults []string
		known    bool
	}{
		{"/proc", []string{"/proc", t.TempDir()}, true},
		{"/proc", []string{"/proc", none}, false},
		{t.TempDir(), []string{t.TempDir(), none}, true},
	} {
		l.plugins, l.defaults = test.plugins, test.defaults
		if folders, known := l.pluginFolders(); known != test.known {
			t.Errorf("%s, with the defaults %s: %s, known: %t", test.plugins, test.defaults, folders, known)
		}
	}
}

// TestPluginList_KnowsTheVersion that a runtime takes from a list, whether it knows cniVersions (CNI 1.1) or not.
func TestPluginList_KnowsTheVersion(t *testing.T) {
	for versions, refused := range map[string]string{
		`"cniVersion": "1.0.0", "cniVersions": ["0.2.0", "1.1.0", "0.4.0"]`: "",
		`"cniVersion": "1.0.0", "cniVersions": ["0.4.0"]`:                   "",
		`"cniVersion": "1.0.0", "cniVersions": ["1.10.0", "1.1.0"]`:         `"1.10.0"`,
		`"cniVersion": "0.2.0", "cniVersions": ["1.0.0"]`:                   `"0.2.0"`,
		`"cniVersions": ["1.0.0"]`:                                          `["" "1.0.0"]`,
	} {
		l := newListTest(t, true, false)
		l.installs()
		l.writes(strings.Replace(bridge, `"cniVersion": "1.0.0"`, versions, 1))
		if refused != "" {
			l.sees(refused, "")
		} else {
			l.sees("", "origin-node-cni")
		}
	}
}

// TestPluginList_AsksLessAndLess often for the labels of pods while the answer is that they are not known, but looks each
// time for a kubelet that is not there, and puts the plugin into the list when it is.
func TestPluginList_AsksLessAndLess(t *testing.T) {
	const long = 10 * time.Minute
	for _, test := range []struct {
		code        codes.Code
		least, most int
		late        time.Duration
	}{
		{codes.FailedPrecondition, int(long / longestRefresh), int(long/longestRefresh) + 10, longestRefresh},
		{codes.Unavailable, int(long / listPeriod), int(long / listPeriod), 0},
	} {
		t.Run(test.code.String(), func(t *testing.T) {
			l := newListTest(t, true, false)
			l.installs()
			l.writes(bridge)
			l.labels = fmt.Errorf("asking the kubelet: %w", status.Error(test.code, "it does not know"))
			for range long / listPeriod {
				l.sees(errUnlabelled.Error(), "")
				l.now = l.now.Add(listPeriod)
			}
			if l.asked < test.least || l.asked > test.most {
				t.Errorf("asked %d times in %s, expected %d to %d times", l.asked, long, test.least, test.most)
			}
			l.labels = nil
			l.now = l.now.Add(test.late)
			l.sees("", "origin-node-cni")
		})
	}
}

// TestPluginList_AsksOnce while the plugin cannot be put into the list although the labels of pods are known.
func TestPluginList_AsksOnce(t *testing.T) {
	l := newListTest(t, true, false)
	l.installs()
	l.writes(bridge)
	if err := os.MkdirAll(filepath.Join(l.folder, ".origin-node-unfinished", "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		l.sees("directory not empty", "")
	}
	if l.asked != 1 {
		t.Errorf("asked %d times at once, expected once", l.asked)
	}
}

// TestPluginList_BehindASinglePlugin such as Multus, which uses another list of the folder.
func TestPluginList_BehindASinglePlugin(t *testing.T) {
	l := newListTest(t, true, true)
	l.installs()
	if err := os.WriteFile(filepath.Join(l.folder, "00-multus.conf"), []byte(`{"type": "multus"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	l.writes(bridge)
	l.sees("single plugin", "")
	l.writes(withPlugin)
	l.sees("", "20")
	l.writes(bridge[:30])
	l.sees("single plugin", "")
	l.sees("it was last in "+l.file(), "")
	l.writes(bridge)
	l.sees("", "20")
	l.writes(bridge)
	l.restarts()
	l.sees("", "20")
}

// TestContest_RestsLongerAndLonger while other software removes the plugin, and ends when that stops.
func TestContest_RestsLongerAndLonger(t *testing.T) {
	var c contest
	now, rests := time.Now(), []time.Duration(nil)
	for range 12 {
		rests = append(rests, c.put(now))
		now = now.Add(rests[len(rests)-1])
		if got, want := c.lasts(now), len(rests) >= contestRounds; got != want {
			t.Errorf("after %d rounds there is a contest: %v", len(rests), got)
		}
	}
	if rests[0] != listRest || rests[1] != 2*listRest || rests[11] != longestRest || !slices.IsSorted(rests) {
		t.Errorf("rests are %v", rests)
	}
	now = now.Add(quietTime)
	if c.lasts(now) {
		t.Error("the contest lasts after a quiet time")
	}
	if rest := c.put(now); rest != listRest {
		t.Errorf("the next change is followed by %s", rest)
	}
}

// TestKeepListed_TellsOfAContest although the plugin is in the list after each change.
func TestKeepListed_TellsOfAContest(t *testing.T) {
	l := newListTest(t, true, true)
	l.installs()
	a, now := newAttacherTest(t, t.TempDir(), podSources{}), time.Now()
	for round := range contestRounds + 1 {
		l.writes(bridge)
		rest := a.keepListed(l.pluginList, now)
		if now = now.Add(rest); rest == 0 {
			t.Fatalf("round %d: no rest", round)
		}
	}
	if got := a.Problems(); len(got) != 1 || !strings.Contains(got[0], errContest.Error()) {
		t.Errorf("faults %q", got)
	}
	if a.keepListed(l.pluginList, now.Add(quietTime+time.Second)); len(a.Problems()) > 0 {
		t.Errorf("faults %q after a quiet time", a.Problems())
	}
}

// TestKeepListed_ReplacedMeanwhile: what another program has just written is looked at after a rest.
func TestKeepListed_ReplacedMeanwhile(t *testing.T) {
	l := newListTest(t, true, true)
	l.installs()
	l.writes(bridge)
	l.labelled = func() error { // is called before the plugin is put into the list
		l.writes(pluginFirst)
		return nil
	}
	a := newAttacherTest(t, t.TempDir(), podSources{})
	if rest := a.keepListed(l.pluginList, time.Now()); rest != listRest || len(a.Problems()) > 0 {
		t.Errorf("rests for %s, faults %q", rest, a.Problems())
	}
	if text, err := os.ReadFile(l.file()); err != nil || string(text) != pluginFirst {
		t.Errorf("the list is %s, err %v; expected that of the other program", text, err)
	}
}

// TestKeepListed_Unlabelled: the labels of pods are unknown for a moment. That is no fault yet, but does not end the fault
// that the plugin is missing.
func TestKeepListed_Unlabelled(t *testing.T) {
	l := newListTest(t, true, true)
	l.writes(bridge)
	l.labels = errNoSource
	a := newAttacherTest(t, t.TempDir(), podSources{})
	expect := func(want string) {
		t.Helper()
		a.keepListed(l.pluginList, l.now)
		if got := strings.Join(a.Problems(), "\n"); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("faults %q, expected %q", got, want)
		}
	}
	expect("make install-cni")
	l.installs()
	expect(errUnlabelled.Error())
	l.labels = nil
	expect("")
	l.writes(bridge)
	l.ask, l.labels = refresh{}, errNoSource
	expect("")
}

// TestCheckLabels_TellsWhatLasts, where the plugin is used.
func TestCheckLabels_TellsWhatLasts(t *testing.T) {
	a := newAttacherTest(t, t.TempDir(), podSources{})
	began := time.Now()
	expect := func(what string, after time.Duration, want int) {
		t.Helper()
		known := a.checkLabels(began, began.Add(after))
		if got := a.Problems(); len(got) != want || known.After(began) != (want == 0 && after >= labelPatience) {
			t.Errorf("%s: faults %q, known %s ago", what, got, began.Add(after).Sub(known))
		}
	}
	expect("nobody uses the plugin", time.Hour, 0)
	a.config.Install = "/opt/cni/bin"
	expect("a moment", labelPatience-1, 0)
	expect("long", labelPatience, 1)
	a.pods = someLabels
	expect("known again", labelPatience, 0)
	expect("known a moment ago", labelPatience/2-1, 0)
}

// TestPluginWarnings_NoAttachments: pods may have started without a plugin that is to be installed.
func TestPluginWarnings_NoAttachments(t *testing.T) {
	a := newAttacherTest(t, t.TempDir(), podSources{})
	if warnings := a.Warnings(t.Context()); warnings != nil {
		t.Errorf("nobody uses the plugin: %q", warnings)
	}
	a.config.Install = "/opt/cni/bin"
	if warnings := a.Warnings(t.Context()); len(warnings) != 1 || !strings.Contains(warnings[0], errNoSource.Error()) {
		t.Errorf("warnings %q", warnings)
	}
}
