// Package upstream is the one place that knows what Kubernetes' supported release branches do
// differently. It offers the vendored branch's way; files with the build tag of an older branch,
// for example kube1.36, give the same with what that branch has. `make build KUBE=1.36` sets the
// tag; without one the code is for the vendored branch.
//
// It never decides anything, and no other package has such tags, but for tests of the kubelet's Pods API.
package upstream
