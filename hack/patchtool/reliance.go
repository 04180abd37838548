package main

import (
	"context"
	"fmt"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openshift/origin-node/hack/patchtool/patch"
	"github.com/openshift/origin-node/hack/patchtool/source"
	"github.com/openshift/origin-node/hack/patchtool/tree"
)

// reliance is a declaration of upstream's that the series or our own code uses.
type reliance struct {
	source.Reference
	change       source.Change
	old, current *source.Declaration
	// users are the files that use it.
	users []string
	// only is the release that alone it is used with; empty for both.
	only string
	// behind is the method of an interface that is used, and that this one implements.
	behind string
}

// reliances are all of them, and those among them that changed in what a caller sees, and in what it means.
type reliances struct{ all, signatures, meanings []reliance }

// of returns those whose meaning changed in this way.
func (r *reliances) of(change source.Change) []reliance {
	return slices.DeleteFunc(slices.Clone(r.meanings), func(relied reliance) bool { return relied.change != change })
}

// only names what is used with one of the releases alone, other than as its signature tells.
func (r *reliances) only(version string) []string {
	var names []string
	for _, relied := range r.all {
		if relied.only == version && relied.behind == "" && !slices.ContainsFunc(r.signatures, func(s reliance) bool { return s.Reference == relied.Reference }) {
			names = append(names, fmt.Sprintf("`%s` (%s) in %s", relied.Short(), relied.change, strings.Join(relied.users, ", ")))
		}
	}
	return names
}

// names are for the summary.
func names(all []reliance) []string {
	var names []string
	for _, relied := range all {
		name := fmt.Sprintf("`%s` (%s", relied.Short(), relied.change)
		if relied.only != "" {
			name += ", used with " + relied.only + " alone"
		}
		names = append(names, name+")")
	}
	return names
}

// open reads the packages of a side, and which lines of them are the series'.
func (r *review) open(ctx context.Context, s *side) error {
	diff, err := r.repo.Changes(ctx, s.tag("release"), s.tag("series"))
	if err != nil {
		return err
	}
	changed, err := patch.ParseDiff(diff)
	if err != nil {
		return err
	}
	s.added = map[string]map[int]bool{}
	var folders []string
	for _, file := range changed {
		path := filepath.Join(s.patched, file.Path)
		s.added[path] = map[int]bool{}
		for _, hunk := range file.Hunks {
			for _, line := range hunk.Added() {
				s.added[path][line] = true
			}
		}
		folders = append(folders, filepath.Dir(file.Path))
	}
	slices.Sort(folders)
	s.folders = slices.Compact(folders)
	if s.own, err = r.ownCode(ctx, strings.Split(r.code, ",")); err != nil {
		return err
	}
	f, err := newFinder(ctx, s.own, s.patched, s.folders, s.buildTags()...)
	if err != nil {
		return err
	}
	s.packages = source.Open(f.find, ctx.Err, s.buildTags()...)
	return nil
}

// users returns what of upstream the series and our own code use on a side.
func (s *side) users() (source.Users, error) {
	usage := source.Usage{Own: s.isAdded, Prefix: upstreamPrefix}
	users := source.Users{}
	add := func(usage source.Usage) error {
		found, err := s.packages.References(usage)
		if err == nil {
			users.Add(found)
		}
		return err
	}
	for _, folder := range s.folders {
		usage.Package, usage.Dir, usage.Uses = tree.Kubernetes+"/"+folder, filepath.Join(s.patched, folder), s.isAdded
		usage.Label = func(file string) string { return "patched " + relative(s.patched, file) }
		if err := add(usage); err != nil {
			return nil, err
		}
	}
	for _, dir := range s.own.packages {
		usage.Package, usage.Dir, usage.Uses = s.own.path(dir), dir, nil
		usage.Label = func(file string) string { return relative(s.own.root, file) }
		if err := add(usage); err != nil {
			return nil, err
		}
	}
	return users, nil
}

func relative(root, file string) string {
	if name, err := filepath.Rel(root, file); err == nil {
		return name
	}
	return file
}

