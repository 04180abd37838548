package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/openshift/origin-node/hack/patchtool/tree"
)

// proxiers are the packages that the series changes.
var proxiers = []string{"iptables", "nftables"}

// clusters is how many random clusters are played, each for both IP families.
const clusters = 20

// inputs are what a recording is made of, each with the arguments for the test binary.
var inputs = []struct{ name, argument string }{
	{"upstream's tests", "-test.skip=^TestUpstreamtest"},
	{"random clusters", "-test.run=^TestUpstreamtest"},
}

// recording is what a proxier wrote.
type recording struct {
	name    string // the proxier and the input
	content []byte
}

// identity compares what the proxiers of both trees of a branch write.
func (c *comparison) identity(ctx context.Context, both *trees) error {
	unpatched, err := c.record(ctx, both.unpatched, false)
	if err != nil {
		return err
	}
	for _, r := range unpatched {
		c.printf("  %s: %s\n", r.name, summary(r.content))
	}
	differs := false
	for _, extension := range []bool{false, true} {
		patched, err := c.record(ctx, both.patched, extension)
		if err != nil {
			return err
		}
		how := map[bool]string{false: "without an extension", true: "with an extension"}[extension]
		for i, r := range unpatched {
			if at := firstDifference(r.content, patched[i].content); at > 0 {
				differs = true
				c.printf("  DIFFERS %s, %s, from line %d on:\n    unpatched %s\n    patched   %s\n", r.name, how, at, line(r.content, at), line(patched[i].content, at))
			}
		}
	}
	if !differs {
		c.printf("  byte for byte the same, without and with an extension, which was told of each sync\n")
		return nil
	}
	// Is it the series, or does what the proxiers write vary by itself?
	again, err := c.record(ctx, both.unpatched, false)
	if err != nil {
		return err
	}
	for i, r := range unpatched {
		if at := firstDifference(r.content, again[i].content); at > 0 {
			return fmt.Errorf("%s: two runs of the unpatched tree differ from line %d on: %q and %q; adapt hack/upstreamtest/overlay.go so that they do not",
				r.name, at, line(r.content, at), line(again[i].content, at))
		}
	}
	return errDiffers
}

// firstDifference returns the number of the first line that differs; 0 if none does.
func firstDifference(a, b []byte) int {
	if bytes.Equal(a, b) {
		return 0
	}
	linesA, linesB := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range min(len(linesA), len(linesB)) {
		if !bytes.Equal(linesA[i], linesB[i]) {
			return i + 1
		}
	}
	return min(len(linesA), len(linesB)) + 1
}

// line returns the numbered line of a text, from 1.
func line(text []byte, number int) string {
	lines := strings.Split(string(text), "\n")
	if number > len(lines) {
		return "(nothing)"
	}
	return lines[number-1]
}

// summary counts what is recorded.
func summary(recorded []byte) string {
	of := func(heading string) int { return strings.Count("\n"+string(recorded), "\n=== "+heading) }
	said := fmt.Sprintf("%d proxiers, %d writes", of("proxier\n"), of("restore ")+of("refused\n")+of("transaction\n"))
	if n := of("sync "); n > 0 {
		said += fmt.Sprintf(", %d syncs (%d full, %d failed)", n, of("sync full=true"), of("sync full=true succeeded=false")+of("sync full=false succeeded=false"))
	}
	return fmt.Sprintf("%s, %d bytes, sha256 %.6x", said, len(recorded), sha256.Sum256(recorded))
}

// record runs the tests of a tree's proxiers and returns what they wrote, for each input.
func (c *comparison) record(ctx context.Context, in *tree.Tree, extension bool) ([]recording, error) {
	dir, err := os.MkdirTemp("", "upstreamtest-")
	if err != nil {
		return nil, fmt.Errorf("make a temporary directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	overlay, err := newOverlay(in, dir, c.laid, extension)
	if err != nil {
		return nil, err
	}
	var recordings []recording
	for _, proxier := range proxiers {
		binary := filepath.Join(dir, proxier+".test")
		build := tree.Go(ctx, in.Dir, "test", "-c", "-overlay", overlay, "-o", binary, "./pkg/proxy/"+proxier)
		if output, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("compile the tests of pkg/proxy/%s in %s: %w\n%s", proxier, in.Dir, err, output)
		}
		for i, input := range inputs {
			name := proxier + ", " + input.name
			file := filepath.Join(dir, fmt.Sprint(proxier, i))
			run := exec.CommandContext(ctx, binary, "-test.count=1", "-test.timeout=10m", input.argument)
			run.Dir = filepath.Join(in.Dir, "pkg/proxy", proxier)
			run.Env = append(os.Environ(), "UPSTREAMTEST_RECORD="+file, fmt.Sprintf("UPSTREAMTEST_CLUSTERS=%d", clusters))
			if output, err := run.CombinedOutput(); err != nil {
				return nil, fmt.Errorf("%s, in %s: %w\n%s", name, in.Dir, err, output)
			}
			content, err := os.ReadFile(file)
			if errors.Is(err, os.ErrNotExist) {
				return nil, fmt.Errorf("%s, in %s: nothing was recorded", name, in.Dir)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			recordings = append(recordings, recording{name, content})
		}
	}
	return recordings, nil
}
