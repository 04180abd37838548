package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/openshift/origin-node/hack/patchtool/branch"
	"github.com/openshift/origin-node/hack/patchtool/tree"
)

const usage = `usage: upstreamtest tests|identity [FLAGS] [BRANCH], at the top of the repository

  tests      run upstream's unit tests on the patched and the unpatched tree and compare the results
  identity   compare what the proxiers of both trees write to the kernel, byte for byte

A branch is for example 1.36, or vendored; without one it is all of them.
`

// errDiffers tells that a comparison found something; what it was has been printed.
var errDiffers = errors.New("the patched tree differs from the unpatched one")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

// comparison is one run of a command.
type comparison struct {
	patches, trees, output string
	// laid is what is laid over the trees so that they record.
	laid           fs.FS
	runs           runs
	stdout, stderr io.Writer
	// failed is the first error of writing the report.
	failed error
}

// report writes to the report.
func (c *comparison) report(format string, arguments ...any) {
	if c.failed == nil {
		_, c.failed = fmt.Fprintf(c.stdout, format, arguments...)
	}
}

// progress tells who waits what is being done.
func (c *comparison) progress(format string, arguments ...any) {
	_, _ = fmt.Fprintf(c.stderr, format, arguments...) // nothing depends on it
}

// run runs the command that the arguments begin with. The report goes to stdout, what the command is
// doing to stderr.
func run(ctx context.Context, arguments []string, stdout, stderr io.Writer) error {
	if len(arguments) == 0 {
		return fmt.Errorf("no command\n%s", usage)
	}
	c := &comparison{laid: laidOver(), runs: runs{alone: 5, whole: 3}, stdout: stdout, stderr: stderr}
	var compare func(context.Context, *trees) error
	switch arguments[0] {
	case "tests":
		compare = c.tests
	case "identity":
		compare = c.identity
	case "help", "-h", "-help", "--help":
		c.report("%s", usage)
		return c.failed
	default:
		return fmt.Errorf("%q is no command\n%s", arguments[0], usage)
	}
	flags := flag.NewFlagSet("upstreamtest "+arguments[0], flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&c.patches, "patches", "patches", "the folder of the series")
	flags.StringVar(&c.trees, "cache", "_output/patched", "where patched trees are kept")
	flags.StringVar(&c.output, "output", "_output/upstream", "where results are kept")
	if err := flags.Parse(arguments[1:]); err != nil {
		return err
	}
	branches, err := c.branches(flags.Args())
	if err != nil {
		return err
	}
	var differs error
	for _, b := range branches {
		both, err := c.make(ctx, b)
		if err != nil {
			return err
		}
		switch err := compare(ctx, both); {
		case errors.Is(err, errDiffers):
			differs = err // the other branches are still of interest
		case err != nil:
			return fmt.Errorf("%s: %w", b.Name, err)
		}
	}
	return errors.Join(differs, c.failed)
}

// branches returns those that the arguments name.
func (c *comparison) branches(arguments []string) (branch.Branches, error) {
	all, err := branch.Load(c.patches)
	switch {
	case err != nil:
		return nil, err
	case len(arguments) > 1:
		return nil, fmt.Errorf("%d arguments, want at most a branch", len(arguments))
	case len(arguments) == 0:
		return all, nil
	}
	return all.Choose(arguments[0])
}

// trees are the two that are compared.
type trees struct {
	branch.Branch
	patched, unpatched *tree.Tree
}

// make makes both trees of a branch, if they are not there.
func (c *comparison) make(ctx context.Context, b branch.Branch) (*trees, error) {
	entries, err := branch.Series(os.DirFS(c.patches), b)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		file, err := filepath.Abs(filepath.Join(c.patches, entry.Path))
		if err != nil {
			return nil, fmt.Errorf("find a patch: %w", err)
		}
		files = append(files, file)
	}
	release := tree.Release{Version: b.Version}
	if release.Module, err = tree.Download(ctx, b.Version); err != nil {
		return nil, err
	}
	if release.Sums, err = branch.Sums(c.patches); err != nil {
		return nil, err
	}
	both := &trees{Branch: b}
	if both.patched, err = tree.Ensure(ctx, c.trees, release, files); err != nil {
		return nil, err
	}
	if both.unpatched, err = tree.Ensure(ctx, c.trees, release, nil); err != nil {
		return nil, err
	}
	return both, nil
}
