// Package starts measures what the CNI plugin adds to a pod's start and end, against the same list of plugins (bridge and
// host-local) without it: the time of ADD and DEL, and the CPU time of all programs with the node's process. The node
// has one Service with an egress IP, and a kubelet's stand-in answers it.
package starts
