// Package kubelet asks this node's kubelet for its pods, by the kubelet's Pods API (KEP-4188, on by default since
// Kubernetes 1.37): gRPC on a Unix socket that root alone can use. It needs neither rights nor an API server, and the
// kubelet knows a pod before the pod gets a network.
//
// The package asks for single pods and for all, and never watches: the kubelet of 1.37 sends an event when the status of
// a pod changes, but none when its labels do.
package kubelet
