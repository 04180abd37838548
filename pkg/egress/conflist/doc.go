// Package conflist finds, reads and changes the list of CNI plugins that this node's container runtime uses.
//
// It never makes a list: the network plugin does. A list is replaced as a whole, under the name, mode and owner that it
// has, and only if nobody has written it meanwhile. Several processes may do so at the same time: one writes after the
// other, and readers see one list or the other. What the package does not know of a list stays in it.
package conflist
