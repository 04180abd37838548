// Package realnode runs a kubelet and a container runtime on a node of package lab, for tests that want pods as users
// have them.
//
//	test process                  a node of the lab: its network namespace
//	    | a pipe                  and namespaces for mounts, processes, IPC and the hostname
//	    v                       ...............................................
//	node.sh, outside: waits ----> node.sh, inside: reads the pipe             .
//	 |                          .   |- containerd -- runc --> pods            .
//	 | in the end               .   |     `- bridge, host-local, our plugin   .
//	 v                          .   `- kubelet ---> API server                .
//	removes the node's cgroups  ...............................................
//
// The pipe is closed when the test closes the node or when its process ends, however it ends. With that the node's first
// process ends, and the kernel ends all others and unmounts everything.
//
// Nothing of the machine is changed but cgroups of the node's own, which go with it. What the node writes to /run,
// /opt, /var/lib and /var/log goes to a folder of the lab, by an overlay. A kubelet sets six sysctls of the whole machine:
// it finds files in their place.
//
// Pods run the program in the folder pod, in an image that the test makes (see [MakeImage]); nothing is downloaded.
// Needed are root, containerd, runc and Debian's network plugins.
package realnode
