// Package socket makes the Unix sockets on which a node can be asked. It never speaks on them: packages status and cni
// do.
package socket
