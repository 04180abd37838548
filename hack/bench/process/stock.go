package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/openshift/origin-node/hack/bench/figure"
	"github.com/openshift/origin-node/hack/patchtool/branch"
	"github.com/openshift/origin-node/hack/patchtool/tree"
)

const (
	patches = "patches"
	trees   = "_output/patched"
	built   = "_output/bench"
)

// stock returns the path of the vendored release's kube-proxy without any patch, built if necessary.
func stock(ctx context.Context, s figure.Settings) (string, error) {
	branches, err := branch.Load(patches)
	if err != nil {
		return "", fmt.Errorf("%w; run it at the top of the repository", err)
	}
	unpatched, err := tree.Maker{Patches: patches, Cache: trees}.Tree(ctx, branches.Vendored(), false)
	if err != nil {
		return "", err
	}
	dir, err := filepath.Abs(built)
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "kube-proxy-"+unpatched.Key())
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	s.Log("building %s", file)
	unfinished := fmt.Sprintf("%s.%d", file, os.Getpid())
	build := tree.Go(ctx, unpatched.Dir, "build", "-ldflags", "-s -w", "-o", unfinished, "./cmd/kube-proxy")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build kube-proxy: %w: %s", err, output)
	}
	return file, os.Rename(unfinished, file)
}
