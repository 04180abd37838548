// Package kubelettest answers in a kubelet's place, with the generated code of its Pods API. It is for tests and
// benchmarks, and knows only the pods that it is told of.
package kubelettest