// unknown returns the packages of upstream's that were not found.
func (r *review) unknown() []string {
	var all []string
	for _, s := range []*side{r.from, r.to} {
		for _, name := range s.packages.Unknown() {
			if strings.HasPrefix(name, upstreamPrefix) {
				all = append(all, fmt.Sprintf("`%s` of %s", name, s.Version))
			}
		}
	}
	return all
}

// relied compares what the series and our own code rely on, with either release.
func (r *review) relied() (*reliances, error) {
	from, err := r.from.users()
	if err != nil {
		return nil, err
	}
	to, err := r.to.users()
	if err != nil {
		return nil, err
	}
	r.used = source.Users{}
	r.used.Add(from)
	r.used.Add(to)
	found := &reliances{}
	for _, reference := range r.used.Sorted() {
		relied := reliance{Reference: reference, users: r.used[reference]}
		switch {
		case to[reference] == nil:
			relied.only = r.from.Version
		case from[reference] == nil:
			relied.only = r.to.Version
		}
		if err := r.compare(&relied); err != nil {
			return nil, err
		}
		found.all = append(found.all, relied)
	}
	if err := r.implementations(found); err != nil {
		return nil, err
	}
	for _, relied := range found.all {
		found.sort(relied)
	}
	return found, nil
}

// sort puts it where its change belongs: a signature and what it means may change at once.
func (r *reliances) sort(relied reliance) {
	switch relied.change {
	case source.Body, source.Doc, source.Members:
		r.meanings = append(r.meanings, relied)
	case source.Gone, source.New:
		r.signatures = append(r.signatures, relied)
	case source.Signature:
		r.signatures = append(r.signatures, relied)
		switch {
		case source.BodyChanged(relied.old, relied.current):
			relied.change = source.Body
		case source.DocChanged(relied.old, relied.current):
			relied.change = source.Doc
		default:
			return
		}
		r.meanings = append(r.meanings, relied)
	}
}

// compare finds the declaration in both releases. Of a type only what others see counts.
func (r *review) compare(relied *reliance) error {
	var err error
	if relied.old, err = r.from.packages.Declaration(relied.Reference); err != nil {
		return err
	}
	if relied.current, err = r.to.packages.Declaration(relied.Reference); err != nil {
		return err
	}
	if relied.old == nil && relied.current == nil {
		return fmt.Errorf("%s.%s is used, and not found in either release", relied.Package, relied.Name)
	}
	relied.change = source.Compare(relied.old, relied.current)
	if relied.change != source.Members {
		return nil
	}
	changed, err := r.members(*relied)
	if err == nil && len(changed) == 0 {
		relied.change = source.Comments
		if source.DocChanged(relied.old, relied.current) {
			relied.change = source.Doc
		}
	}
	return err
}

// members tells which of a type's members came, went and changed, as far as they are exported and
// not used: those that are speak for themselves.
func (r *review) members(relied reliance) ([]string, error) {
	before, err := r.from.packages.Declarations(relied.Package)
	if err != nil {
		return nil, err
	}
	after, err := r.to.packages.Declarations(relied.Package)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(before)
	maps.Copy(all, after)
	var changed []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		member, ok := strings.CutPrefix(name, relied.Name+".")
		used := r.used[source.Reference{Package: relied.Package, Name: name}] != nil
		if !ok || used || all[name].Kind != source.Member || !token.IsExported(member) {
			continue
		}
		switch source.Compare(before[name], after[name]) {
		case source.New:
			changed = append(changed, "+"+member)
		case source.Gone:
			changed = append(changed, "−"+member)
		case source.Signature:
			changed = append(changed, member+" changed")
		}
	}
	return changed, nil
}

// implementations adds the methods behind those of interfaces, where they changed: what the call does
// is theirs.
func (r *review) implementations(found *reliances) error {
	known := maps.Clone(r.used)
	for _, used := range slices.Clone(found.all) {
		references, err := r.to.packages.Implementations(used.Reference)
		if err != nil {
			return err
		}
		for _, reference := range references {
			if known[reference] != nil || !strings.HasPrefix(reference.Package, upstreamPrefix) {
				continue
			}
			known[reference] = used.users
			relied := reliance{Reference: reference, users: used.users, only: used.only, behind: used.Short()}
			if err := r.compare(&relied); err != nil {
				return err
			}
			switch {
			case relied.old == nil, relied.current == nil:
				continue // another type implements it now
			case source.BodyChanged(relied.old, relied.current):
				relied.change = source.Body // its signature is the interface's
			case relied.change != source.Doc:
				continue
			}
			found.all = append(found.all, relied)
		}
	}
	return nil
}

