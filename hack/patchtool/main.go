package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const usage = `usage: patchtool COMMAND [FLAGS] [ARGUMENTS], at the top of the repository

  verify                 prove that the series holds on every supported branch
  rebase VERSION         try the series on a release, and write it as it is there
  review FROM TO         tell a reviewer what a change of releases means for the series
  tree BRANCH|VERSION    make a patched tree and print its directory
  go BRANCH VERB ...     run go on our own packages, against a branch's patched tree

patchtool COMMAND -h lists the flags.
`

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

// run runs the command that the arguments begin with. What was asked for goes to stdout, what the
// command line is like to stderr.
func run(ctx context.Context, arguments []string, stdout, stderr io.Writer) error {
	root, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the repository: %w", err)
	}
	p := &project{root: root, patches: "patches", cache: "_output/patched", stdout: stdout, stderr: stderr}
	return p.command(ctx, arguments)
}

func (p *project) command(ctx context.Context, arguments []string) error {
	if len(arguments) == 0 {
		return fmt.Errorf("no command\n%s", usage)
	}
	flags := flag.NewFlagSet("patchtool "+arguments[0], flag.ContinueOnError)
	flags.SetOutput(p.stderr)
	flags.StringVar(&p.patches, "patches", p.patches, "the folder of the series")
	flags.StringVar(&p.cache, "cache", p.cache, "where patched trees are kept")
	var command func(context.Context, []string) error
	switch arguments[0] {
	case "verify":
		command = p.verifyCommand(flags)
	case "rebase":
		command = p.rebaseCommand(flags)
	case "review":
		command = p.reviewCommand(flags)
	case "tree":
		command = p.treeCommand(flags)
	case "go":
		command = p.goCommand(flags)
	case "help", "-h", "-help", "--help":
		p.printf("%s", usage)
		return p.unwritten
	default:
		return fmt.Errorf("%q is no command\n%s", arguments[0], usage)
	}
	if err := flags.Parse(arguments[1:]); err != nil {
		return err
	}
	if err := command(ctx, flags.Args()); err != nil {
		return err
	}
	return p.unwritten
}
