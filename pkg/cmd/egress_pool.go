package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/wake"
)

const egressPoolLong = `Lists the nodes that egress IPs are put on (proxyArguments.egress-snat-assign-cidrs and
egress-snat-assign-nodes), as this node sees them. Run it on one of these nodes.

STATE is live; draining (it gives its addresses to others); dead (it gives no sign of life; its kernel may
still serve its addresses); leaving (it is not in the pool any more, and gives its addresses to others); or unknown (nothing was ever
heard of it). ADDRESSES is the number of addresses that it has. NETWORKS are its subnets: it can hold
addresses in them. Subnets that are down are in parentheses.

Below the table are the addresses that no live node has, and why.`

// drainPoll is how often a drain looks whether it is over.
const drainPoll = 100 * time.Millisecond

func newEgressPoolCommand(o *egressOptions) *cobra.Command {
	c := plain("pool", "List the nodes that egress IPs are put on", egressPoolLong, "", func(c *cobra.Command) error {
		if err := o.checkOutput(); err != nil {
			return err
		}
		source, err := o.source()
		if err != nil {
			return err
		}
		pool, err := source.Pool(c.Context())
		if err != nil {
			return err
		}
		return cmp.Or(tellLeftOut(c.ErrOrStderr(), pool.LeftOut), o.printPool(c.OutOrStdout(), pool), incomplete(pool.LeftOut))
	})
	o.addOutput(c)
	return c
}

func newEgressDrainCommand(o *egressOptions) *cobra.Command {
	var timeout time.Duration
	var untilRestart bool
	c := plain("drain", "Give this node's egress IPs to other nodes", `Moves each egress IP that the pool has put on this node to another node of the pool. Connections continue, with two exceptions that
are reset: connections whose port was changed by SNAT, and all TCP connections where the kernel's nf_conntrack_tcp_loose is 0.
This node then takes no egress IPs until 'openshift egress undrain', --cleanup or a reboot.

The command ends when the node has no egress IP of the pool left. If it still has some after --timeout,
the exit status is 1. These stay here until another node takes them.`, "", func(c *cobra.Command) error { return o.drain(c, !untilRestart, timeout) })
	c.Flags().DurationVar(&timeout, "timeout", 30*time.Second, "How long to wait.")
	c.Flags().BoolVar(&untilRestart, "until-restart", false, "The drain ends when the node's process starts again. The unit's ExecStop uses it.")
	return c
}

func newEgressUndrainCommand(o *egressOptions) *cobra.Command {
	return plain("undrain", "Let this node take egress IPs again", `Ends 'openshift egress drain'. Addresses that the node has handed over do not come back. It gets new
addresses, and those of nodes that fail or are drained.`, "", func(c *cobra.Command) error {
		_, err := o.client().Undrain(c.Context())
		return err
	})
}

func (o *egressOptions) drain(c *cobra.Command, remember bool, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(c.Context(), timeout)
	defer cancel()
	pool, err := o.client().Drain(ctx, remember)
	if err != nil {
		return err
	}
	first, err := pool.Own()
	for own := first; ; own, err = pool.Own() {
		if err != nil {
			return err
		}
		if gaveAllAway(own) {
			_, err := fmt.Fprintf(c.OutOrStdout(), "this node has no egress IPs of the pool any more; it had %d\n", len(first.Held))
			return err
		}
		if !wake.Sleep(ctx.Done(), drainPoll) {
			if c.Context().Err() != nil {
				return fmt.Errorf("interrupted: this node still has %s, and goes on giving them away; 'openshift egress undrain' ends that", kernel.Join(own.Held, ", "))
			}
			return fmt.Errorf("after %s this node still has %s, because no other node of the pool has taken them; 'openshift egress pool' shows whether there is a majority, and which nodes have a subnet for them", timeout, kernel.Join(own.Held, ", "))
		}
		next, err := o.client().Pool(ctx)
		if err == nil {
			pool = next
		} else if ctx.Err() == nil {
			return err
		}
	}
}

