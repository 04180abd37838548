// Package portowner says who has a port that this process cannot have, so that an error names the program to end. It reads
// /proc, and changes nothing. A node without CAP_SYS_PTRACE, or in a container, may not see the process; then it names the
// user, and his processes if they are few. And it finds the processes that have any other sockets.
package portowner
