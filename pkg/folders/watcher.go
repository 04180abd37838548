package folders

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/fsnotify/fsnotify"
)

// Watcher watches folders. One that the kernel gives no notifications tells nothing.
type Watcher struct {
	watcher *fsnotify.Watcher // nil if there are no notifications
	names   chan string
	done    chan struct{}
	// seen are the folders as they were when their watch began.
	seen map[string]os.FileInfo
}

// New returns a Watcher that watches nothing yet. With the error, which says why the kernel gives no notifications, it can be used as well.
func New() (*Watcher, error) {
	w := &Watcher{names: make(chan string), done: make(chan struct{}), seen: map[string]os.FileInfo{}}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return w, fmt.Errorf("watching folders: %w", err)
	}
	w.watcher = watcher
	go w.tell()
	return w, nil
}

// tell passes names on until the Watcher is closed, or its notifications end.
func (w *Watcher) tell() {
	for {
		name := ""
		select {
		case event, ok := <-w.watcher.Events:
			if name = event.Name; !ok {
				return
			}
		case _, ok := <-w.watcher.Errors:
			if !ok {
				return
			}
		}
		select {
		case w.names <- name:
		case <-w.done:
			return
		}
	}
}

// Names has the path of each name that changes, and "" where the kernel could not tell which do.
func (w *Watcher) Names() <-chan string { return w.names }

// Follow watches these folders, as they are now, and no others. Errors name those that cannot be watched.
func (w *Watcher) Follow(folders ...string) error {
	if w.watcher == nil {
		return nil
	}
	for _, folder := range w.watcher.WatchList() {
		if !slices.Contains(folders, folder) {
			_ = w.watcher.Remove(folder) // it may be gone
		}
	}
	maps.DeleteFunc(w.seen, func(folder string, _ os.FileInfo) bool { return !slices.Contains(folders, folder) })
	var errs []error
	for _, folder := range folders {
		now, err := os.Stat(folder)
		if was := w.seen[folder]; was != nil && (err != nil || !os.SameFile(was, now)) {
			_ = w.watcher.Remove(folder) // another one has its name
		}
		w.seen[folder] = now
		if err := w.watcher.Add(folder); err != nil {
			errs = append(errs, fmt.Errorf("watching %s: %w", folder, err))
		}
	}
	return errors.Join(errs...)
}

// Close ends the Watcher.
func (w *Watcher) Close() {
	close(w.done)
	if w.watcher != nil {
		_ = w.watcher.Close()
	}
}