// gaveAllAway tells whether a node has given all addresses away, and takes none. One that leaves the pool does not say that
// it is drained.
func gaveAllAway(m status.PoolMember) bool {
	return (m.State == status.Draining || m.State == status.Leaving) && len(m.Held) == 0
}

func (o *egressOptions) printPool(w io.Writer, pool status.Pool) error {
	if o.output == asJSON || o.output == asYAML {
		return printDocument(w, poolDocument(pool), o.output, false, true)
	}
	if pool.FromAPI {
		return printPoolFromAPI(w, pool)
	}
	rows := [][]string{{"NODE", "STATE", "ADDRESSES", "NETWORKS"}}
	for _, m := range pool.Members {
		var networks []string
		for _, n := range m.Networks {
			text := n.Prefix.String()
			if !n.Up {
				text = "(" + text + ")"
			}
			networks = append(networks, text)
		}
		rows = append(rows, []string{m.Name, m.State, strconv.Itoa(len(m.Held)), orNone(strings.Join(networks, ","))})
	}
	t := table{out: w}
	if err := t.write(rows...); err != nil {
		return err
	}
	majority := "a majority: egress IPs of failed nodes are moved"
	if !pool.Majority {
		majority = "no majority: egress IPs of failed nodes are not moved"
	}
	var lines []string
	if pool.Problem != "" {
		lines = append(lines, "warning: "+pool.Problem)
	}
	lines = append(lines, fmt.Sprintf("%d of %d nodes are live, %s.", pool.Votes, pool.Of, majority))
	for _, u := range pool.Unheld {
		lines = append(lines, fmt.Sprintf("%s has been on no live node for %s%s.", u.IP, age(u.Since, time.Now()), because(u)))
	}
	return printLines(w, "", append([]string{""}, lines...))
}

// poolDocument returns what JSON and YAML have of a pool: of one that no node told of, what is known.
func poolDocument(pool status.Pool) any {
	if !pool.FromAPI {
		return pool
	}
	return struct {
		Members []status.PoolMember    `json:"members"`
		Unheld  []status.UnheldAddress `json:"unheld"`
		LeftOut []string               `json:"leftOut,omitempty"`
	}{pool.Members, pool.Unheld, pool.LeftOut}
}

// printPoolFromAPI prints what Leases tell of the pool.
func printPoolFromAPI(w io.Writer, pool status.Pool) error {
	rows := [][]string{{"NODE", "STATE", "ADDRESSES"}}
	for _, m := range pool.Members {
		rows = append(rows, []string{m.Name, m.State, strconv.Itoa(len(m.Held))})
	}
	var err error
	var lines []string
	if len(pool.Members) == 0 {
		lines = append(lines, asFarAsRead("no Node is in the pool (proxyArguments.egress-snat-assign-nodes)", pool.LeftOut))
	} else {
		t := table{out: w}
		err = t.write(rows...)
	}
	for i, u := range pool.Unheld {
		if i == 0 {
			lines = append(lines, "")
		}
		lines = append(lines, fmt.Sprintf("No live node announces %s.", u.IP))
	}
	return errors.Join(err, printLines(w, "", lines))
}

// because says why no live node has an address, if it is known.
func because(u status.UnheldAddress) string {
	switch {
	case u.UsedBy != "" && u.Lost != "":
		return fmt.Sprintf(": the process on %s is dead, and a host answers for it, probably that node: %s", u.Lost, u.UsedBy)
	case u.UsedBy != "":
		return ": another host has it, " + u.UsedBy
	case len(u.Why) > 0:
		var whys []string
		for _, name := range slices.Sorted(maps.Keys(u.Why)) {
			whys = append(whys, name+": "+u.Why[name])
		}
		return " (" + strings.Join(whys, "; ") + ")"
	}
	return ""
}
