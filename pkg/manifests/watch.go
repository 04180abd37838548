package manifests

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/fileerror"
	"github.com/openshift/origin-node/pkg/folders"
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
	dir     string
	loader  *loader
	store   *store
	watcher *folders.Watcher

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
	if s.watcher, err = folders.New(); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot watch the manifests for changes; polling them instead", "dir", dir, "interval", recheckInterval)
	}
	s.watch(ctx)
	s.loaded = look(dir)
	objects, err := s.loader.load()
	if err == nil {
		err = s.replace(ctx, objects)
	}
	if err != nil {
		s.watcher.Close()
		return nil, err
	}
	klog.FromContext(ctx).Info("Following manifests", "dir", dir, "services", len(objects.Services),
		"endpointSlices", len(objects.EndpointSlices), "nodes", len(objects.Nodes), "namespaces", len(objects.Namespaces),
		"serviceCIDRs", len(objects.ServiceCIDRs), "networks", len(objects.Networks))
	go s.follow(ctx)
	return s, nil
}

// watch has the kernel tell of changes in the folder that has the name now, and of the folder: it may be a link, or be put in the place of
// another.
func (s *Source) watch(ctx context.Context) {
	if err := s.watcher.Follow(s.dir, filepath.Dir(s.dir)); err != nil {
		klog.FromContext(ctx).V(2).Info("Cannot watch a folder for changes; polling it instead", "err", err)
	}
}

// settling is a change that may not be complete.
type settling struct {
	since time.Time
	seen  snapshot
}

// follow reads the folder anew after every change, until ctx ends.
func (s *Source) follow(ctx context.Context) {
	defer s.watcher.Close()
	recheck := time.NewTicker(recheckInterval)
	defer recheck.Stop()
	timer := time.NewTimer(settleTime)
	timer.Stop()
	var change *settling
	for {
		select {
		case <-ctx.Done():
			return
		case name := <-s.watcher.Names():
			if !s.concerns(name) || change != nil && time.Since(change.since) > maxSettleTime {
				continue
			}
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
// manifest, the link that a mounted ConfigMap swaps ("..data"), or the folder. It is "" if
// nobody knows the name.
func (s *Source) concerns(name string) bool {
	base := filepath.Base(name)
	return name == "" || name == s.dir || filepath.Dir(name) == s.dir && (isManifest(base) || strings.HasPrefix(base, ".."))
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
		s.watch(ctx)
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
