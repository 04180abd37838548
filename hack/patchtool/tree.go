package main

import (
	"context"
	"flag"

	"github.com/openshift/origin-node/hack/patchtool/branch"
	"github.com/openshift/origin-node/hack/patchtool/tree"
)

func (p *project) treeCommand(flags *flag.FlagSet) func(context.Context, []string) error {
	unpatched := flags.Bool("unpatched", false, "leave the patches out")
	return func(ctx context.Context, arguments []string) error {
		if err := exactly(1, "a branch or its version", arguments); err != nil {
			return err
		}
		branches, err := branch.Load(p.patches)
		if err != nil {
			return err
		}
		b, err := branches.Find(arguments[0])
		if err != nil {
			return err
		}
		made, err := p.tree(ctx, b, *unpatched)
		if err != nil {
			return err
		}
		p.printf("%s\n", made.Dir)
		return nil
	}
}

// tree returns the tree of a branch, made if it is not there.
func (p *project) tree(ctx context.Context, b branch.Branch, unpatched bool) (*tree.Tree, error) {
	var patches []string
	if !unpatched {
		series, err := p.series(b)
		if err != nil {
			return nil, err
		}
		patches = files(series)
	}
	release, err := p.release(ctx, b.Version)
	if err != nil {
		return nil, err
	}
	return tree.Ensure(ctx, p.cache, release, patches)
}
