package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/component-base/logs"
)

// ExitConfigChanged is the exit status of a node that ended because its configuration
// changed and is valid, for its service manager to start it anew (EX_TEMPFAIL of
// sysexits.h).
const ExitConfigChanged = 75

const errorPrefix = "error: "

// Main runs the command line and returns the process's exit status: 0, ExitConfigChanged,
// or 1 after an error, which it has printed.
func Main() int {
	defer logs.FlushLogs()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := newRootCommand().ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errConfigChanged):
		return ExitConfigChanged
	}
	fmt.Fprintf(os.Stderr, "%s%v\n", errorPrefix, err)
	return 1
}

func newRootCommand() *cobra.Command {
	// kube-proxy's packages add flags to every command line. They are proxyArguments here.
	pflag.CommandLine = pflag.NewFlagSet("", pflag.ContinueOnError)
	root := &cobra.Command{
		Use:   "openshift",
		Short: "An OpenShift node's service proxy, whose pods leave from their Service's first external IP",
		// Main prints errors, once, and a wrong field needs no list of flags below it.
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(newStartCommand(), newExCommand(), newEgressCommand(), newVersionCommand(), newArgumentsTopic())
	return root
}

// group returns a command that only has other commands.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(commands...)
	return c
}
