package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/openshift/origin-node/hack/patchtool/tree"
)

// proxiers are the packages that the series changes.
var proxiers = []string{"iptables", "nftables"}

// clusters is how many random clusters are played, each for both IP families.
const clusters = 20

// records has what a proxier wrote, by the name of the recording.
type records map[string][]byte

// inputs are what a recording is made of, each with the arguments for the test binary.
var inputs = []struct {
	name      string
	arguments []string
}{
	{"upstream's tests", []string{"-test.skip=^TestUpstreamtest"}},
	{"random clusters", []string{"-test.run=^TestUpstreamtest"}},
}

// identity compares what the proxiers of both trees of a branch write.
func (c *comparison) identity(ctx context.Context, both *trees) error {
	c.report("%s (%s)\n", both.Name, both.Version)
	began := time.Now()
	unpatched, err := c.unpatchedRecords(ctx, both)
	if err != nil {
		return err
	}
	patched, err := c.record(ctx, both.patched, false)
	if err != nil {
		return err
	}
	extended, err := c.record(ctx, both.patched, true)
	if err != nil {
		return err
	}
	differs := false
	for _, proxier := range proxiers {
		for _, input := range inputs {
			name := proxier + ", " + input.name
			c.report("  %s: %s\n", name, summary(unpatched[name]))
			differs = c.differ(name, "without an extension", unpatched, patched) || differs
			differs = c.differ(name, "with an extension", unpatched, extended) || differs
		}
	}
	if differs {
		return errDiffers
	}
	c.report("  byte for byte the same, without and with an extension, which was told of each sync (%s)\n", time.Since(began).Round(time.Second))
	return nil
}

// differ tells whether the patched tree wrote something else, and where first.
func (c *comparison) differ(name, how string, unpatched, patched records) bool {
	at := firstDifference(unpatched[name], patched[name])
	if at == 0 {
		return false
	}
	c.report("  DIFFERS %s, %s, from line %d on:\n    unpatched %s\n    patched   %s\n", name, how, at, line(unpatched[name], at), line(patched[name], at))
	return true
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
func summary(recording []byte) string {
	text := "\n" + string(recording)
	of := func(heading string) int { return strings.Count(text, "\n=== "+heading) }
	said := fmt.Sprintf("%d proxiers", of("proxier\n"))
	if n := of("restore ") + of("refused\n"); n > 0 {
		said += fmt.Sprintf(", %d payloads for iptables-restore", n)
	}
	if n := of("transaction\n"); n > 0 {
		said += fmt.Sprintf(", %d transactions", n)
	}
	if n := of("sync "); n > 0 {
		said += fmt.Sprintf(", %d syncs (%d full, %d in vain)", n, of("sync full=true"), of("sync full=true succeeded=false")+of("sync full=false succeeded=false"))
	}
	return fmt.Sprintf("%s, %d bytes, sha256 %.12s", said, len(recording), sum(recording))
}

func sum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// unpatchedRecords returns those of the unpatched tree. It writes the same each time, so that they are
// kept; the first time it is made sure of that.
func (c *comparison) unpatchedRecords(ctx context.Context, both *trees) (records, error) {
	key, err := c.ownKey()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(c.output, "identity", both.Version+"-"+runtime.Version()+"-"+key)
	if kept, err := load(dir); err == nil {
		return kept, nil
	}
	first, err := c.record(ctx, both.unpatched, false)
	if err != nil {
		return nil, err
	}
	second, err := c.record(ctx, both.unpatched, false)
	if err != nil {
		return nil, err
	}
	for name := range first {
		if at := firstDifference(first[name], second[name]); at != 0 {
			if err := errors.Join(first.save(dir+"-first"), second.save(dir+"-second")); err != nil {
				return nil, err
			}
			return nil, fmt.Errorf("%s: two runs of the unpatched tree differ from line %d on: %q and %q; hack/upstreamtest/overlay.go has to see to it that they do not",
				name, at, line(first[name], at), line(second[name], at))
		}
	}
	return first, first.save(dir)
}

// ownKey changes with whatever decides what is recorded.
func (c *comparison) ownKey() (string, error) {
	var all bytes.Buffer
	fmt.Fprintln(&all, clusters, inputs)
	all.WriteString(overlaySource)
	err := fs.WalkDir(c.laid, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(c.laid, path)
		all.Write(content)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("find what is recorded: %w", err)
	}
	return sum(all.Bytes())[:12], nil
}

// load reads what save wrote.
func load(dir string) (records, error) {
	found := records{}
	for _, proxier := range proxiers {
		for _, input := range inputs {
			name := proxier + ", " + input.name
			content, err := os.ReadFile(filepath.Join(dir, fileName(name)))
			if err != nil {
				return nil, err
			}
			found[name] = content
		}
	}
	return found, nil
}

func (r records) save(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("keep the records: %w", err)
	}
	for name, content := range r {
		if err := os.WriteFile(filepath.Join(dir, fileName(name)), content, 0o600); err != nil {
			return fmt.Errorf("keep the records: %w", err)
		}
	}
	return nil
}

func fileName(name string) string {
	return strings.NewReplacer(", ", "-", " ", "-", "'", "").Replace(name)
}

// record runs the tests of a tree's proxiers and returns what they wrote.
func (c *comparison) record(ctx context.Context, in *tree.Tree, extension bool) (records, error) {
	c.progress("  recording %s, extension=%t\n", in.Dir, extension)
	dir, err := os.MkdirTemp("", "upstreamtest-")
	if err != nil {
		return nil, fmt.Errorf("make a temporary directory: %w", err)
	}
	defer func() {
		_ = os.RemoveAll(dir) // a temporary directory; what stays is nobody's harm
	}()
	over, err := newOverlay(in, dir, c.laid, extension)
	if err != nil {
		return nil, err
	}
	overlayFile, err := over.file()
	if err != nil {
		return nil, err
	}
	found := records{}
	for _, proxier := range proxiers {
		binary := filepath.Join(dir, proxier+".test")
		build := tree.Go(ctx, in.Dir, "test", "-c", "-overlay", overlayFile, "-o", binary, "./pkg/proxy/"+proxier)
		if output, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("compile the tests of pkg/proxy/%s in %s: %w\n%s", proxier, in.Dir, err, output)
		}
		for _, input := range inputs {
			recording := filepath.Join(dir, "record")
			run := exec.CommandContext(ctx, binary, append([]string{"-test.count=1", "-test.timeout=10m"}, input.arguments...)...)
			run.Dir = filepath.Join(in.Dir, "pkg/proxy", proxier)
			run.Env = append(os.Environ(), "UPSTREAMTEST_RECORD="+recording, fmt.Sprintf("UPSTREAMTEST_CLUSTERS=%d", clusters))
			if output, err := run.CombinedOutput(); err != nil {
				return nil, fmt.Errorf("%s, pkg/proxy/%s in %s: %w\n%s", input.name, proxier, in.Dir, err, last(output, 60))
			}
			content, err := os.ReadFile(recording)
			if err != nil {
				return nil, fmt.Errorf("%s, pkg/proxy/%s in %s recorded nothing: %w", input.name, proxier, in.Dir, err)
			}
			found[proxier+", "+input.name] = content
			if err := os.Remove(recording); err != nil {
				return nil, fmt.Errorf("remove a recording: %w", err)
			}
		}
	}
	return found, nil
}

// last returns the last lines of a text.
func last(text []byte, lines int) []byte {
	all := bytes.Split(text, []byte("\n"))
	return bytes.Join(all[max(0, len(all)-lines):], []byte("\n"))
}
