// Package tree makes a patched tree of a release: the source of k8s.io/kubernetes at a version, from
// the module cache, with a branch's series applied and a go.mod that builds outside of Kubernetes'
// own repository. It runs go and git, and writes only below the directory it is given.
package tree
