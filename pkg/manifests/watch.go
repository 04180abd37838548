package manifests

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/fileerror"
)

const (
	// settleTime is how long a folder must be quiet before it is read: an
	// editor or a copy writes a file in several steps.
	settleTime = 100 * time.Millisecond
	// maxSettleTime is how long to wait for a quiet moment at most.
	maxSettleTime = 5 * time.Second
	// recheckInterval is how often the folder is polled. The kernel sends no
	// notifications for a file behind a link, on a network file system, or
	// beyond its limits.
	recheckInterval = 500 * time.Millisecond
)

// A Source holds the last good state of a folder and follows the folder.
type Source struct {
	dir      string
	loader   *loader
	store    *store
	notifier *notifier

	loaded   snapshot        // how the folder looked when it was last read
	reported map[string]bool // the errors of that
}

// Open loads dir and follows it until ctx ends. If the first load fails the
// error is that of Load, and nothing is followed. Later failures are logged,
// and change nothing.
func Open(ctx context.Context, dir string) (*Source, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find folder of manifests: %w", err)
	}
	s := &Source{dir: dir, loader: newLoader(dir), store: newStore(historyLength)}
	// Watched before it is read, so that nothing is missed in between.
	s.notifier = newNotifier(ctx, dir)
	s.loaded = look(dir)
	objects, err := s.loader.load()
	if err == nil {
		err = s.replace(ctx, objects)
	}
	if err != nil {
		s.notifier.close()
		return nil, err
	}
	klog.FromContext(ctx).Info("Following manifests", "dir", dir, "services", len(objects.Services),
		"endpointSlices", len(objects.EndpointSlices), "nodes", len(objects.Nodes), "namespaces", len(objects.Namespaces),
		"serviceCIDRs", len(objects.ServiceCIDRs), "networks", len(objects.Networks))
	go s.follow(ctx)
	return s, nil
}

// settling is a change that may not be complete.
type settling struct {
	since time.Time
	seen  snapshot
}

// follow reads the folder anew after every change, until ctx ends.
func (s *Source) follow(ctx context.Context) {
	defer s.notifier.close()
	recheck := time.NewTicker(recheckInterval)
	defer recheck.Stop()
	timer := time.NewTimer(settleTime)
	timer.Stop()
	var change *settling
	for {
		select {
		case <-ctx.Done():
			return
		case event, ok := <-s.notifier.names():
			if !ok {
				s.notifier.close() // the watcher has failed for good
				continue
			}
			if !s.concerns(event.Name) || change != nil && time.Since(change.since) > maxSettleTime {
				continue
			}
		case err := <-s.notifier.errors():
			klog.FromContext(ctx).V(2).Info("Lost change notifications of the manifests; polling finds the changes", "err", err)
		case <-recheck.C:
			if change != nil || !s.outdated() {
				continue
			}
		case <-timer.C:
			if s.settle(ctx, change) {
				change = nil
				continue
			}
		}
		if change == nil {
			change = &settling{since: time.Now(), seen: look(s.dir)}
		}
		timer.Reset(settleTime)
	}
}

// concerns tells whether a notification about this name may change what is read: a
// manifest, the link that a mounted ConfigMap swaps ("..data"), or the folder.
func (s *Source) concerns(name string) bool {
	base := filepath.Base(name)
	return name == s.dir || filepath.Dir(name) == s.dir && (isManifest(base) || strings.HasPrefix(base, ".."))
}

// outdated tells whether the folder should be read without a notification. An
// invalid one should: look may not see the change that repairs it.
func (s *Source) outdated() bool {
	return len(s.reported) > 0 || !s.loaded.same(look(s.dir))
}

// settle reads the folder if it looks the same as settleTime ago, and takes
// what was read if it still does afterwards: then no file is half-written and
// all files are of one moment. It reports false if it has to be called again.
func (s *Source) settle(ctx context.Context, change *settling) bool {
	late := time.Since(change.since) > maxSettleTime
	now := look(s.dir)
	if !now.same(change.seen) && !late {
		change.seen = now
		return false
	}
	objects, err := s.loader.load()
	if after := look(s.dir); !after.same(now) && !late {
		change.seen = after
		return false
	}
	if !sameFolder(now, s.loaded) {
		s.notifier.renew(ctx)
	}
	s.loaded = now
	if err == nil {
		err = s.replace(ctx, objects)
	}
	s.report(ctx, err)
	return true
}

// replace serves objects instead of those of before.
func (s *Source) replace(ctx context.Context, objects *Objects) error {
	total, err := s.store.replace(objects)
	if err != nil {
		return fileerror.Join([]*Error{{File: s.dir, Err: err}})
	}
	if total != (tally{}) {
		klog.FromContext(ctx).V(2).Info("Manifests changed", "dir", s.dir,
			"added", total.added, "updated", total.updated, "deleted", total.deleted)
	}
	return nil
}

// report logs every new error, and when there are none any more.
func (s *Source) report(ctx context.Context, err error) {
	logger := klog.FromContext(ctx)
	before := s.reported
	s.reported = map[string]bool{}
	for _, e := range fileerror.Split(err) {
		text := e.Error()
		if s.reported[text] = true; !before[text] && len(s.reported) <= fileerror.MaxReported {
			logger.Error(e, "Manifests are broken, their last good state stays", "file", e.File, "line", e.Line)
		}
	}
	if err == nil && len(before) > 0 {
		logger.Info("Manifests are good again", "dir", s.dir)
	}
}

// A notifier has the kernel's notifications about a folder. They only save time,
// so a node works without.
type notifier struct {
	dir     string
	watcher *fsnotify.Watcher // nil if there can be none
}

func newNotifier(ctx context.Context, dir string) *notifier {
	e := &notifier{dir: dir}
	var err error
	if e.watcher, err = fsnotify.NewWatcher(); err != nil {
		e.watcher = nil
		klog.FromContext(ctx).Error(err, "Cannot watch the manifests for changes; polling them instead", "dir", dir, "interval", recheckInterval)
		return e
	}
	e.add(ctx, dir)
	// The folder itself may be a link, or be put in the place of another.
	e.add(ctx, filepath.Dir(dir))
	return e
}

func (e *notifier) add(ctx context.Context, dir string) {
	if err := e.watcher.Add(dir); err != nil {
		klog.FromContext(ctx).V(2).Info("Cannot watch a folder for changes; polling it instead", "dir", dir, "err", err)
	}
}

// renew watches the folder that has the name now.
func (e *notifier) renew(ctx context.Context) {
	if e.watcher != nil {
		_ = e.watcher.Remove(e.dir) // it may be gone
		e.add(ctx, e.dir)
	}
}

// names is never ready without a watcher.
func (e *notifier) names() <-chan fsnotify.Event {
	if e.watcher == nil {
		return nil
	}
	return e.watcher.Events
}

func (e *notifier) errors() <-chan error {
	if e.watcher == nil {
		return nil
	}
	return e.watcher.Errors
}

// close may be called more than once. There are no notifications afterwards.
func (e *notifier) close() {
	if e.watcher != nil {
		_ = e.watcher.Close()
		e.watcher = nil
	}
}
