package cmd

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openshift/origin-node/patches"
)

// version and commit are set by the Makefile through the linker.
var (
	version = "unknown"
	commit  = "unknown"
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print this program's version, and those of Kubernetes and other patched modules in it with their patches",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var text strings.Builder
			fmt.Fprintf(&text, "openshift %s (commit %s)\n", version, commit)
			for _, series := range patches.List(moduleVersion(patches.Kubernetes)) {
				name := series.Module
				if name == patches.Kubernetes {
					name = "kubernetes"
				}
				fmt.Fprintf(&text, "%s %s\n", name, moduleVersion(series.Module))
				for _, patch := range series.Patches {
					fmt.Fprintf(&text, "  %s %s\n", patch.Number, patch.Subject)
				}
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "%s%s %s/%s\n", &text, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// moduleVersion returns the version of a module that was built in.
func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == path {
				return module.Version
			}
		}
	}
	return "unknown"
}
