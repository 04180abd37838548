package cmd

import (
	"fmt"
	"runtime"
	"runtime/debug"

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
		Short: "Print this program's version, and that of Kubernetes in it with its patches",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			out := c.OutOrStdout()
			kubernetes := kubernetesVersion()
			_, err := fmt.Fprintf(out, "openshift %s (commit %s)\nkubernetes %s\n", version, commit, kubernetes)
			for _, patch := range patches.List(kubernetes) {
				if err == nil {
					_, err = fmt.Fprintf(out, "  %s %s\n", patch.Number, patch.Subject)
				}
			}
			if err == nil {
				_, err = fmt.Fprintf(out, "%s %s/%s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH)
			}
			return err
		},
	}
}

// kubernetesVersion returns the version of the module that was built in.
func kubernetesVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == "k8s.io/kubernetes" {
				return module.Version
			}
		}
	}
	return "unknown"
}
