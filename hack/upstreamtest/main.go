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
	"syscall"

	"github.com/openshift/origin-node/hack/patchtool/branch"
	"github.com/openshift/origin-node/hack/patchtool/tree"
)

const usage = `usage: upstreamtest [BRANCH], at the top of the repository

It compares what the proxiers of the patched and the unpatched tree write to the kernel, byte for byte.
A branch is for example 1.36, or vendored; without one it is all of them.
`

// errDiffers tells that a comparison found something; what it was has been printed.
var errDiffers = errors.New("the patched tree differs from the unpatched one")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	c := &comparison{laid: laidOver(), stdout: os.Stdout}
	err := c.run(ctx, tree.Maker{Patches: "patches", Cache: "_output/patched"}, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

// comparison is one run of a command.
type comparison struct {
	// laid is what is laid over the trees so that they record.
	laid   fs.FS
	stdout io.Writer
	failed error // the first error of writing to stdout
}

func (c *comparison) printf(format string, arguments ...any) {
	if _, err := fmt.Fprintf(c.stdout, format, arguments...); err != nil && c.failed == nil {
		c.failed = fmt.Errorf("print: %w", err)
	}
}

// trees are the two that are compared.
type trees struct {
	branch.Branch
	patched, unpatched *tree.Tree
}

// run compares the trees of the branches that the arguments name.
func (c *comparison) run(ctx context.Context, from tree.Maker, arguments []string) error {
	flags := flag.NewFlagSet("upstreamtest", flag.ContinueOnError)
	flags.Usage = func() { c.printf("%s", usage) }
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() > 1 {
		return fmt.Errorf("invalid arguments %q\n%s", arguments, usage)
	}
	all, err := branch.Load(from.Patches)
	if err != nil {
		return err
	}
	chosen, err := all.Choose(flags.Arg(0))
	if err != nil {
		return err
	}
	var differs error
	for _, b := range chosen {
		both := &trees{Branch: b}
		if both.patched, err = from.Tree(ctx, b, true); err != nil {
			return err
		}
		if both.unpatched, err = from.Tree(ctx, b, false); err != nil {
			return err
		}
		c.printf("%s (%s)\n", b.Name, b.Version)
		switch err := c.identity(ctx, both); {
		case errors.Is(err, errDiffers):
			differs = err // the other branches are still of interest
		case err != nil:
			return fmt.Errorf("%s: %w", b.Name, err)
		}
	}
	return errors.Join(differs, c.failed)
}
