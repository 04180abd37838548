// Command origin-node-cni is a CNI plugin for the end of a chain. It lets a pod start when the kernel holds the pod's
// egress bindings, or the node's process is certain that there are none, and gives an address back to IPAM when nothing
// in the kernel is for it any more.
//
//	{"type": "origin-node-cni", "socket": "/run/origin-node/cni.sock", "waitSeconds": 10, "unanswered": "claimed"}
//
// It decides nothing itself, and changes neither the interface nor the result: the node's process decides (package cni). If
// the node gives the pod source ports of its own, the plugin writes them to net.ipv4.ip_local_port_range in the pod's
// network namespace; if it cannot, ADD fails with code 11. Then it passes the open setting to the node, which writes it
// again when the pod gets a second block of ports. A node that does not take the setting gives no second block, and the pod
// starts. There are exceptions for a node process that cannot decide:
//
//	the process answers no, until 5 s or half    as if no process answered, if it waits for objects or cannot write
//	of waitSeconds are left
//	the process answers no, until waitSeconds    ADD fails with code 11, so the runtime tries again
//	no process answers, and unanswered is
//	  claimed  no process has ever run           the pod starts
//	           Services of the namespace have    code 11 after waitSeconds
//	           claims
//	           the address may still be bound    code 11 at once: IPAM gives another address
//	           for another pod, by the node's
//	           files or the kernel's rules, or
//	           the rules cannot be listed in
//	           time
//	           otherwise                         the pod starts at once
//	  refuse                                     code 11 after waitSeconds
//	  start                                      the pod starts at once
//	DEL is not done within 2 s                   a note for the next process, beside the socket (package attachments); DEL
//	                                             never fails
//	CHECK, and no process answers within 2 s,    success, but code 11 with refuse
//	or it waits for objects
//	CHECK, and the process does not know the     it is attached as by ADD, once: within the 2 s if the pod
//	container                                    stays anyway (the next row), else until waitSeconds
//	CHECK, and that fails, or the process        success with start, or with claimed if no Service of the
//	cannot write within 2 s                      namespace has a claim; otherwise code 3, or 11 after waitSeconds
//	GC with null, as of CRI-O without a pod      nothing follows; a list of sandboxes is passed to the process
//	STATUS                                       code 50 with refuse only
//
// ADD does not wait for another node that has the egress IP. That one learns of the pod from an EndpointSlice, and there is
// none before ADD is over. It drops the pod's packets until then, so none leaves from a wrong address.
//
// It is no plugin of NRI, which containerd and CRI-O have beside CNI: a runtime that loses an NRI plugin, or waits for it
// for more than two seconds, starts pods without it.
//
// Interfaces other than eth0 and containers that are no pods are passed through; pods without an address or a UID, too,
// unless Services of their namespace have claims, or the claims cannot be read. CHECK passes all pods without a UID through.
package main
