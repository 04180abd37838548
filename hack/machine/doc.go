// Package machine runs on a node of package lab what wants a machine of its own: a kubelet with its container runtime, so
// that tests have pods as users have them, or a Debian with systemd.
//
//	test process                     a node of the lab: its network namespace, and
//	    | a pipe                     namespaces for mounts, processes, cgroups, IPC and the hostname
//	    v                          ..................................................
//	machine.sh, outside: waits ----> machine.sh, inside: reads the pipe             .
//	 |                             .   `- kubelet.sh                                .
//	 | in the end                  .       |- containerd or CRI-O -- runc --> pods  .
//	 v                             .       |     `- bridge, host-local, our plugin  .
//	removes the machine's cgroups  .       `- kubelet ---> API server               .
//	                               .   or debian.sh                                 .
//	                               .       `- systemd-nspawn -- systemd --> our unit.
//	                               ..................................................
//
// The pipe is closed when the test closes the machine or when its process ends, however it ends. With that the machine's
// first process ends, and the kernel ends all others and unmounts everything.
//
// Nothing outside is changed but cgroups of the machine's own, which go with it. What it writes to /run, /opt, /var/lib and
// /var/log goes to a folder of the lab, by an overlay. A kubelet sets six sysctls for all: it finds files in their place.
//
// Kubelets have been tried with cgroups of version 1 only, which may be beside version 2 (systemd's hybrid layout). A Debian can have version 2 alone.
//
// The runtime and its network plugins are Debian's, or what hack/build-runtime.sh builds (see [RequireRuntime]); runc and conmon are Debian's.
//
// Pods run the program in the folder pod, in an image that the test makes (see [MakeImage]), or what else it makes images of
// (see [MakeImages]). The Debian is what hack/build-debian.sh makes.
package machine
