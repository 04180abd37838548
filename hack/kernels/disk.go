//go:build linux

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

// plan is what the process in the virtual machine is told, in the file plan.json of its disk.
type plan struct {
	// Native is how long this machine takes for what [speed] does.
	Native time.Duration
	// All: not the short form.
	All  bool
	Runs []testRun
}

// testRun is a run of a binary with the tests of a package. Below the disk's top it is where its package is in the repository.
type testRun struct {
	Name, Package, Run string
	// Kernel, Focus and Lacks are the suite's.
	Kernel, Focus string
	Lacks         []string
}

// testBinary is the name of a binary in the folder of its package.
const testBinary = "tests"

// planOf returns what to run: of the packages that match only, tests if that is not empty, or all, or those of the short form.
func planOf(only, tests string, all bool) (plan, error) {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return plan{}, err
	}
	p := plan{All: all}
	for _, t := range tested {
		if !pattern.MatchString(t.name()) {
			continue
		}
		r := testRun{Name: t.name(), Package: t.Package, Run: t.All, Kernel: t.Kernel, Focus: t.Focus, Lacks: t.Lacks}
		if !all {
			r.Run = cmp.Or(t.Short, t.All)
		}
		r.Run = cmp.Or(tests, r.Run)
		p.Runs = append(p.Runs, r)
	}
	if len(p.Runs) == 0 {
		return plan{}, fmt.Errorf("no package matches %q", only)
	}
	return p, nil
}

// makeDisk compiles the tests, and makes a disk of them, with the files that they read. It returns the disk's path.
func makeDisk(ctx context.Context, output string, p plan) (string, error) {
	dir := filepath.Join(output, "tests")
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	packages := map[string]bool{} // one may have two runs
	for _, r := range p.Runs {
		packages[r.Package] = true
	}
	for pkg := range packages {
		if err := compile(ctx, dir, pkg); err != nil {
			return "", err
		}
	}
	if err := copyFiles(dir, p); err != nil {
		return "", err
	}
	if err := static(ctx, "go", "build", "-trimpath", "-o", filepath.Join(dir, "pod"), "./hack/machine/pod"); err != nil {
		return "", err
	}
	self := filepath.Join(dir, "kernels")
	if err := static(ctx, "go", "build", "-trimpath", "-o", self, "./hack/kernels"); err != nil {
		return "", err
	}
	var err error
	if p.Native, err = speedOf(ctx, self); err != nil {
		return "", err
	}
	text, err := json.Marshal(p)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "plan.json"), text, 0o600)
	}
	if err != nil {
		return "", err
	}
	disk := dir + ".disk"
	if err := os.RemoveAll(disk); err != nil {
		return "", err
	}
	return disk, command(ctx, "mke2fs", "-q", "-t", "ext4", "-L", "tests", "-d", dir, disk, "4G")
}

// compile compiles a package's tests, and copies what they read.
func compile(ctx context.Context, dir, pkg string) error {
	to := filepath.Join(dir, pkg)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	if err := static(ctx, "go", "test", "-trimpath", "-c", "-o", filepath.Join(to, testBinary), "./"+pkg); err != nil {
		return err
	}
	err := os.CopyFS(filepath.Join(to, "testdata"), os.DirFS(filepath.Join(pkg, "testdata")))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has none
	}
	return err
}

// copyFiles copies what tests need besides.
func copyFiles(dir string, p plan) error {
	folders := map[string]string{"images": "images"}
	for _, r := range p.Runs {
		if r.Package == "hack/e2e" {
			folders["hack/conformance"], folders[os.Getenv("CONTROLPLANE")] = "hack/conformance", "controlplane"
		}
		if r.Focus != "" {
			folders[os.Getenv("CONFORMANCE")] = "conformance"
		}
	}
	for from, to := range folders {
		if err := os.CopyFS(filepath.Join(dir, to), os.DirFS(from)); err != nil {
			return fmt.Errorf("files for the tests; run 'make test-kernels', which sets CONTROLPLANE and CONFORMANCE: %w", err)
		}
	}
	for from, to := range map[string]string{"go.mod": "go.mod", os.Getenv("OPENSHIFT"): "openshift"} { // go.mod: see lab.LogFile
		content, err := os.ReadFile(from)
		if err != nil {
			return fmt.Errorf("a file for the tests; run 'make test-kernels', which sets OPENSHIFT: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), content, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// static runs go so that what it makes needs no libraries, which differ in a virtual machine.
func static(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	return finish(cmd)
}

func command(ctx context.Context, name string, args ...string) error {
	return finish(exec.CommandContext(ctx, name, args...))
}

func finish(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}
