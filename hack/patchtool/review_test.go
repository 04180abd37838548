package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestReview_Page(t *testing.T) {
	b := newBench(t)
	tools, err := filepath.Abs("../tools")
	wantError(t, err)
	wantError(t, os.MkdirAll(filepath.Join(b.root, "hack"), 0o755))
	wantError(t, os.Symlink(tools, filepath.Join(b.root, "hack/tools")))
	page, err := b.run("review", "v1.1.0", "v1.2.0")
	wantError(t, err)
	wantText(t, page, "# Kubernetes v1.1.0 to v1.2.0: what it means for patches/\n", "1 patches, the same on both.\n", "made these changes to them: 1 file changed, 2 deletions(-).\n",
		"of 1 packages, 0 have incompatible changes.\n", " = 1:")

	b.release("v1.3.0", upstream("Sync() error", "Sync(full bool) error"))
	page, err = b.run("review", "v1.2.0", "v1.3.0")
	wantError(t, err)
	wantText(t, page, "**1 of 1 patches differ**", "-@@ pkg/proxy/proxier.go: func (p *Proxier) Sync() error", " pkg/proxy/proxier.go | 2 +-\n",
		"of 1 packages, 1 have incompatible changes.\n", "### k8s.io/kubernetes/pkg/proxy\n\n- (*Proxier).Sync: changed from func() error to func(bool) error\n")

	b.release("v1.4.0", upstream(conflicting...))
	_, err = b.run("review", "v1.2.0", "v1.4.0")
	wantError(t, err, shared+" does not apply to k8s.io/kubernetes v1.4.0", "run 'make rebase-patches VERSION=v1.4.0'")
}
