// Package attachments keeps which pod has which address on this node, as the CNI plugin told, in files that
// outlive the node's process:
//
//	/run/origin-node/attachments/ID.json  an Attachment; the node writes it before the kernel, and reads all
//	                                      before its first plan
//	/run/origin-node/released/ID.json     an Attachment that ended while no node process answered; the plugin
//	                                      writes it, the node takes it
//	/var/lib/origin-node/claims           the namespaces with claims, which the plugin has to know while no
//	                                      node process answers, also after a reboot; beside another socket than
//	                                      the default one it is with the others
//	/var/lib/origin-node/cni-entry        the plugin's entry in the runtime's list, beside claims; package attach
//	                                      writes and reads it
//
// An Attachment also has the source ports that the pod has of its egress IPs, for its life.
//
// ID is that of the pod's sandbox. A file appears as a whole or not at all. The node sets one that cannot be read
// aside as ID.json.corrupt and reports it; nothing else fails for it.
//
// The package decides nothing about egress IPs, and imports the standard library and package kept only: the
// plugin, which is started for every pod, has it too.
package attachments
