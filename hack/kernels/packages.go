package main

import "strings"

// suite is the tests of a package.
type suite struct {
	Package string // below the top of the repository
	All     string // its tests, as -run of go test has them; empty means all
	Short   string // those of the short form: each thing that a kernel or a tool may do in another way once; empty means All
	What    string
	// Kernel is the only one that they run on; empty for all. Focus is of hack/e2e's TestConformance_…: which of upstream's specs.
	Kernel, Focus string
	// Lacks are modules that the kernel does not have meanwhile. Such suites are the first ones: afterwards tests have loaded them.
	Lacks []string
}

// name is unique.
func (s suite) name() string {
	return strings.Join(append(strings.Fields(s.Package+" "+s.Focus), s.Lacks...), " ")
}

// tested are the packages whose tests run on each kernel.
var tested = []suite{
	{
		Package: "hack/e2e",
		All:     "^TestKernel_WithoutVXLAN$",
		Kernel:  "6.12",
		Lacks:   []string{"vxlan"},
		What:    "steering, on a kernel without VXLAN",
	},
	{
		Package: "hack/e2e",
		All:     "^TestKernel_WithoutDuplicates$",
		Kernel:  "6.12",
		Lacks:   []string{"nft_dup_ipv4", "nft_dup_ipv6"},
		What:    "the pool, on a kernel that cannot pass packets on",
	},
	{
		Package: "hack/e2e",
		All:     "^TestKernel_WithoutNFTables$",
		Lacks:   []string{"nf_tables"},
		What:    "egress SNAT and ports of nodes, on a kernel without nftables",
	},
	{
		Package: "pkg/kernel/redirect",
		All:     "^TestWriter_WithoutNFTables$",
		Lacks:   []string{"nf_tables"},
		What:    "ports of nodes, on a kernel without nftables",
	},
	{
		Package: "pkg/kernel/iptables",
		Short:   "^Test(Payload_IsAccepted|Cleanup_|Writer_(Follows|Repairs$|Protocols|Journal|KernelGoes|PruneOther|UntouchedSeesRestore))",
		What:    "egress SNAT by iptables",
	},
	{Package: "pkg/kernel/natorder", What: "NAT of others that decides before ours"},
	{
		Package: "pkg/kernel/conntrack",
		Short:   "^Test(Cleanup|Listen|Look|Selector|EndClashes_Fast|Delete_([A-QS-Z]|RepairsTheBarrier))",
		What:    "connections end when their address changes",
	},
	{
		Package: "pkg/kernel/handover",
		Short:   "^Test(Cleanup|Writer_(Table|Answers))",
		What:    "connections of a node that held the address before",
	},
	{
		Package: "pkg/kernel/steering",
		Short: "^Test(Packets_(Leave|FollowTheWay|ICMPError|Established)|Guard_(FlowWhile|ForgottenFlow$|PacketsWithoutFlow|PortsOfNodes)|" +
			"Arrivals_FromAnother|Writer_AsNft|Ensure_(Twice|RepairsThe)|Postrouting_|CleanupPath_|Script_|Blocks_(TableFollows|PortsOutside)|Fast_(Unbound|SteeredAlone)$|" +
			"Local_(Available|TakesOver|Text|HostileNames|Follows|Repairs|Update|Tampering|Packets|Journal|Cleanup))",
		What: "egress SNAT by nftables; packets go to the node that holds their address, by the slow and the fast path",
	},
	{Package: "pkg/kernel/fastpath", What: "the fast path's programs and tables"},
	{Package: "pkg/kernel/portsecurity", What: "port security"},
	{
		Package: "pkg/kernel/redirect",
		Short:   "^Test(Writer_(Packets|Repairs|TakesOver|OwnAddress)|Withdraw_LeavesNothing|Payload_)",
		What:    "ports of nodes",
	},
	{Package: "pkg/kernel/reconcile", What: "the order of writes"},
	{Package: "pkg/kernel/changes", What: "reports of changed interfaces and addresses"},
	{Package: "pkg/kernel/portowner", What: "which process has a port"},
	{
		Package: "pkg/egress/pool",
		All:     "^Test(Runner|Keep|KernelAddresses|DefaultGateways)",
		Short:   "^Test(KernelAddresses|DefaultGateways|Keep|Runner_(Renews|Advertises|Removes))",
		What:    "egress IPs are put on a node, move when it fails, and are announced",
	},
	{
		Package: "pkg/egress/holders",
		All:     "^Test(WatchAddresses|Announcer)",
		Short:   "^Test(WatchAddresses_|Announcer_(AllNodes|Loss|Keys))",
		What:    "nodes know which of them has an egress IP",
	},
	{Package: "cmd/origin-node-cni", All: "^TestKernel_", What: "which addresses have rules, as the CNI plugin reads iptables and nft"},
	{Package: "hack/lab", All: "^TestSCTP_", What: "the tests' own network, with SCTP"},
	{
		Package: "hack/netns",
		All:     "^Test(Identity_|Protocols_|Mode_(IPVS|OfAnOldNFT)$)",
		What:    "the node's process, in every mode",
	},
	{
		Package: "hack/e2e",
		All:     "^TestPool_AtAnySpeed$",
		What:    "a cluster whose pods leave through the holder of their address, which fails",
	},
	{
		Package: "hack/e2e",
		All:     "^TestConformance_",
		Kernel:  "6.1",
		Focus:   `\[Feature:SCTPConnectivity\]`, // those of network policies are left out by hack/conformance/environment.txt
		What:    "upstream's specs of SCTP, on kubelets",
	},
}
