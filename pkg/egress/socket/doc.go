// Package socket makes the Unix sockets on which a node can be asked, and takes open files that come with requests. It says nothing on
// them: packages status and cni do.
package socket
