// Package tree makes a patched tree of a release: the source of a module at a version, from
// the module cache, with a branch's series applied. The go.mod of k8s.io/kubernetes is one that builds outside of
// Kubernetes' own repository. It runs go and git, and writes only below the directory it is given.
package tree
