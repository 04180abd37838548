package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/origin-node/pkg/egress/status"
)

const egressTopLong = `Shows the flows of this node's egress IPs, the busiest first, every two seconds (--delay) until q or Ctrl-C.
For each refresh the node dumps its conntrack table.

FLOWS is the number of tracked flows that leave from the address on this node. RECEIVED counts those of them
that belong to pods on other nodes. SENT counts flows of this node's pods that leave from another node, which
has the address. NEW/S is how many of FLOWS and SENT begin in a second; flows that begin and end between two
refreshes do not count. PORTS is how many of the 64512 ports are in use towards the BUSIEST DESTINATION: new
flows there become slow from 75 %, and are dropped from 95 %. With egress-snat-port-blocks, PORTS is of the
4096 ports that pods without a block share where a larger part of these is in use, BLOCKS is how many blocks
of source ports this node's pods have, and SHARING how many of its pods share ports, including pods that
started without the CNI plugin. If the node has a fast path, the first line also shows how many packets a
second of all pods take it.`

const egressTopExample = `  # Live, until q
  openshift egress top

  # A log of one minute
  openshift egress top --batch --delay=10 --count=6`

// leastDelay is that of a node between two looks.
const leastDelay = 500 * time.Millisecond

// topOptions are the flags of top.
type topOptions struct {
	*egressOptions
	batch bool
	delay string
	count int
}

func newEgressTopCommand(common *egressOptions) *cobra.Command {
	o := &topOptions{egressOptions: common}
	c := plain("top", "Show the flows of egress IPs, live", egressTopLong, egressTopExample, o.run)
	c.Flags().BoolVarP(&o.batch, "batch", "b", false, "Print one table after another, for a log or a pipe.")
	c.Flags().StringVarP(&o.delay, "delay", "d", "2", "The time between two refreshes, in seconds or for example 1500ms; at least 0.5.")
	c.Flags().IntVarP(&o.count, "count", "n", 0, "How many tables to show; 0 for no end.")
	return c
}

func (o *topOptions) run(c *cobra.Command) error {
	delay, err := parseDelay(o.delay)
	switch {
	case err != nil:
		return err
	case o.count < 0:
		return fmt.Errorf("--count: invalid value %d: expected a number from 0", o.count)
	case o.batch:
		return o.follow(c.Context(), delay, func(u status.Usage) error { return printBatch(c.OutOrStdout(), u) })
	}
	in, readable := c.InOrStdin().(*os.File)
	out, writable := c.OutOrStdout().(*os.File)
	if !readable || !writable {
		return errNoTerminal
	}
	s, err := openScreen(in, out)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(c.Context())
	defer stop()
	go s.watch(ctx, stop)
	return errors.Join(o.follow(ctx, delay, func(u status.Usage) error { return s.show(topLines(u, delay)) }), s.close())
}

var errNoTerminal = errors.New("standard input and output are not a terminal: use --batch")

// parseDelay parses seconds, or a duration.
func parseDelay(text string) (time.Duration, error) {
	delay, err := time.ParseDuration(text)
	if seconds, notSeconds := strconv.ParseFloat(text, 64); notSeconds == nil {
		delay, err = time.Duration(seconds*float64(time.Second)), nil
	}
	if err != nil || delay < leastDelay || delay > time.Hour {
		return 0, fmt.Errorf("--delay: invalid value %q: expected seconds, or a duration such as 1500ms, from 0.5 seconds to an hour", text)
	}
	return delay, nil
}

// follow shows a look after another until ctx ends.
func (o *topOptions) follow(ctx context.Context, delay time.Duration, show func(status.Usage) error) error {
	ticks := time.NewTicker(delay)
	defer ticks.Stop()
	for n := 1; ; n++ {
		usage, err := o.client().Usage(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			err = show(usage)
		}
		if err != nil || n == o.count {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

// printBatch prints a look, and an empty line after it.
func printBatch(w io.Writer, u status.Usage) error {
	lines := slices.Concat([]string{u.Time.Format(time.RFC3339) + "  " + summaryOf(u)}, usageLines(u), []string{""})
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// topLines are what a terminal shows of a look.
func topLines(u status.Usage, delay time.Duration) []string {
	title := fmt.Sprintf("%s  %s   every %s, q to quit", u.Time.Local().Format(time.TimeOnly), summaryOf(u), delay)
	return slices.Concat([]string{title, ""}, usageLines(u))
}

// summaryOf says in short how much there is.
func summaryOf(u status.Usage) string {
	flows, sent, fresh := 0, 0, 0
	for _, a := range u.Addresses {
		flows, sent, fresh = flows+a.Flows, sent+a.Sent, fresh+a.New
	}
	addresses := "egress IPs"
	if len(u.Addresses) == 1 {
		addresses = "egress IP"
	}
	summary := fmt.Sprintf("%s: %d %s, %d flows, %d sent to other nodes, %s new/s", u.Node, len(u.Addresses), addresses, flows, sent, perSecond(fresh, u))
	if u.FastPath != nil {
		summary += fmt.Sprintf(", fast path: %s packets/s", perSecond(u.FastPath.Packets, u))
	}
	return summary
}

// perSecond returns a rate; - as long as there was one look only.
func perSecond[N int | uint64](n N, u status.Usage) string {
	if u.Seconds == 0 {
		return "-"
	}
	return strconv.FormatFloat(float64(n)/u.Seconds, 'f', 1, 64)
}

// portsColumn is where the columns about blocks of ports are.
const portsColumn = 5

// usageLines are the table, the busiest addresses first.
func usageLines(u status.Usage) []string {
	addresses := slices.SortedStableFunc(slices.Values(u.Addresses), func(a, b status.AddressUsage) int {
		return cmp.Or(cmp.Compare(b.Flows+b.Sent, a.Flows+a.Sent), a.IP.Compare(b.IP))
	})
	rows := [][]string{{"EGRESS IP", "FLOWS", "NEW/S", "RECEIVED", "SENT", "PORTS", "BUSIEST DESTINATION"}}
	blocks := slices.ContainsFunc(addresses, func(a status.AddressUsage) bool { return a.Blocks+a.Sharing > 0 })
	if blocks {
		rows[0] = slices.Insert(rows[0], portsColumn, "BLOCKS", "SHARING")
	}
	for _, a := range addresses {
		busiest := orNone("")
		if a.Busiest.IsValid() {
			busiest = a.Protocol + " " + a.Busiest.String()
		}
		row := []string{
			a.IP.String(), strconv.Itoa(a.Flows), perSecond(a.New, u), strconv.Itoa(a.Received), strconv.Itoa(a.Sent),
			fmt.Sprintf("%d/%d (%.1f%%)", a.Ports, a.PortSpace, 100*float64(a.Ports)/float64(max(a.PortSpace, 1))), busiest,
		}
		if blocks {
			row = slices.Insert(row, portsColumn, strconv.Itoa(a.Blocks), strconv.Itoa(a.Sharing))
		}
		rows = append(rows, row)
	}
	var text strings.Builder
	_ = (&table{out: &text}).write(rows...) // a Builder takes everything
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}
