package cmd

import "github.com/spf13/cobra"

// Commands returns the command line, for man pages and completions. Main executes it.
func Commands() *cobra.Command { return newRootCommand() }
