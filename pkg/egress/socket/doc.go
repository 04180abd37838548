// Package socket makes the Unix sockets on which a node can be asked, serves them until a context ends, and takes open files that come with
// requests. It also asks on them. What is asked and answered is of packages status and cni.
package socket
