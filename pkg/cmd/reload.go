package cmd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	"k8s.io/klog/v2"
)

// errConfigChanged ends a node whose configuration has changed and is valid.
var errConfigChanged = errors.New("the configuration has changed")

// settleTime is how long files must be left alone before they are read: editors write in
// several steps.
const settleTime = 200 * time.Millisecond

// configWatch notices when the content of files changes. It watches their folders, so that
// files that are replaced, and links that are turned, are noticed too.
type configWatch struct {
	files   []string
	began   fingerprint
	watcher *fsnotify.Watcher
}

func newConfigWatch(files []string) (*configWatch, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watching the configuration: %w", err)
	}
	for _, dir := range foldersOf(files) {
		if err := watcher.Add(dir); err != nil {
			return nil, errors.Join(fmt.Errorf("watching %s: %w", dir, err), watcher.Close())
		}
	}
	return &configWatch{files: files, began: fingerprintOf(files), watcher: watcher}, nil
}

// foldersOf returns where files are, and where they really are: behind a link, an edit is
// an event in that folder only.
func foldersOf(files []string) []string {
	var folders []string
	for _, file := range files {
		folders = append(folders, filepath.Dir(file))
		if target, err := filepath.EvalSymlinks(file); err == nil {
			folders = append(folders, filepath.Dir(target))
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

func (w *configWatch) close() { _ = w.watcher.Close() }

// wait returns true when the files have changed and validate accepts them, false when ctx
// ends. What validate does not accept is logged, once for each version of the files.
func (w *configWatch) wait(ctx context.Context, validate func(context.Context) error) bool {
	logger := klog.FromContext(ctx)
	rejected := w.began
	settled := time.NewTimer(0) // a change between the first reading and now counts too
	defer settled.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case err := <-w.watcher.Errors:
			logger.Error(err, "A change of the configuration may have gone unnoticed")
			settled.Reset(settleTime)
		case <-w.watcher.Events:
			settled.Reset(settleTime)
		case <-settled.C:
			now := fingerprintOf(w.files)
			if now == w.began || now == rejected {
				continue
			}
			if err := validate(ctx); err != nil {
				logger.Error(err, "The configuration has changed but is not valid; running on with the old one")
				rejected = now
				continue
			}
			return true
		}
	}
}

type fingerprint [sha256.Size]byte

// fingerprintOf depends on the content of files, and on which of them cannot be read.
func fingerprintOf(files []string) fingerprint {
	hash := sha256.New()
	for _, file := range files {
		content, err := os.ReadFile(file)
		hash.Write(fmt.Appendf(nil, "%q %t %d\n", file, err == nil, len(content)))
		hash.Write(content)
	}
	return fingerprint(hash.Sum(nil))
}

// validateAnew checks the configuration in a process of its own, running the same program:
// feature gates and the like are a process's, and this one is in use.
func validateAnew(ctx context.Context, file, manifests string) error {
	args := []string{"ex", "validate", "node-config", file}
	if manifests != "" {
		args = append(args, "--manifests="+manifests)
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		if message := bytes.TrimSpace(stderr.Bytes()); len(message) > 0 {
			return errors.New(strings.TrimPrefix(string(message), errorPrefix))
		}
		return fmt.Errorf("validating %s: %w", file, err)
	}
	return nil
}
