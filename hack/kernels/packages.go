package main

// tested are the packages whose tests run on each kernel.
var tested = []struct {
	Package string // below the top of the repository
	Run     string // its tests, as -run of go test has them; empty means all
	What    string
}{
	{"pkg/kernel/iptables", "", "egress SNAT by iptables"},
	{"pkg/kernel/nftables", "", "egress SNAT by nftables"},
	{"pkg/kernel/natorder", "", "NAT of others that decides before ours"},
	{"pkg/kernel/conntrack", "", "connections end when their address changes"},
	{"pkg/kernel/handover", "", "connections of a node that held the address before"},
	{"pkg/kernel/steering", "", "packets go to the node that holds their address, by the slow and the fast path"},
	{"pkg/kernel/fastpath", "", "the fast path's programs and tables"},
	{"pkg/kernel/portsecurity", "", "port security"},
	{"pkg/kernel/redirect", "", "ports of nodes"},
	{"pkg/kernel/reconcile", "", "the order of writes"},
	{"pkg/kernel/changes", "", "reports of changed interfaces and addresses"},
	{"pkg/kernel/portowner", "", "which process has a port"},
	{"hack/lab", "^TestSCTP_", "the tests' own network, with SCTP"},
	{"hack/netns", "^Test(Identity_|Protocols_|Mode_(IPVS|OfAnOldNFT)$)", "the node's process, in every mode"},
}
