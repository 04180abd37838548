package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openshift/origin-node/hack/patchtool/branch"
	"github.com/openshift/origin-node/hack/patchtool/tree"
)

// goCommand runs go on our own packages, against a branch.
func (p *project) goCommand(*flag.FlagSet) func(context.Context, []string) error {
	return func(ctx context.Context, arguments []string) error {
		b, err := p.find(arguments, 2)
		if err != nil {
			return err
		}
		command, err := p.against(ctx, b, arguments[1], arguments[2:]...)
		if err != nil {
			return err
		}
		command.Stdout, command.Stderr = p.stdout, os.Stderr
		if err := command.Run(); err != nil {
			return fmt.Errorf("go %s against %s: %w", arguments[1], b.Version, err)
		}
		return nil
	}
}

// against returns a go command that works on our own packages with Kubernetes as a branch has it.
// Kubernetes is the branch's pinned release with the series applied, the staging modules are those of
// that release, and whatever else both of us require comes in the version that the release was made
// with. Other modules that carry patches come patched. vendor/ and go.mod stay as they are.
func (p *project) against(ctx context.Context, b branch.Branch, verb string, arguments ...string) (*exec.Cmd, error) {
	if b.Vendored {
		return tree.Go(ctx, p.root, append([]string{verb, "-mod=vendor"}, arguments...)...), nil
	}
	made, err := p.Tree(ctx, b, true)
	if err != nil {
		return nil, err
	}
	file, err := p.modfile(ctx, made)
	if err != nil {
		return nil, err
	}
	flags := []string{verb, "-modfile=" + file, "-tags=kube" + strings.TrimPrefix(b.Name, "release-")} // pkg/upstream knows the tag
	return tree.Go(ctx, p.root, append(flags, arguments...)...), nil
}

// modfile returns a go.mod for our own packages with the tree's Kubernetes. go completes it with the
// indirect requirements, and its go.sum, so it is made once, beside the tree.
func (p *project) modfile(ctx context.Context, made *tree.Tree) (string, error) {
	mod, err := p.requirements(ctx, made)
	if err != nil {
		return "", err
	}
	key := sha256.Sum256([]byte(mod))
	file := made.Dir + "-" + hex.EncodeToString(key[:6]) + ".mod"
	if exists(file) {
		return file, nil
	}
	var sums []string
	for _, dir := range []string{p.root, made.Dir} {
		content, err := os.ReadFile(filepath.Join(dir, "go.sum"))
		if err != nil {
			return "", fmt.Errorf("read the checksums: %w", err)
		}
		sums = slices.AppendSeq(sums, strings.Lines(string(content)))
	}
	slices.Sort(sums)
	if err := write(strings.TrimSuffix(file, "mod")+"sum", strings.Join(slices.Compact(sums), "")); err != nil {
		return "", err
	}
	return file, write(file, mod)
}

// requirements returns the go.mod that go begins with.
func (p *project) requirements(ctx context.Context, made *tree.Tree) (string, error) {
	ours, err := readModule(ctx, p.root)
	if err != nil {
		return "", err
	}
	theirs, err := readModule(ctx, made.Dir)
	if err != nil {
		return "", err
	}
	replace := made.Replace
	modules, err := p.modules(ctx)
	if err != nil {
		return "", err
	}
	for _, m := range modules {
		other, err := p.Tree(ctx, m, true)
		if err != nil {
			return "", err
		}
		replace = append(replace, other.Replace...)
	}
	known := map[string]bool{branch.Kubernetes: true}
	for _, r := range theirs.Require {
		known[r.Path] = true
	}
	var text strings.Builder
	fmt.Fprintf(&text, "module %s\n\ngo %s\n\nrequire %s %s\n", ours.Module.Path, ours.Go, branch.Kubernetes, made.Version)
	for _, r := range ours.Require {
		if !r.Indirect && !known[r.Path] {
			fmt.Fprintf(&text, "require %s %s\n", r.Path, r.Version)
		}
	}
	for _, r := range replace {
		fmt.Fprintf(&text, "replace %s\n", r)
	}
	return text.String(), nil
}

// module is what `go mod edit -json` says of a go.mod.
type module struct {
	Module  struct{ Path string }
	Go      string
	Require []struct {
		Path, Version string
		Indirect      bool
	}
	Replace []struct{ Old struct{ Path string } }
}

func readModule(ctx context.Context, dir string) (module, error) {
	var m module
	output, err := tree.Go(ctx, dir, "mod", "edit", "-json").Output()
	if err == nil {
		err = json.Unmarshal(output, &m)
	}
	if err != nil {
		return module{}, fmt.Errorf("read %s: %w", filepath.Join(dir, "go.mod"), err)
	}
	return m, nil
}
