// Package branch knows which release branches of Kubernetes are supported, at which version, and
// which patches each of them gets. So it does of the other modules that carry patches. It reads patches/branches and the
// names in patches/; it never reads a patch.
package branch
