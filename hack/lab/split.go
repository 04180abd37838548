//go:build linux

package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// splitTable is an nftables table of the outside host, whose bridge is the switch of the nodes.
const splitTable = "bridge split"

// Split has the switch pass no frames between these nodes and the other ones; with all, neither between them and any other
// host. Links stay up. [Lab.Heal] ends it.
func (l *Lab) Split(side []*Host, all bool) error {
	others := slices.DeleteFunc(l.Nodes(), func(h *Host) bool { return slices.Contains(side, h) })
	here, there := switchPorts(side), "{ "+switchPorts(others)+" }"
	local := ""
	if all {
		there = "!= { " + here + " }"
		local = fmt.Sprintf("chain input { type filter hook input priority 0; iifname { %[1]s } drop; }\n"+
			"chain output { type filter hook output priority 0; oifname { %[1]s } drop; }", here)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return l.outside.Feed(ctx, fmt.Sprintf(`table %[1]s {
	chain forward {
		type filter hook forward priority 0
		iifname { %[2]s } oifname %[3]s drop
		iifname %[3]s oifname { %[2]s } drop
	}
	%[4]s
}`, splitTable, here, there, local), "nft", "-f", "-")
}

// switchPorts are the ports of the switch that hosts are plugged into, for nft.
func switchPorts(hosts []*Host) string {
	var names []string
	for _, h := range hosts {
		names = append(names, fmt.Sprintf("%q", h.uplink.name))
	}
	return strings.Join(names, ", ")
}

// Heal ends what Split has done.
func (l *Lab) Heal() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := l.outside.Run(ctx, "nft", "delete table "+splitTable)
	return err
}
