package attach

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/cni"
	"github.com/openshift/origin-node/pkg/egress/conflist"
	"github.com/openshift/origin-node/pkg/egress/kept"
	"github.com/openshift/origin-node/pkg/folders"
	"github.com/openshift/origin-node/pkg/wake"
)

// pluginList keeps our plugin in the list of plugins that the container runtime uses, or tells if it is missing there:
// network plugins write their list anew when they are updated, and ours is lost.
type pluginList struct {
	logger klog.Logger
	folder string
	// socket is where this node answers the plugin.
	socket string
	// plugins is the folder with our plugin, if it is to be put into the list; else empty.
	plugins string
	// defaults are the folders in which CRI-O finds plugins unless it is told otherwise.
	defaults []string
	// last has the entry to put there: the one that was there last. It is kept in the file notes.
	last  listed
	notes string
	// expected tells whether the plugin has been in the list.
	expected func() bool
	seen     bool
	// labelled returns why no pod's labels could be told now, or nil; unlabelled is what it said last, and ask when it is
	// asked again.
	labelled   func() error
	unlabelled error
	ask        refresh
	contest    contest
}

// listed is the plugin's entry in a list.
type listed struct {
	Entry json.RawMessage `json:"entry"`
	// List is the list's file; empty for none.
	List string `json:"list"`
}

// longestNotes is the size of the file with a listed, at most.
const longestNotes = 1 << 20

// newPluginList returns one that knows what an earlier process has kept in the file notes.
func newPluginList(logger klog.Logger, config Config, notes string, expected func() bool, labelled func() error) *pluginList {
	entry := map[string]string{"type": cni.Plugin}
	if config.Socket != attachments.DefaultSocket {
		entry["socket"] = config.Socket
	}
	encoded, err := json.Marshal(entry)
	if err != nil {
		logger.Error(err, "The CNI plugin is not kept in the list")
	}
	l := &pluginList{
		logger: logger, folder: config.Lists, socket: config.Socket, plugins: config.Install, defaults: []string{"/opt/cni/bin", "/usr/libexec/cni"}, last: listed{Entry: encoded}, notes: notes,
		expected: expected, labelled: labelled,
	}
	text, err := kept.Load(notes, longestNotes)
	if err == nil && text != nil {
		err = json.Unmarshal(text, &l.last)
	}
	if err != nil {
		logger.Error(err, "Cannot read which options the CNI plugin had in the list; if it is missing there, it is put there without options")
	}
	return l
}

// note keeps the entry that a list has, for the time when other software has written the list anew.
func (l *pluginList) note(list conflist.List, entry json.RawMessage) {
	if bytes.Equal(entry, l.last.Entry) && list.Path == l.last.List {
		return
	}
	l.last = listed{entry, list.Path}
	text, err := json.Marshal(l.last)
	if err == nil {
		err = kept.Save(l.notes, append(text, '\n'))
	}
	if err != nil {
		l.logger.Error(err, "Cannot keep the options that the CNI plugin has in the list; they are lost if the list is written anew while no node process runs")
	}
}

// errUnlabelled means that nothing tells the labels of pods: with the plugin those of namespaces with egress IPs would not
// start.
var errUnlabelled = errors.New("the labels of pods are not known")

// errFirst means that no plugin of the list gives pods an address before ours is called.
var errFirst = errors.New("move it to the end, behind the plugin that gives pods their addresses")

// look returns the file that it has put the plugin into, or why the plugin does not do its work. A plugin that was never in
// the list, has started no pod and is not to be installed is not missed.
func (l *pluginList) look(now time.Time) (changed string, missing error) {
	list, err := l.find()
	if entry := list.Entry(cni.Plugin); entry != nil {
		l.note(list, entry)
		l.seen, l.ask = true, refresh{}
		if bytes.Equal(entry, list.Plugins[0]) {
			return "", fmt.Errorf("%s: %w", list.Path, errFirst)
		}
		switch asks := socketOf(entry); {
		case asks != l.socket && l.plugins != "":
			return list.Path, l.redirect(list)
		case asks != l.socket:
			return "", fmt.Errorf("%s has it with the socket %q, but this node listens at %q, so the plugin asks no node, or looks for its files in another folder: correct \"socket\" in its entry, or egress-snat-cni-socket", list.Path, asks, l.socket)
		}
		return "", l.checkUsed(list)
	}
	switch {
	case l.plugins == "" && !l.seen && !l.expected():
		return "", nil
	case err != nil:
		return "", err
	case l.plugins == "":
		return "", fmt.Errorf("%s does not have it; other software has probably written the file anew. Put {\"type\": %q} at the end of its plugins, or set egress-snat-cni-install; to do without it, set egress-snat-cni-conf-dir to nothing", list.Path, cni.Plugin)
	}
	return list.Path, l.put(list, now)
}

