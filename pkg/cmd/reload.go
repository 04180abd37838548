package cmd

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/openshift/origin-node/pkg/folders"
)

// errConfigChanged is the reason to end a node whose configuration has changed and is valid.
var errConfigChanged = errors.New("the configuration has changed")

const (
	// settleTime is how long files must stay the same before they are checked: editors write
	// in several steps.
	settleTime = 200 * time.Millisecond
	// recheckInterval is how often files are compared without an event. There is none for a
	// change on a network file system, for a folder on the way that is replaced, and beyond
	// the kernel's limits on watches.
	recheckInterval = time.Minute
)

// configWatch notices when the content of files changes. It watches every folder in which a
// file or a link on the way to it can be replaced, and compares the files once a minute.
type configWatch struct {
	files   []string
	began   fingerprint
	clock   clock.WithTicker
	watcher *folders.Watcher
	// invalid: the files have changed, and validate does not accept them.
	invalid atomic.Bool
}

// newConfigWatch begins to watch files, whose names are absolute. Folders that cannot be
// watched are logged: changes in them are noticed within a minute.
func newConfigWatch(ctx context.Context, files []string, c clock.WithTicker) *configWatch {
	w := &configWatch{files: files, clock: c}
	var err error
	w.watcher, err = folders.New()
	if err = cmp.Or(err, w.follow()); err != nil {
		klog.FromContext(ctx).Error(err, "The configuration's folders cannot all be watched; changes are noticed within the interval", "interval", recheckInterval)
	}
	w.began = fingerprintOf(files)
	return w
}

// follow watches the folders that lead to the files now, and no others.
func (w *configWatch) follow() error {
	var all []string
	for _, file := range w.files {
		all = append(all, foldersTo(file)...)
	}
	return w.watcher.Follow(all...)
}

// foldersTo returns all folders on the way to what file leads to, in any of which a change of a name
// may lead elsewhere: symbolic links are resolved step by step (path_resolution(7)). Several may be the
// same.
func foldersTo(file string) []string {
	const mostLinks = 40 // the kernel follows no more
	var all []string
	path, links := "/", 0
	for rest := strings.Split(file, "/"); len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			path = filepath.Dir(path)
			continue
		}
		if name != "" {
			all = append(all, path)
		}
		next := filepath.Join(path, name)
		target, err := os.Readlink(next)
		if err != nil || name == "" || links == mostLinks {
			path = next // no link, or none that leads anywhere
			continue
		}
		links++
		if filepath.IsAbs(target) {
			path = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return all
}

// wait returns true when the files have changed and validate accepts them, false when ctx ends.
// Errors of validate are logged, once each for a version of the files.
func (w *configWatch) wait(ctx context.Context, validate func(context.Context) error) bool {
	logger := klog.FromContext(ctx)
	recheck := w.clock.NewTicker(recheckInterval)
	defer recheck.Stop()
	seen, rejected := w.began, rejection{version: w.began}
	settled, settling := w.clock.NewTimer(0), true // the files may have changed since newConfigWatch
	defer settled.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-w.watcher.Names():
		case <-recheck.C():
		case <-settled.C():
			settling = false
			if err := w.follow(); err != nil {
				logger.V(2).Info("The configuration's folders cannot all be watched", "err", err)
			}
			now := fingerprintOf(w.files)
			switch {
			case now != seen:
				seen = now // the write may not be complete: compare again
			case now == w.began:
				w.invalid.Store(false)
				continue
			case now == rejected.version && w.clock.Since(rejected.at) < recheckInterval:
				w.invalid.Store(true)
				continue
			default:
				err := validate(ctx)
				if err == nil {
					return true
				}
				if ctx.Err() != nil {
					return false // which has ended the validation
				}
				w.invalid.Store(true)
				if because := err.Error(); now != rejected.version || because != rejected.because {
					logger.Error(err, "The configuration has changed but is not valid; the node continues with the old one. Correct the file")
					rejected.version, rejected.because = now, because
				}
				rejected.at = w.clock.Now()
				continue
			}
		}
		if !settling {
			settling = true
			settled.Reset(settleTime)
		}
	}
}

// rejection is a version of the files that was not valid, and why. It is validated again now and then: it may name a file that comes later.
type rejection struct {
	version fingerprint
	because string
	at      time.Time
}

type fingerprint [sha256.Size]byte

// fingerprintOf returns a hash of the content of files. An unreadable file counts as a content.
func fingerprintOf(files []string) fingerprint {
	hash := sha256.New()
	for _, file := range files {
		content, err := os.ReadFile(file)
		hash.Write(fmt.Appendf(nil, "%q %t %d\n", file, err == nil, len(content)))
		hash.Write(content)
	}
	return fingerprint(hash.Sum(nil))
}

// validateAnew checks the configuration in a new process of the same program: feature gates belong
// to a process and cannot be set twice.
func validateAnew(ctx context.Context, file, manifests string) error {
	args := []string{"ex", "validate", "node-config", file}
	if manifests != "" {
		args = append(args, "--manifests="+manifests)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("it has not ended within a minute"))
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		if message := bytes.TrimSpace(stderr.Bytes()); len(message) > 0 {
			return errors.New(strings.TrimPrefix(string(message), errorPrefix))
		}
		return fmt.Errorf("validating %s: %w", file, cmp.Or(context.Cause(ctx), err))
	}
	return nil
}
