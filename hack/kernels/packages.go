package main

// tested are the packages whose tests run on each kernel.
var tested = []struct {
	Package string // below the top of the repository
	All     string // its tests, as -run of go test has them; empty means all
	Short   string // those of the short form: each thing that a kernel or a tool may do in another way once; empty means All
	What    string
}{
	{"pkg/kernel/iptables", "", "^Test(Payload_IsAccepted|Cleanup_|Writer_(Follows|Repairs$|Protocols|Journal|KernelGoes|PruneOther|UntouchedSeesRestore))",
		"egress SNAT by iptables"},
	{"pkg/kernel/nftables", "", "^Test(Payload_IsAccepted|Cleanup_|Available_|Writer_(Follows|Repairs|Update|Tampering|Packets|Journal))",
		"egress SNAT by nftables"},
	{"pkg/kernel/natorder", "", "", "NAT of others that decides before ours"},
	{"pkg/kernel/conntrack", "", "^Test(Cleanup|Listen|Look|Selector|EndClashes_Fast|Delete_([A-QS-Z]|RepairsTheBarrier))",
		"connections end when their address changes"},
	{"pkg/kernel/handover", "", "^Test(Cleanup|Writer_(Table|Answers))", "connections of a node that held the address before"},
	{"pkg/kernel/steering", "",
		"^Test(Packets_(Leave|FollowTheWay|ICMPError|Established)|Guard_(FlowWhile|ForgottenFlow$|PacketsWithoutFlow|PortsOfNodes)|" +
			"Arrivals_FromAnother|Writer_AsNft|Ensure_(Twice|RepairsThe)|Postrouting_|CleanupPath_|Fast_(Own|SteeredAlone)$)",
		"packets go to the node that holds their address, by the slow and the fast path"},
	{"pkg/kernel/fastpath", "", "", "the fast path's programs and tables"},
	{"pkg/kernel/portsecurity", "", "", "port security"},
	{"pkg/kernel/redirect", "", "^Test(Writer_(Packets|Repairs|TakesOver|OwnAddress)|Withdraw_LeavesNothing|Payload_)", "ports of nodes"},
	{"pkg/kernel/reconcile", "", "", "the order of writes"},
	{"pkg/kernel/changes", "", "", "reports of changed interfaces and addresses"},
	{"pkg/kernel/portowner", "", "", "which process has a port"},
	{"pkg/egress/pool", "^Test(Runner|Keep|KernelAddresses|DefaultGateways)", "^Test(KernelAddresses|DefaultGateways|Keep|Runner_(Renews|Announces|Removes|PoolOfFive))",
		"egress IPs are put on a node, move when it fails, and are announced"},
	{"pkg/egress/holders", "^Test(WatchAddresses|Announcer)", "^Test(WatchAddresses_|Announcer_(AllNodes|Loss|Keys))", "nodes know which of them has an egress IP"},
	{"hack/lab", "^TestSCTP_", "", "the tests' own network, with SCTP"},
	{"hack/netns", "^Test(Identity_|Protocols_|Mode_(IPVS|OfAnOldNFT)$)", "^Test(Identity_OfBound|Protocols_|Mode_(IPVS|OfAnOldNFT)$)",
		"the node's process, in every mode"},
	{"hack/e2e", "^TestPool_AtAnySpeed$", "", "a cluster whose pods leave through the holder of their address, which fails"},
}
