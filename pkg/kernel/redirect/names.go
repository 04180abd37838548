package redirect

// Names of the nftables table and of what is in it. Changing one orphans what earlier versions have written.
const (
	tableName       = "openshift-tunnel"
	nodesSet        = "nodes"
	securePorts     = "secure-ports"
	insecurePorts   = "insecure-ports"
	sourcesSet      = "sources"
	outputChain     = "output"
	preroutingChain = "prerouting"
	redirectChain   = "to-tunnel"
)

// mostAddresses is the largest number of addresses that a set takes; the kernel's default is 65,536.
const mostAddresses = 1 << 20
