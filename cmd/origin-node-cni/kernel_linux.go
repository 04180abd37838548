package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Names of what the node's process writes: packages pkg/kernel/iptables and pkg/kernel/steering, which are too large
// for a program that starts for every pod.
const (
	chainPrefix  = "-A OPENSHIFT-EGRESS-"
	removedChain = chainPrefix + "REMOVED "
)

// bindingSets are the tables, and their sets and maps, that have an element for each pod that is bound: with steering, and without.
var bindingSets = []struct{ table, kind, name string }{
	{"openshift-egress-steering", "set", "bound"}, {"openshift-egress-steering", "set", "bound-pods"},
	{"openshift-egress", "set", "own"}, {"openshift-egress", "set", "own-pods"},
}

// boundInKernel returns an address that the kernel has a rule or an element for. The error says why it cannot be known
// whether there is one. A tool that is missing is named on stderr, and is no error: pods of a host that never had it start.
func boundInKernel(ctx context.Context, ips []netip.Addr) (bound netip.Addr, is bool, err error) {
	nft := hasNFTables()
	for _, v4 := range []bool{true, false} {
		ofFamily := slices.DeleteFunc(slices.Clone(ips), func(ip netip.Addr) bool { return ip.Is4() != v4 })
		if len(ofFamily) == 0 {
			continue
		}
		all, err := boundOf(ctx, v4, nft)
		if err != nil {
			return netip.Addr{}, false, err
		}
		for _, ip := range all {
			if slices.Contains(ofFamily, ip) {
				return ip, true, nil
			}
		}
	}
	return netip.Addr{}, false, nil
}

// boundOf returns the addresses of an IP family that the kernel has rules or elements for.
func boundOf(ctx context.Context, v4, nft bool) (bound []netip.Addr, err error) {
	iptables, family := "ip6tables", "ip6"
	if v4 {
		iptables, family = "iptables", "ip"
	}
	for _, save := range saves(ctx, iptables, nft, hasLegacyTable(v4)) {
		rules, err := output(ctx, save, "-t", "nat")
		if err != nil {
			return nil, err
		}
		bound = append(bound, inRules(rules)...)
	}
	if !nft || !installed("nft") {
		return bound, nil
	}
	for _, of := range bindingSets {
		listed, err := output(ctx, "nft", "list", of.kind, family, of.table, of.name)
		if err != nil && !strings.Contains(err.Error(), nftFindsNone) {
			return nil, err
		}
		bound = append(bound, inElements(listed)...)
	}
	return bound, nil
}

// nftFindsNone is in what nft says where there is no such table or map.
const nftFindsNone = "No such file or directory"

// saves returns the programs that list the rules of iptables: the node's may be of another kind than this host's default.
// A legacy program runs only where the legacy table exists, because it would make it.
func saves(ctx context.Context, iptables string, nft, legacy bool) (programs []string) {
	plain := iptables + "-save"
	version, _ := output(ctx, plain, "--version") // old legacy ones do not know it
	plainIsNFT := strings.Contains(version, "nf_tables")
	take := func(program string, plainDoes bool) {
		if plainDoes && !isOnPath(program) {
			program = plain
		}
		if installed(program) {
			programs = append(programs, program)
		}
	}
	if nft {
		take(iptables+"-nft-save", plainIsNFT)
	}
	if legacy {
		take(iptables+"-legacy-save", !plainIsNFT)
	}
	return programs
}

func isOnPath(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// installed is isOnPath, and says on stderr if a program is missing.
func installed(program string) bool {
	is := isOnPath(program)
	if !is {
		fmt.Fprintf(os.Stderr, "origin-node-cni: %s is not installed on this host, so rules that it alone lists are not seen\n", program)
	}
	return is
}

// hasNFTables tells whether the kernel has nftables. Where it has not, its tools fail, and have written nothing.
func hasNFTables() bool {
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err == nil {
		_, err = conn.Execute(netlink.Message{
			Header: netlink.Header{Type: netlink.HeaderType(unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETGEN), Flags: netlink.Request},
			Data:   []byte{unix.AF_UNSPEC, unix.NFNETLINK_V0, 0, 0},
		})
		_ = conn.Close()
	}
	return !errors.Is(err, unix.EPROTONOSUPPORT) && !errors.Is(err, unix.EINVAL) // nobody serves this part of netfilter
}

// hasLegacyTable tells whether the kernel has a legacy nat table.
func hasLegacyTable(v4 bool) bool {
	file := "/proc/net/ip6_tables_names"
	if v4 {
		file = "/proc/net/ip_tables_names"
	}
	tables, _ := os.ReadFile(file)
	return slices.Contains(strings.Fields(string(tables)), "nat")
}

// output returns what a program prints. The error has what it says of a failure.
func output(ctx context.Context, program string, arguments ...string) (string, error) {
	var printed, complaint bytes.Buffer
	command := exec.CommandContext(ctx, program, arguments...)
	command.Env = append(os.Environ(), "LC_ALL=C")
	command.Stdout, command.Stderr, command.WaitDelay = &printed, &complaint, killTime
	switch err := command.Run(); {
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s did not end in time: %w", program, ctx.Err())
	case err != nil:
		return "", fmt.Errorf("%s: %w: %s", program, err, strings.TrimSpace(complaint.String()))
	}
	return printed.String(), nil
}

// killTime is how long a program that was killed may keep its output open.
const killTime = 100 * time.Millisecond

// inRules returns the sources that our rules of iptables-save give an egress IP.
func inRules(rules string) (bound []netip.Addr) {
	for rule := range strings.Lines(rules) {
		fields := strings.Fields(rule)
		i := slices.Index(fields, "-s")
		if !strings.HasPrefix(rule, chainPrefix) || strings.HasPrefix(rule, removedChain) || i < 0 || i+1 == len(fields) {
			continue
		}
		if source, err := netip.ParsePrefix(fields[i+1]); err == nil && source.IsSingleIP() {
			bound = append(bound, source.Addr())
		}
	}
	return bound
}

// inElements returns the addresses that the elements of a map begin with, as nft lists it.
func inElements(listed string) (bound []netip.Addr) {
	_, elements, _ := strings.Cut(listed, "elements = {")
	for element := range strings.SplitSeq(elements, ",") {
		if fields := strings.Fields(element); len(fields) > 0 {
			if ip, err := netip.ParseAddr(fields[0]); err == nil {
				bound = append(bound, ip)
			}
		}
	}
	return bound
}
