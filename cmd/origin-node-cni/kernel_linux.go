package main

import (
	"bytes"
	"context"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Names of what the node's process writes: packages pkg/kernel/iptables and pkg/kernel/nftables, which are too large for
// a program that starts for every pod.
const (
	chainPrefix  = "-A OPENSHIFT-EGRESS-"
	removedChain = chainPrefix + "REMOVED "
	table        = "openshift-egress"
)

// lookTime is how long the look at the kernel may take: a node may have hundreds of thousands of rules of others.
const lookTime = 5 * time.Second

// boundInKernel returns an address that the kernel has a rule or an element for. A tool that is missing, or finds
// nothing of ours, has written nothing here.
func boundInKernel(ips []netip.Addr) (bound netip.Addr, is bool) {
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	for _, v4 := range []bool{true, false} {
		ofFamily := slices.DeleteFunc(slices.Clone(ips), func(ip netip.Addr) bool { return ip.Is4() != v4 })
		if len(ofFamily) == 0 {
			continue
		}
		for _, ip := range boundOf(ctx, v4) {
			if slices.Contains(ofFamily, ip) {
				return ip, true
			}
		}
	}
	return netip.Addr{}, false
}

// boundOf returns the addresses of an IP family that the kernel has rules or elements for.
func boundOf(ctx context.Context, v4 bool) (bound []netip.Addr) {
	iptables, family := "ip6tables", "ip6"
	if v4 {
		iptables, family = "iptables", "ip"
	}
	tools := []string{"-nft-save"} // the node's default tools may be others than this host's
	if legacy(v4) {
		tools = append(tools, "-legacy-save")
	}
	for _, tool := range tools {
		if _, err := exec.LookPath(iptables + tool); err != nil {
			tool = "-save" // there is one kind alone
		}
		bound = append(bound, inRules(output(ctx, iptables+tool, "-t", "nat"))...)
	}
	for _, elements := range []string{"bindings", "pods"} {
		bound = append(bound, inElements(output(ctx, "nft", "list", "map", family, table, elements))...)
	}
	return bound
}

// legacy tells whether the kernel has a legacy nat table. The legacy tools would make it.
func legacy(v4 bool) bool {
	file := "/proc/net/ip6_tables_names"
	if v4 {
		file = "/proc/net/ip_tables_names"
	}
	tables, _ := os.ReadFile(file)
	return slices.Contains(strings.Fields(string(tables)), "nat")
}

// output returns what a program prints, nothing if it fails.
func output(ctx context.Context, name string, arguments ...string) string {
	var printed bytes.Buffer
	command := exec.CommandContext(ctx, name, arguments...)
	command.Stdout = &printed
	if command.Run() != nil {
		return ""
	}
	return printed.String()
}

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
