package failover

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"slices"

	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/pool"
	"github.com/openshift/origin-node/pkg/wake"
)

// agentCommand as the first argument makes this program a node of the pool.
const agentCommand = "failover-agent"

// egressIP is the address that the pool has.
var egressIP = netip.MustParseAddr("192.0.2.100")

// spec is what a node is told.
type spec struct {
	Name  string
	Nodes map[string]netip.Addr
}

// The orders. To each a node answers with how many nodes it finds alive.
const (
	look    = "look"
	drain   = "drain"
	undrain = "undrain"
)

// IsAgent tells whether this process was started to be a node.
func IsAgent() bool { return len(os.Args) == 3 && os.Args[1] == agentCommand }

// Agent obeys orders until standard input ends.
func Agent() {
	if err := agent(os.Args[2], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "agent: %v\n", err)
		os.Exit(1)
	}
}

func agent(argument string, in io.Reader, out io.Writer) error {
	var s spec
	if err := json.Unmarshal([]byte(argument), &s); err != nil {
		return err
	}
	const port = 7947
	member := pool.NewMember(holders.NewDirectory(holders.Config{NodeName: s.Name}), pool.NewRun(), false)
	r := pool.NewRunner(pool.Config{
		NodeName: s.Name, Port: port, Keys: func() holders.Keys { return holders.Keys{make([]byte, 32)} }, Wake: wake.New(),
		Networks: []netip.Prefix{netip.PrefixFrom(egressIP, egressIP.BitLen())},
	}, member)
	r.SetNodes(s.Nodes, slices.Sorted(maps.Keys(s.Nodes)), nil)
	r.Tell(pool.Wanted{Addresses: []netip.Addr{egressIP}})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go r.Run(ctx)
	for orders := bufio.NewScanner(in); orders.Scan(); {
		if order := orders.Text(); order != look {
			r.Tell(pool.Drain{Now: order == drain})
		}
		if _, err := fmt.Fprintln(out, r.Status().Votes); err != nil {
			return err
		}
	}
	return nil
}