// checkUsed returns an error if CRI-O uses a later list, without our plugin, because one of this list's plugins is missing. Other runtimes use
// the first list all the same.
func (l *pluginList) checkUsed(list conflist.List) error {
	if l.plugins == "" {
		return nil
	}
	folders, known := l.pluginFolders()
	missing := list.Lacks(folders...)
	if missing == "" || !known {
		return nil
	}
	if first, err := conflist.Find(l.folder); err != nil || first.Path != list.Path {
		return nil // it is used by a single plugin
	}
	all, _ := conflist.All(l.folder)
	for _, other := range all {
		if len(other.Plugins) == 0 || other.Lacks(folders...) != "" {
			continue
		}
		if other.Entry(cni.Plugin) != nil {
			return nil
		}
		return fmt.Errorf("%[1]s has it, but the plugin %[2]s of that list is not in %[3]s, so CRI-O skips it and uses %[4]s: remove the list that is left over, or install %[2]s", list.Path, missing, strings.Join(folders, " or "), other.Path)
	}
	return nil
}

// pluginFolders returns where CRI-O finds plugins: the folder with ours, and its defaults. They are not known to a container into which one
// of them is mounted, and not all.
func (l *pluginList) pluginFolders() (folders []string, known bool) {
	folders, known = []string{l.plugins}, true
	for _, folder := range l.defaults {
		switch _, err := os.Stat(folder); {
		case folder == l.plugins:
		case err == nil:
			folders = append(folders, folder)
		case mounted(l.plugins):
			known = false
		}
	}
	return folders, known
}

// mounted tells whether a folder is the root of a mounted file system.
func mounted(folder string) bool {
	var in, above unix.Stat_t
	err := errors.Join(unix.Stat(folder, &in), unix.Stat(filepath.Dir(folder), &above))
	return err == nil && in.Dev != above.Dev
}

// socketOf returns where the plugin asks by its entry in a list.
func socketOf(entry json.RawMessage) string {
	var c struct {
		Socket string `json:"socket"`
	}
	if err := json.Unmarshal(entry, &c); err != nil {
		return "" // what is no text is no socket of this node's
	}
	return cmp.Or(c.Socket, attachments.DefaultSocket)
}

// redirect has the entry, which is of another configuration of this node, ask at this node's socket. Else it stays as it is.
func (l *pluginList) redirect(list conflist.List) error {
	entry := map[string]any{}
	if err := json.Unmarshal(l.last.Entry, &entry); err != nil {
		return fmt.Errorf("%s: change the socket of %s: %w", list.Path, cni.Plugin, err)
	}
	entry["socket"] = l.socket
	encoded, err := json.Marshal(entry)
	if err != nil {
		return fmt.Errorf("%s: change the socket of %s: %w", list.Path, cni.Plugin, err)
	}
	return list.Replace(cni.Plugin, encoded)
}

// find returns the list that pods start with. Behind the configuration of a single plugin, such as Multus, that is one that
// has our plugin, or had it last.
func (l *pluginList) find() (conflist.List, error) {
	list, err := conflist.Find(l.folder)
	if !errors.Is(err, conflist.ErrSingle) {
		return list, err
	}
	all, _ := conflist.All(l.folder)
	for _, is := range []func(conflist.List) bool{
		func(list conflist.List) bool { return list.Entry(cni.Plugin) != nil },
		func(list conflist.List) bool { return list.Path == l.last.List },
	} {
		if i := slices.IndexFunc(all, is); i >= 0 {
			return all[i], nil
		}
	}
	if l.last.List != "" {
		err = fmt.Errorf("%w; it was last in %s", err, l.last.List)
	}
	return list, err
}

// put puts the plugin at the end of a list, if pods can start with it.
func (l *pluginList) put(list conflist.List, now time.Time) error {
	plugin := filepath.Join(l.plugins, cni.Plugin)
	switch info, err := os.Stat(plugin); {
	case err != nil:
		return fmt.Errorf("it is not put into %s: %w; 'make install-cni' installs it", list.Path, err)
	case info.Mode()&0o111 == 0:
		return fmt.Errorf("it is not put into %s: %s is not executable", list.Path, plugin)
	case slices.ContainsFunc(list.Versions, unknown):
		return fmt.Errorf("it is not put into %s: by cniVersion and cniVersions, runtimes call its plugins with one of the versions %q; the plugin knows %q", list.Path, list.Versions, cni.Versions)
	case len(list.Plugins) == 0:
		return fmt.Errorf("it is not put into %s: the list itself has no plugins, so none in it gives pods their addresses", list.Path)
	}
	if err := l.checkLabels(now); err != nil {
		return fmt.Errorf("it is not put into %s: %w: %w", list.Path, errUnlabelled, err)
	}
	return list.Append(l.last.Entry)
}

// unknown tells whether our plugin does not know a version of CNI.
func unknown(version string) bool { return !slices.Contains(cni.Versions, version) }

// checkLabels returns why no pod's labels could be told, or nil. As long as the plugin cannot be put into the list the
// kubelet, which logs each question, is asked less and less often. One that is not there logs nothing: it is looked for
// each time, because pods start as soon as it runs.
func (l *pluginList) checkLabels(now time.Time) error {
	if now.Before(l.ask.next) {
		return l.unlabelled
	}
	if l.unlabelled = l.labelled(); !unasked(l.unlabelled) {
		l.ask = l.ask.again(now)
	}
	return l.unlabelled
}

