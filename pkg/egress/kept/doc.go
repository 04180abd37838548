// Package kept keeps small files of a node that outlive a loss of power. Whoever reads one knows that it is as it was written, and
// that nobody but this program's user can have written it. Packages with other files replace and remove them by it, too.
//
//	/var/lib/origin-node/keys       the keys by which nodes know each other: package keys
//	/var/lib/origin-node/nodes      the addresses with which Nodes registered: package cluster
//	/var/lib/origin-node/cni-entry  the CNI plugin's entry in the list of plugins: package attach
package kept
