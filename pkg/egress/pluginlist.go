package egress

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/cni"
	"github.com/openshift/origin-node/pkg/egress/conflist"
)

// pluginList keeps our plugin in the list of plugins that the container runtime uses, or tells if it is missing there:
// network plugins write their list anew when they are updated, and ours is lost.
type pluginList struct {
	folder string
	// plugins is the folder with our plugin, if it is to be put into the list; else empty.
	plugins string
	// entry is the one to put there: the one that was there last.
	entry json.RawMessage
	// expected tells whether the plugin has been in the list.
	expected func() bool
	seen     bool
}

func newPluginList(logger klog.Logger, config Attaching, expected func() bool) *pluginList {
	entry := map[string]string{"type": cni.Plugin}
	if config.Socket != attachments.DefaultSocket {
		entry["socket"] = config.Socket
	}
	encoded, err := json.Marshal(entry)
	if err != nil {
		logger.Error(err, "The CNI plugin is not kept in the list")
	}
	return &pluginList{folder: config.Lists, plugins: config.Install, entry: encoded, expected: expected}
}

// look returns the file that it has put the plugin into, or why the plugin is missing. Nothing is missing that nobody
// has asked for.
func (l *pluginList) look() (changed string, missing error) {
	list, err := conflist.Find(l.folder)
	if err == nil {
		if entry := list.Entry(cni.Plugin); entry != nil {
			l.entry, l.seen = entry, true
			return "", nil
		}
	}
	switch {
	case l.plugins == "" && !l.seen && !l.expected():
		return "", nil
	case err != nil:
		return "", err
	case l.plugins == "":
		return "", fmt.Errorf("%s does not have it; other software has probably written the file anew. Put {\"type\": %q} at the end of its plugins, or set egress-snat-cni-install; to do without it, set egress-snat-cni-conf-dir to nothing", list.Path, cni.Plugin)
	}
	return list.Path, l.put(list)
}

// put puts the plugin at the end of a list, if pods can start with it.
func (l *pluginList) put(list conflist.List) error {
	plugin := filepath.Join(l.plugins, cni.Plugin)
	switch info, err := os.Stat(plugin); {
	case err != nil:
		return fmt.Errorf("it is not put into %s: %w; 'make install-cni' installs it", list.Path, err)
	case info.Mode()&0o111 == 0:
		return fmt.Errorf("it is not put into %s: %s is not executable", list.Path, plugin)
	case !slices.Contains(cni.Versions, list.Version):
		return fmt.Errorf("it is not put into %s: the list has the cniVersion %q; the plugin knows %v", list.Path, list.Version, cni.Versions)
	}
	return list.Append(l.entry)
}

const (
	// listPeriod is how often the list is looked at without an event: its folder may not be there yet.
	listPeriod = 2 * time.Second
	// listRest is how long to wait after a change, so that no two programs write it against each other all the time.
	listRest = 200 * time.Millisecond
)

// followList keeps our plugin in the list, or tells if it is missing, until the context ends. It stays there then.
func (e *Extension) followList() {
	list := newPluginList(e.logger, e.config.Attaching, func() bool { return len(e.attacher.store.All()) > 0 })
	events, end := watchFolder(e.logger, list.folder)
	defer end()
	for {
		event := events() // of what happens from now on
		changed, missing := list.look()
		if errors.Is(missing, conflist.ErrReplaced) {
			continue // what is there now is the other program's
		}
		e.pluginFails(unlisted, missing)
		rest := time.Duration(0)
		if changed != "" && missing == nil {
			rest = listRest
			listWrites.WithLabelValues().Inc()
			e.logger.Info("Put the CNI plugin into the list of plugins", "file", changed)
			e.events.tell(pluginListed, "The CNI plugin "+cni.Plugin+" was put into "+changed)
		}
		select {
		case <-e.ctx.Done():
			return
		case <-time.After(rest):
		}
		select {
		case <-e.ctx.Done():
			return
		case <-event:
		case <-time.After(listPeriod):
		}
	}
}

// watchFolder returns what gives the events of a folder, nil as long as it cannot be watched, and what ends the watch.
func watchFolder(logger klog.Logger, folder string) (events func() <-chan fsnotify.Event, end func()) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		logger.Error(err, "The list of CNI plugins cannot be watched, so it is looked at now and then", "period", listPeriod)
		return func() <-chan fsnotify.Event { return nil }, func() {}
	}
	return func() <-chan fsnotify.Event {
		_ = watcher.Add(folder) // it may be missing, or be another one now
		return watcher.Events
	}, func() { _ = watcher.Close() }
}

// RemovePlugin takes our plugin out of the list in a folder.
func RemovePlugin(folder string) error {
	list, err := conflist.Find(folder)
	switch {
	case errors.Is(err, conflist.ErrNone):
		return nil
	case err != nil:
		return fmt.Errorf("taking the CNI plugin out of the list: %w", err)
	case list.Entry(cni.Plugin) == nil:
		return nil
	}
	return list.Remove(cni.Plugin)
}
