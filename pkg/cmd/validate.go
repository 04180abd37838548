package cmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openshift/origin-node/pkg/kubeproxy"
	"github.com/openshift/origin-node/pkg/manifests"
	"github.com/openshift/origin-node/pkg/nodeconfig"
)

func newExCommand() *cobra.Command {
	return group("ex", "Commands that a running node does not need", group("validate", "Check files without running anything", newValidateNodeConfigCommand()))
}

func newValidateNodeConfigCommand() *cobra.Command {
	var folder string
	c := &cobra.Command{
		Use:   "node-config FILE",
		Short: "Check a node's configuration as 'start node' does, without running it",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			config, err := nodeconfig.Load(args[0])
			if err != nil {
				return err
			}
			if _, err := kubeproxy.New(config, kubeproxy.Overrides{Manifests: folder}); err != nil {
				return err
			}
			if folder != "" {
				if _, err := manifests.Load(folder); err != nil {
					return fmt.Errorf("--manifests: %w", err)
				}
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s is valid\n", args[0])
			return err
		},
	}
	c.Flags().StringVar(&folder, "manifests", "", "Check the configuration of a node that is started with this --manifests=DIR, and the files of that folder.")
	return c
}
