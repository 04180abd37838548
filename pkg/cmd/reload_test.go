package cmd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

// watchedChain is a file behind two links, as ConfigMaps and administrators make them:
// etc/config leads to middle/link, which leads to 1/config.
type watchedChain struct {
	*testing.T
	dir string
}

func newWatchedChain(t *testing.T) watchedChain {
	c := watchedChain{t, t.TempDir()}
	for _, name := range []string{"etc", "middle", "1", "2"} {
		c.must(os.Mkdir(c.path(name), 0o755))
	}
	c.write("1/config", "first")
	c.write("2/config", "second")
	c.must(os.Symlink("../1/config", c.path("middle/link")))
	c.must(os.Symlink(c.path("middle/link"), c.path("etc/config")))
	return c
}

func (c watchedChain) path(name string) string { return filepath.Join(c.dir, name) }

func (c watchedChain) must(err error) {
	c.Helper()
	if err != nil {
		c.Error(err)
	}
}

func (c watchedChain) write(name, content string) {
	c.must(os.WriteFile(c.path(name), []byte(content), 0o600))
}

// turn makes the link in the middle lead to 2/config.
func (c watchedChain) turn() {
	c.must(os.Symlink("../2/config", c.path("middle/new")))
	c.must(os.Rename(c.path("middle/new"), c.path("middle/link")))
}

// notices makes changes, each when the watch has noticed the one before and no event of that
// is left, and fails the test if the last one is not noticed in time.
func (c watchedChain) notices(clk clock.WithTicker, changes ...func()) {
	c.Helper()
	w := newConfigWatch(c.Context(), []string{c.path("etc/config")}, clk)
	defer w.watcher.Close()
	ctx, cancel := context.WithTimeout(c.Context(), 20*time.Second)
	defer cancel()
	// The first change is noticed without its events, which the second leaves behind.
	c.write("etc/config", "one")
	changes = append([]func(){func() { c.write("etc/config", "two") }}, changes...)
	if !w.wait(ctx, func(context.Context) error {
		if len(changes) == 0 {
			return nil
		}
		changes[0]()
		changes = changes[1:]
		return errors.New("not valid yet")
	}) {
		c.Errorf("a change was not noticed, and %d were not made", len(changes))
	}
}

func TestConfigWatch_FileBehindATurnedLink(t *testing.T) {
	c := newWatchedChain(t)
	c.notices(clock.RealClock{}, c.turn, func() { c.write("2/config", "mended") })
}

func TestConfigWatch_LinksInACircle(t *testing.T) {
	c := newWatchedChain(t)
	circle := func() {
		c.must(os.Symlink("../etc/config", c.path("middle/new")))
		c.must(os.Rename(c.path("middle/new"), c.path("middle/link")))
	}
	c.notices(clock.RealClock{}, circle, c.turn)
}

// TestConfigWatch_NoEvent replaces a folder that is no link: those who watch the folders below
// get no event of that.
func TestConfigWatch_NoEvent(t *testing.T) {
	c := newWatchedChain(t)
	for _, name := range []string{"upper", "upper/2", "other"} {
		c.must(os.Mkdir(c.path(name), 0o755))
	}
	c.must(os.Rename(c.path("2"), c.path("other/2")))
	c.write("upper/2/config", "third")
	c.must(os.Remove(c.path("middle/link")))
	c.must(os.Symlink("../upper/2/config", c.path("middle/link")))
	c.notices(fastClock{}, func() {
		c.must(os.Rename(c.path("upper"), c.path("away")))
		c.must(os.Rename(c.path("other"), c.path("upper")))
	})
}

// TestConfigWatch_NamedFileComesLater: a version that was not valid may be so later, for it names files that are not watched.
func TestConfigWatch_NamedFileComesLater(t *testing.T) {
	c := newWatchedChain(t)
	w := newConfigWatch(t.Context(), []string{c.path("etc/config")}, laterClock{})
	defer w.watcher.Close()
	c.write("etc/config", "names a certificate")
	asked := 0
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if !w.wait(ctx, func(context.Context) error {
		if asked++; asked < 3 {
			return errors.New("no such certificate")
		}
		return nil
	}) {
		t.Error("it stays invalid")
	}
}

// TestConfigWatch_EndsWhileItValidates: a validation that ends with the node says nothing about the file.
func TestConfigWatch_EndsWhileItValidates(t *testing.T) {
	c := newWatchedChain(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	w := newConfigWatch(ctx, []string{c.path("etc/config")}, clock.RealClock{})
	defer w.watcher.Close()
	c.write("etc/config", "new")
	asked := false
	if w.wait(ctx, func(ctx context.Context) error {
		asked = true
		cancel()
		return ctx.Err()
	}) || !asked || w.invalid.Load() {
		t.Errorf("asked %t, invalid %t; want a wait that ends with the context", asked, w.invalid.Load())
	}
}

// laterClock is a fastClock by which everything is long ago.
type laterClock struct{ fastClock }

func (laterClock) Since(time.Time) time.Duration { return time.Hour }

// fastClock is a clock whose tickers tick all the time.
type fastClock struct{ clock.RealClock }

func (fastClock) NewTicker(time.Duration) clock.Ticker {
	return clock.RealClock{}.NewTicker(time.Millisecond)
}
