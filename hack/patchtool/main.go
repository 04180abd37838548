package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/openshift/origin-node/hack/patchtool/branch"
	"github.com/openshift/origin-node/hack/patchtool/patch"
	"github.com/openshift/origin-node/hack/patchtool/scratch"
	"github.com/openshift/origin-node/hack/patchtool/tree"
)

const usage = `usage: patchtool COMMAND [FLAGS] [ARGUMENTS], at the top of the repository

  verify                 prove that the series hold, that of Kubernetes on every supported branch
  tree BRANCH | MODULE   make the tree of a branch, or of another module with patches, and print its directory
  go BRANCH VERB ...     run go on our own packages, against a branch's patched tree

patchtool COMMAND -h lists the flags.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	root, err := os.Getwd()
	if err == nil {
		err = newProject(root, "patches", "_output", os.Stdout).command(ctx, os.Args[1:])
	}
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

// project is the repository that a command works on.
type project struct {
	tree.Maker
	// root is where our own go.mod is, absolute; output takes what is made.
	root, output string
	stdout       io.Writer
	unwritten    error // why something did not reach stdout
}

func newProject(root, patches, output string, stdout io.Writer) *project {
	return &project{Maker: tree.Maker{Patches: patches, Cache: filepath.Join(output, "patched")}, root: root, output: output, stdout: stdout}
}

// printf writes to stdout. An error is for the end of the command.
func (p *project) printf(format string, arguments ...any) {
	if _, err := fmt.Fprintf(p.stdout, format, arguments...); err != nil && p.unwritten == nil {
		p.unwritten = fmt.Errorf("print: %w", err)
	}
}

func (p *project) command(ctx context.Context, arguments []string) error {
	if len(arguments) == 0 {
		return fmt.Errorf("no command\n%s", usage)
	}
	flags := flag.NewFlagSet("patchtool "+arguments[0], flag.ContinueOnError)
	command, known := map[string]func(*flag.FlagSet) func(context.Context, []string) error{
		"verify": p.verifyCommand, "tree": p.treeCommand, "go": p.goCommand,
	}[arguments[0]]
	if !known {
		return fmt.Errorf("%q is not a command\n%s", arguments[0], usage)
	}
	run := command(flags)
	if err := flags.Parse(arguments[1:]); err != nil {
		return err
	}
	return errors.Join(run(ctx, flags.Args()), p.unwritten)
}

func (p *project) treeCommand(flags *flag.FlagSet) func(context.Context, []string) error {
	unpatched := flags.Bool("unpatched", false, "without the series")
	return func(ctx context.Context, arguments []string) error {
		b, err := p.findModule(ctx, arguments)
		if err != nil {
			return err
		}
		made, err := p.Tree(ctx, b, !*unpatched)
		if err != nil {
			return err
		}
		p.printf("%s\n", made.Dir)
		return nil
	}
}

// find returns the branch that the first argument names, of at least so many.
func (p *project) find(arguments []string, least int) (branch.Branch, error) {
	if len(arguments) < least {
		return branch.Branch{}, fmt.Errorf("arguments %q: too few\n%s", arguments, usage)
	}
	all, err := branch.Load(p.Patches)
	if err != nil {
		return branch.Branch{}, err
	}
	return all.Find(arguments[0])
}

// findModule returns the module that the first argument names, or the branch.
func (p *project) findModule(ctx context.Context, arguments []string) (branch.Branch, error) {
	modules, err := p.modules(ctx)
	if err != nil {
		return branch.Branch{}, err
	}
	if i := slices.IndexFunc(modules, func(m branch.Branch) bool { return len(arguments) > 0 && arguments[0] == m.Module }); i >= 0 {
		return modules[i], nil
	}
	return p.find(arguments, 1)
}

// modules returns the modules other than Kubernetes that have a series, at the versions in go.mod.
func (p *project) modules(ctx context.Context) (branch.Branches, error) {
	all, err := branch.Load(p.Patches)
	if err != nil {
		return nil, err
	}
	ours, err := readModule(ctx, p.root)
	if err != nil {
		return nil, err
	}
	required := map[string]string{}
	for _, r := range ours.Require {
		required[r.Path] = r.Version
	}
	modules, err := branch.Modules(os.DirFS(p.Patches), all, required)
	if err != nil {
		return nil, err
	}
	for _, m := range modules {
		for _, r := range ours.Replace {
			if r.Old.Path == m.Module {
				return nil, fmt.Errorf("go.mod replaces %s, which has patches: they would be proven on another source than is vendored; remove the replace directive or the patches", m.Module)
			}
		}
	}
	return modules, nil
}

// patched are the packages of Kubernetes that its series is about. They are compiled and merged as a whole.
var patched = []string{"cmd/kube-proxy", "pkg/proxy"}

// member is a patch of a branch's series.
type member struct {
	branch.Entry
	// name is the path in the folder of the module's series.
	name, file, content string
}

// series reads the patches of a branch in their order.
func (p *project) series(b branch.Branch) ([]member, error) {
	entries, err := branch.Series(os.DirFS(p.Patches), b)
	if err != nil {
		return nil, err
	}
	var series []member
	for _, entry := range entries {
		file, err := filepath.Abs(filepath.Join(p.Patches, entry.Path))
		if err != nil {
			return nil, fmt.Errorf("find a patch: %w", err)
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read a patch: %w", err)
		}
		series = append(series, member{entry, strings.TrimPrefix(entry.Path, b.Module+"/"), file, string(content)})
	}
	return series, nil
}

// directories returns what a scratch repository needs of a release: of Kubernetes the patched packages, and whatever
// else the series touches; all of another module.
func directories(b branch.Branch, series []member) []string {
	if b.Module != branch.Kubernetes {
		return []string{"."}
	}
	names := slices.Clone(patched)
	for _, m := range series {
		for _, file := range patch.Files(m.content) {
			if !slices.ContainsFunc(names, func(dir string) bool { return strings.HasPrefix(file, dir+"/") }) {
				names = append(names, path.Dir(file))
			}
		}
	}
	return names
}

// release commits into a scratch repository what a series needs of a branch's release, and tags it with the version.
func (p *project) release(ctx context.Context, r *scratch.Repository, b branch.Branch, series []member) error {
	release, err := p.Release(ctx, b)
	if err != nil {
		return err
	}
	return r.Release(ctx, b.Version, release.Module, directories(b, series))
}

// inScratch runs work with a temporary scratch repository.
func inScratch(ctx context.Context, work func(*scratch.Repository) error) error {
	dir, err := os.MkdirTemp("", "patchtool-")
	if err != nil {
		return fmt.Errorf("make a scratch repository: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	r, err := scratch.New(ctx, dir)
	if err != nil {
		return err
	}
	return work(r)
}

// write writes a file of patches/, whose folder it makes.
func write(file, content string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
}

// exists tells whether a file or folder is there.
func exists(file string) bool {
	_, err := os.Stat(file)
	return !errors.Is(err, fs.ErrNotExist)
}
