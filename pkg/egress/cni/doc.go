// Package cni is what the CNI plugin and the node's process say to each other: HTTP on a Unix socket that root alone
// can use.
//
//	POST   /v1/attachments     a pod has addresses and is about to run: 200 with a [Decision] when the kernel holds its
//	                           bindings, or it is certain that there are none. If it has source ports, the plugin sets them in
//	                           the pod before that runs
//	PUT    /v1/attachments/ID/local-ports
//	                           passes the setting of source ports in the pod's network namespace, an open file (SCM_RIGHTS, unix(7)): 204.
//	                           The node writes it when the pod gets more ports, which takes no right to enter the namespace, and
//	                           closes it when the pod ends. The file does not keep the namespace. A node that does not know
//	                           the request answers 404, and the pod starts all the same
//	DELETE /v1/attachments/ID  the pod gives its addresses back: 204 when its bindings and flows are gone
//	GET    /v1/attachments/ID  200 with a Decision if the kernel holds what it says
//	POST   /v1/gc              all sandboxes that there are: 204; the others have ended
//	GET    /v1/ready           200 if the node could decide
//
// Every other request gets a [Failure]. A request may be repeated: the same again changes nothing.
//
// The package decides nothing: a [Node] does. It imports little: the plugin is started for every pod.
package cni
