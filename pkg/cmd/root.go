package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/component-base/logs"

	"github.com/openshift/origin-node/pkg/kernel"
)

// ExitConfigChanged is the exit status of a node whose configuration has changed and is valid: its
// service manager starts it again (EX_TEMPFAIL of sysexits.h).
const ExitConfigChanged = 75

const errorPrefix = "error: "

// Main runs the command line and returns the process's exit status: 0, ExitConfigChanged, ExitIncomplete, ExitUndecided,
// or 1 after an error, which it has printed.
func Main() int {
	defer logs.FlushLogs()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := commandFor(os.Args).ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errConfigChanged):
		return ExitConfigChanged
	case errors.Is(err, errIncomplete):
		return ExitIncomplete
	case errors.Is(err, errUndecided):
		return ExitUndecided
	}
	fmt.Fprintf(os.Stderr, "%s%s\n", errorPrefix, errorText(err))
	return 1
}

// errorText returns an error for a terminal: what others have written, in the annotation of a Lease for example, may be part of it.
// Its lines stay, because errors that are joined have one each.
func errorText(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		lines[i] = kernel.Printable(line)
	}
	return strings.Join(lines, "\n")
}

// commandFor returns the command line of the name that the program was started under.
func commandFor(args []string) *cobra.Command {
	// kube-proxy's packages add flags to every command line. Here they are proxyArguments.
	pflag.CommandLine = pflag.NewFlagSet("", pflag.ContinueOnError)
	root := newRootCommand
	switch filepath.Base(args[0]) {
	case kubectlPlugin:
		root = newDeskCommand
	case kubectlCompletion:
		root, args = newDeskCommand, slices.Insert(slices.Clone(args), 1, cobra.ShellCompRequestCmd)
	}
	c := root()
	c.SetArgs(args[1:])
	return c
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "openshift",
		Short: "An OpenShift node's service proxy with egress SNAT: pods leave from their Service's first external IP",
		// Main prints errors, and a list of flags does not help after a wrong field.
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(newStartCommand(), newExCommand(), newEgressCommand(), newTunnelCommand(), newVersionCommand(), newArgumentsTopic())
	return root
}

// plain returns a command without arguments.
func plain(use, short, long, example string, run func(*cobra.Command) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long, Example: example, Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error { return run(c) },
	}
}

// group returns a command that has only subcommands.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(commands...)
	return c
}
