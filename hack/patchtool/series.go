package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openshift/origin-node/hack/patchtool/patch"
	"github.com/openshift/origin-node/hack/patchtool/source"
)

// touched is a declaration of upstream's that a patch changes, and what became of it.
type touched struct {
	number, path, name string
	added              int
	change             source.Change
	old, current       *source.Declaration
}

// touched returns what the series touches, in its order.
func (r *review) touched(ctx context.Context) ([]touched, error) {
	var all []touched
	for _, m := range r.from.series {
		places, err := r.places(ctx, m)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Path, err)
		}
		for _, place := range places {
			old, err := r.declaration(ctx, r.from, place)
			if err != nil {
				return nil, err
			}
			current, err := r.declaration(ctx, r.to, place)
			if err != nil {
				return nil, err
			}
			place.old, place.current, place.change = old, current, source.Compare(old, current)
			all = append(all, place)
		}
	}
	return all, nil
}

// declaration finds what a patch touches in a release.
func (r *review) declaration(ctx context.Context, s *side, place touched) (*source.Declaration, error) {
	all, err := r.declarations(ctx, s.tag("release"), place.path)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(d source.Declaration) bool { return d.Name == place.name })
	if i < 0 {
		return nil, nil
	}
	return &all[i], nil
}

// changed names those that changed.
func changed(all []touched) []string {
	var names []string
	for _, t := range all {
		if t.change > "" && t.change != source.Unchanged && t.change != source.Comments {
			names = append(names, fmt.Sprintf("`%s.%s` (%s)", filepath.Base(filepath.Dir(t.path)), t.name, t.change))
		}
	}
	return names
}

// patchSections writes of each patch its purpose, and what became of what it touches.
func (r *review) patchSections(ctx context.Context, all []touched) error {
	r.printf("## The patches, and what they touch\n\n")
	for _, m := range r.from.series {
		r.printf("### %s %s\n\n", m.Number(), strings.ReplaceAll(m.patch.Subject, "<", `\<`))
		for _, label := range []string{patch.Description, patch.Removes, patch.Differs, patch.DropWhen} {
			if text, ok := m.patch.Text(label); ok {
				r.printf("_%s_: %s\n\n", label, text)
			}
		}
		for _, file := range r.exact[m.Number()].Files {
			if file.New {
				r.printf("Adds `%s`. ", file.Path)
			}
		}
		of := slices.DeleteFunc(slices.Clone(all), func(t touched) bool { return t.number != m.Number() })
		if len(of) == 0 {
			r.printf("It touches no function of upstream's.\n\n")
			continue
		}
		if err := r.touchedTable(ctx, of); err != nil {
			return err
		}
	}
	return nil
}

func (r *review) touchedTable(ctx context.Context, all []touched) error {
	r.printf("It touches:\n\n| upstream function or type | lines added | from %s to %s |\n|---|---|---|\n", r.from.Version, r.to.Version)
	for _, t := range all {
		r.printf("| `%s` in `%s` | %d | %s |\n", t.name, t.path, t.added, t.change)
	}
	r.printf("\n")
	for _, t := range all {
		if t.change == source.Unchanged {
			continue
		}
		text, err := r.diff(ctx, t.old, t.current)
		if err != nil {
			return err
		}
		r.printf("`%s` in `%s`:\n\n%s", t.name, t.path, block(text))
	}
	return nil
}

// places returns the declarations of upstream's that a patch changes, in the patch's order. What is
// added belongs to what surrounds it once it is there.
func (r *review) places(ctx context.Context, m member) (places []touched, err error) {
	exact, tag := r.exact[m.Number()], r.from.tag(m.Number())
	for _, file := range exact.Files {
		if file.New {
			continue
		}
		upstream, err := r.declarations(ctx, r.from.tag("release"), file.Path)
		if err != nil {
			return nil, err
		}
		before, err := r.declarations(ctx, tag+"^", file.Path)
		if err != nil {
			return nil, err
		}
		after, err := r.declarations(ctx, tag, file.Path)
		if err != nil {
			return nil, err
		}
		for _, hunk := range file.Hunks {
			for _, line := range hunk.Added() {
				places = note(places, file.Path, upstream, source.At(after, line), 1)
			}
			for _, line := range hunk.Removed() {
				places = note(places, file.Path, upstream, source.At(before, line), 0)
			}
		}
	}
	for i := range places {
		places[i].number = m.Number()
	}
	return places, nil
}

// declarations returns those of a file in the scratch repository; none of what is not Go.
func (r *review) declarations(ctx context.Context, tag, file string) ([]source.Declaration, error) {
	content, ok := r.repo.File(ctx, tag, file)
	if !ok || !strings.HasSuffix(file, ".go") {
		return nil, nil
	}
	return source.Parse(file, content)
}

// note adds a line to the declaration's place. A declaration that upstream does not have is the patch's own.
func note(places []touched, file string, upstream []source.Declaration, d *source.Declaration, added int) []touched {
	if d == nil || d.Kind == source.Imports ||
		!slices.ContainsFunc(upstream, func(u source.Declaration) bool { return u.Name == d.Name }) {
		return places
	}
	i := slices.IndexFunc(places, func(t touched) bool { return t.path == file && t.name == d.Name })
	if i < 0 {
		places = append(places, touched{path: file, name: d.Name})
		i = len(places) - 1
	}
	places[i].added += added
	return places
}

// apply fills the scratch repository with both releases and the series on each.
func (r *review) apply(ctx context.Context) error {
	for _, s := range []*side{r.from, r.to} {
		names := directories(append(slices.Clone(r.from.series), r.to.series...))
		if err := r.repo.Release(ctx, s.tag("release"), s.module, names); err != nil {
			return err
		}
		for _, m := range s.series {
			_, applied, err := r.repo.Apply(ctx, m.file, m.patch)
			if err != nil {
				return fmt.Errorf("%s on %s: %w", m.Path, s.Version, err)
			}
			if !applied {
				return fmt.Errorf("%s does not apply to %s; 'make rebase-patches VERSION=%s' says more", m.Path, s.Version, s.Version)
			}
			if err := r.repo.Tag(ctx, s.tag(m.Number())); err != nil {
				return err
			}
		}
		if err := r.repo.Tag(ctx, s.tag("series")); err != nil {
			return err
		}
	}
	if err := r.repo.Checkout(ctx, r.from.tag("series")); err != nil {
		return err
	}
	return r.asMade(ctx)
}

// asMade reads the series as it would be written on the release that is left: with its line numbers.
func (r *review) asMade(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "series-")
	if err != nil {
		return fmt.Errorf("write the series: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	written, err := r.repo.Format(ctx, r.from.tag("release"), dir)
	if err != nil {
		return err
	}
	r.exact = map[string]*patch.Patch{}
	for _, file := range written {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read the series: %w", err)
		}
		p, err := patch.Parse(filepath.Base(file), string(content))
		if err != nil {
			return err
		}
		r.exact[p.Number()] = p
	}
	return nil
}