// reliance writes what became of what is relied on.
func (r *review) reliance(ctx context.Context, relied *reliances) error {
	r.printf("## What the patches and our code rely on: signatures\n\n")
	for _, one := range relied.signatures {
		r.printf("%s\n\n%s", one.line(), block(headDiff(one.old, one.current)))
	}
	if len(relied.signatures) == 0 {
		r.printf("None changed.\n\n")
	}
	for _, s := range []*side{r.from, r.to} {
		if only := relied.only(s.Version); len(only) > 0 {
			r.printf("Used with %s alone: %s.\n\n", s.Version, strings.Join(only, ", "))
		}
	}
	r.printf("## What the patches and our code rely on: meaning\n\nBodies, values and doc comments of the declarations themselves, and of the methods behind an interface's; not of what these call.\n\n")
	if err := r.bodies(ctx, relied); err != nil {
		return err
	}
	if err := r.docs(ctx, relied); err != nil {
		return err
	}
	for _, one := range relied.of(source.Members) {
		changed, err := r.members(one)
		if err != nil {
			return err
		}
		r.printf("%s: %s\n\n", one.line(), strings.Join(changed, ", "))
	}
	return nil
}

// bodies writes the diffs of bodies. Those to which the same happened share one.
func (r *review) bodies(ctx context.Context, relied *reliances) error {
	var order []string
	lines := map[string][]string{}
	for _, one := range relied.of(source.Body) {
		diff, err := r.diff(ctx, one.old, one.current)
		if err != nil {
			return err
		}
		if lines[diff] == nil {
			order = append(order, diff)
		}
		lines[diff] = append(lines[diff], one.line())
	}
	for _, diff := range order {
		r.printf("%s\n\n%s", strings.Join(lines[diff], "  \n"), block(diff))
	}
	return nil
}

// docs writes the diffs of doc comments where nothing else changed.
func (r *review) docs(ctx context.Context, relied *reliances) error {
	var text strings.Builder
	for _, one := range relied.of(source.Doc) {
		diff, err := r.docDiff(ctx, one.old, one.current)
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "@@ %s @@ %s\n%s", one.name(), one.where(), diff)
	}
	if text.Len() > 0 {
		r.printf("Doc comments:\n\n%s", block(text.String()))
	}
	return nil
}

// line says what it is about.
func (relied reliance) line() string {
	what := string(relied.change)
	if relied.change == source.Body && source.DocChanged(relied.old, relied.current) {
		what += " and doc comment"
	}
	return fmt.Sprintf("`%s`: **%s**; %s", relied.name(), what, relied.where())
}

// name is the whole name, without what all of them begin with.
func (relied reliance) name() string {
	return strings.TrimPrefix(relied.Package, upstreamPrefix) + "." + relied.Name
}

// where says in which files it is used.
func (relied reliance) where() string {
	const most = 3
	text := ""
	if relied.old != nil && relied.current != nil && isDeprecated(relied.current) && !isDeprecated(relied.old) {
		text = "**now deprecated**, "
	}
	if relied.behind != "" {
		text += fmt.Sprintf("behind `%s`, ", relied.behind)
	}
	text += "used in " + strings.Join(relied.users[:min(most, len(relied.users))], ", ")
	if more := len(relied.users) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if relied.only != "" {
		text += ", with " + relied.only + " alone"
	}
	return text
}

func isDeprecated(d *source.Declaration) bool { return strings.Contains(d.Doc, "Deprecated:") }

// unchanged counts the rest.
func (r *review) unchanged(relied *reliances) {
	counts := map[string]int{}
	for _, one := range relied.all {
		if one.change == source.Unchanged || one.change == source.Comments {
			counts[one.Package]++
		}
	}
	var packages []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		packages = append(packages, fmt.Sprintf("%s (%d)", strings.TrimPrefix(name, upstreamPrefix), counts[name]))
	}
	r.printf("## Relied on, and the same in both\n\nHow many declarations of which package below %s: %s.\n", upstreamPrefix, strings.Join(packages, ", "))
}
