package redirect

// Names of what is in the kernel. Changing one orphans what earlier versions have written.
const (
	// The nftables table and what is in it.
	tableName       = "openshift-tunnel"
	nodesSet        = "nodes"
	securePorts     = "secure-ports"
	insecurePorts   = "insecure-ports"
	sourcesSet      = "sources"
	outputChain     = "output"
	preroutingChain = "prerouting"
	redirectChain   = "to-tunnel"
	tableRecord     = "record"

	// Chains in iptables' nat table.
	chainPrefix = "OPENSHIFT-TUNNEL-"
	nodesChain  = chainPrefix + "NODES"
	podsChain   = chainPrefix + "PODS"
	toChain     = chainPrefix + "TO"
	recordChain = chainPrefix + "RECORD"

	jumpRule = `-p tcp -m comment --comment "OpenShift tunnel ports" -j `
	// recordRule is what a rule of recordChain begins with.
	recordRule = "-m comment --comment "
)
