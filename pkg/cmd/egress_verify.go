package cmd

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openshift/origin-node/pkg/egress/status"
)

const egressVerifyLong = `Compares the kernel with the node's plan, in each IP family that the node serves: the rules,
and what steers packets to the nodes that have their egress IPs (the device steer0, its
neighbours and forwarding entries, ip rules, routes, sysctls and the nftables table).
Prints one line for each difference, and exits with status 1 if there is any. A line that
begins with "warning:" is not a difference but something to check, for example: other software
may drop steered packets, a pod has started without the CNI plugin, the source addresses of
pods' packets are not checked, the node has no key by which others know it, or rules of another
proxy mode are left.

The node itself checks twice in each sync period, and repairs what it finds. It reads all rules
every ten minutes, or when it sees that the kernel's tables have changed. It repairs at once what
this command finds.`

const egressVerifyExample = `  # In a script
  openshift egress verify >/dev/null || logger -p daemon.warning 'egress SNAT rules differ from the plan'`

func newEgressVerifyCommand(o *egressOptions) *cobra.Command {
	return plain("verify", "Compare the rules and the steering in the kernel with the plan", egressVerifyLong, egressVerifyExample, o.verify)
}

func (o *egressOptions) verify(c *cobra.Command) error {
	byFamily, err := o.client().Verify(c.Context())
	if err != nil {
		return err
	}
	return printDifferences(c, byFamily)
}

// printDifferences prints what differs by IP family, and returns an error if anything does.
func printDifferences(c *cobra.Command, byFamily map[string][]string) error {
	n := 0
	for _, family := range slices.Sorted(maps.Keys(byFamily)) {
		lines := byFamily[family]
		differences := 0
		for _, line := range lines {
			if !strings.HasPrefix(line, status.Warning) {
				differences++
			}
		}
		if n += differences; differences == 0 {
			lines = append([]string{"in agreement"}, lines...)
		}
		if err := printLines(c.OutOrStdout(), family+": ", lines); err != nil {
			return err
		}
	}
	switch n {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("1 difference between the plan and the kernel; the node repairs it now, or logs why it cannot")
	}
	return fmt.Errorf("%d differences between the plan and the kernel; the node repairs them now, or logs why it cannot", n)
}
