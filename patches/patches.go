// Package patches holds the series that vendored modules carry on top of their releases, first of all
// k8s.io/kubernetes, so that a binary can tell what it was built with. See README.md beside it.
package patches

import (
	"embed"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// A branch's own patches lie in a folder, which only some branches have; a pattern that matches
// nothing does not compile. Neither does this one where such a folder is empty: remove it.
//
//go:embed *
var files embed.FS

// Kubernetes is the path of the module whose series lies right in patches/.
const Kubernetes = "k8s.io/kubernetes"

// Series is what a module carries.
type Series struct {
	// Module is its path.
	Module string
	// Patches are in the order in which they are applied.
	Patches []Patch
}

// Patch is one patch of a series.
type Patch struct {
	// Number is its place in the series, for example "0001".
	Number string
	// Subject begins with OpenShift's carry mark, for example "UPSTREAM: <carry>:".
	Subject string
}

// List returns the series of all modules, for a release of Kubernetes, for example v1.36.4. That of Kubernetes comes
// first: the shared patches, but for those in whose place the release's branch has its own, and what it has behind
// them. The others follow in the order of their paths.
func List(version string) []Series {
	return list(files, version)
}

func list(files fs.FS, version string) []Series {
	all := []Series{{Kubernetes, ofKubernetes(files, version)}}
	for _, module := range others(files) {
		all = append(all, Series{module, in(files, module+"/*.patch")})
	}
	return all
}

// others returns the paths of the other modules with patches, which lie in the folder with that path.
func others(files fs.FS) []string {
	var modules []string
	err := fs.WalkDir(files, ".", func(name string, _ fs.DirEntry, err error) error {
		folder := path.Dir(name)
		if path.Ext(name) == ".patch" && folder != "." && !strings.HasPrefix(folder, "release-") && !slices.Contains(modules, folder) {
			modules = append(modules, folder)
		}
		return err
	})
	if err != nil {
		panic(err) // the folder was compiled in
	}
	slices.Sort(modules)
	return modules
}

func ofKubernetes(files fs.FS, version string) []Patch {
	series := in(files, "*.patch")
	for _, own := range in(files, branch(version)+"/*.patch") {
		i := slices.IndexFunc(series, func(p Patch) bool { return p.Number == own.Number })
		if i < 0 {
			series = append(series, own)
			continue
		}
		series[i] = own
	}
	return series
}

// branch returns the release branch of a version.
func branch(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	return "release-" + strings.Join(parts[:min(2, len(parts))], ".")
}

// in returns the patches whose names match, in order.
func in(files fs.FS, pattern string) []Patch {
	names, err := fs.Glob(files, pattern) // sorted
	if err != nil {
		panic(err) // only for a malformed pattern
	}
	var found []Patch
	for _, name := range names {
		content, err := fs.ReadFile(files, name)
		if err != nil {
			panic(err) // the file was compiled in
		}
		number, _, _ := strings.Cut(path.Base(name), "-")
		found = append(found, Patch{Number: number, Subject: subject(string(content))})
	}
	return found
}

// subject returns the mail header's subject without "[PATCH]", unfolded (RFC 5322 section
// 2.2.3).
func subject(mail string) string {
	_, rest, _ := strings.Cut(mail, "\nSubject: ")
	header, _, _ := strings.Cut(strings.ReplaceAll(rest, "\n ", " "), "\n")
	return strings.TrimSpace(strings.TrimPrefix(header, "[PATCH]"))
}