// contest notices that other software removes the plugin each time it is put into the list.
type contest struct {
	// rounds is how often it was put there without a quiet time in between, last when it was put there last.
	rounds int
	last   time.Time
}

const (
	// listRest is how long to wait after the first change, so that no two programs write the list against each other all
	// the time. The wait doubles with each round, up to longestRest.
	listRest, longestRest = 200 * time.Millisecond, time.Minute
	// quietTime without a change ends a contest.
	quietTime = 2 * longestRest
	// contestRounds is how many changes make a contest: a network plugin may write its list some times when it starts.
	contestRounds = 5
)

// put notes that the plugin was put into the list, and returns how long to leave the list alone.
func (c *contest) put(now time.Time) (rest time.Duration) {
	if now.Sub(c.last) > quietTime {
		c.rounds = 0
	}
	c.last = now
	c.rounds++
	return min(listRest<<min(c.rounds-1, 10), longestRest)
}

// lasts tells whether there is a contest.
func (c *contest) lasts(now time.Time) bool {
	return c.rounds >= contestRounds && now.Sub(c.last) <= quietTime
}

// errContest is told as long as a contest lasts.
var errContest = errors.New("other software removes it from the list, or changes its socket, again and again; have that software keep it, or unset egress-snat-cni-install")

// listPeriod is how often the list is looked at without an event: its folder may not be there yet.
const listPeriod = 2 * time.Second

// followList keeps our plugin in the list, or tells if it is missing, until the context ends. It stays there then.
func (a *Attacher) followList() {
	list := newPluginList(a.logger, a.config, attachments.Entry(a.config.Socket),
		func() bool { return len(a.store.All()) > 0 },
		func() error { return a.pods.Available(a.ctx) })
	watcher, err := folders.New()
	if err != nil {
		a.logger.Error(err, "The list of CNI plugins cannot be watched, so it is read now and then", "period", listPeriod)
	}
	defer watcher.Close()
	for {
		_ = watcher.Follow(list.folder) // it may be missing, or be another one now
		rest := a.keepListed(list, time.Now())
		if !wake.Sleep(a.ctx.Done(), rest) {
			return
		}
		select {
		case <-a.ctx.Done():
			return
		case <-watcher.Names():
		case <-time.After(listPeriod):
		}
	}
}

// keepListed looks at the list, tells what it has found and done, and returns how long to leave the list alone.
func (a *Attacher) keepListed(list *pluginList, now time.Time) (rest time.Duration) {
	changed, err := list.look(now)
	switch {
	case errors.Is(err, conflist.ErrReplaced):
		return listRest // what is there now is the other program's
	case err == nil && changed != "":
		rest = list.contest.put(now)
		listWrites.WithLabelValues().Inc()
		a.logger.Info("Put the CNI plugin into the list of plugins", "file", changed)
		a.node.Event(pluginListed, "The CNI plugin "+cni.Plugin+" was put into "+changed)
	}
	if err == nil && list.contest.lasts(now) {
		err = errContest
	}
	a.listFails(err)
	return rest
}

// listFails tells of the fault that err is, and that there is no other one of the list.
func (a *Attacher) listFails(err error) {
	faults := map[pluginFault]error{unlisted: nil, misplaced: nil}
	switch {
	case errors.Is(err, errUnlabelled):
		if a.faults.has(unlisted) { // else checkLabels tells if it lasts: kubelets restart
			faults[unlisted] = err
		}
	case errors.Is(err, errFirst):
		faults[misplaced] = err
	default:
		faults[unlisted] = err
	}
	for kind, err := range faults {
		a.fails(kind, err)
	}
}

// removals is how often a list is read again that other software has written while the plugin was taken out of it.
const removals = 5

// RemovePlugin takes our plugin out of all lists in a folder: pods may start with another than the first.
func RemovePlugin(folder string) (err error) {
	for range removals {
		if err = removePlugin(folder); !errors.Is(err, conflist.ErrReplaced) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("taking the CNI plugin out of the lists: %w", err)
	}
	return nil
}

func removePlugin(folder string) error {
	lists, err := listsWithPlugin(folder)
	for _, list := range lists {
		err = errors.Join(err, list.Remove(cni.Plugin))
	}
	return err
}

// PluginLists returns the files that RemovePlugin takes our plugin out of.
func PluginLists(folder string) (files []string, err error) {
	lists, err := listsWithPlugin(folder)
	for _, list := range lists {
		files = append(files, list.Path)
	}
	return files, err
}

// listsWithPlugin returns the lists in a folder that have our plugin. What cannot be read is in err.
func listsWithPlugin(folder string) ([]conflist.List, error) {
	all, err := conflist.All(folder)
	return slices.DeleteFunc(all, func(list conflist.List) bool { return list.Entry(cni.Plugin) == nil }), err
}
