// Package changes tells of changes of this node's interfaces and their addresses, as the kernel tells of them by
// rtnetlink(7), and reads what changes meanwhile once more.
package changes
