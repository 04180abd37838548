// Package cluster runs a real Kubernetes control plane inside a namespace of package
// lab, for tests that prove the product against the API that it lives on.
//
//	 test process                      a node of the lab
//	      |  AdminConfig: its Dial          |  the file that NodeKubeconfig
//	      |  enters the namespace           |  wrote, with the least RBAC
//	......|.................................|........... PREFIX-control ....
//	      |                                 v  V4:any
//	      |                               Link   Drop, Hold, Delay,
//	      |                                 |    Reset, Refuse, Heal
//	      v                                 v
//	  kube-apiserver  [::]:6443   TLS, RBAC, dual-stack Services
//	      |                  ^
//	      v                  |
//	  etcd 127.0.0.1:2379   kube-controller-manager 127.0.0.1:10257
//	......|.................................................................
//	      v
//	  DIR: etcd/, certificates, kubeconfigs, one log for each component
//
// A [ControlPlane] is etcd, kube-apiserver and kube-controller-manager as
// hack/build-controlplane.sh builds them, each a [Component] that a test stops, kills
// and starts again. The controllers are those that turn Services and Pods into
// EndpointSlices and Deployments into Pods, and that delete what a deleted namespace or
// owner leaves behind. No port of the machine is used.
//
// There is no kubelet, and a scheduler only with [Config.Kubelets], for tests that start real
// kubelets (package machine). Any other test either creates pods that are bound and running from the
// start ([ControlPlane.CreatePod]), or runs a [Kubelet], which stands in for both: it places pods, has
// the test give them addresses, and takes them away when they are deleted.
//
// All processes end with [ControlPlane.Close], with the lab, or with the process that
// made them, however that ends. DIR is its owner's; a test's goes with the lab.
package cluster
