// Package patches holds the series that vendor/k8s.io/kubernetes carries on top of its
// release, so that a binary can tell what it was built with. See README.md beside it.
package patches

import (
	"embed"
	"io/fs"
	"strings"
)

//go:embed *.patch
var files embed.FS

// Patch is one patch of the series.
type Patch struct {
	// Number is its place in the series, for example "0001".
	Number string
	// Subject begins with OpenShift's carry mark, for example "UPSTREAM: <carry>:".
	Subject string
}

// List returns the series in order.
func List() []Patch {
	names, err := fs.Glob(files, "*.patch") // sorted
	if err != nil {
		panic(err) // only for a malformed pattern
	}
	var series []Patch
	for _, name := range names {
		content, err := files.ReadFile(name)
		if err != nil {
			panic(err) // the file was compiled in
		}
		number, _, _ := strings.Cut(name, "-")
		series = append(series, Patch{Number: number, Subject: subject(string(content))})
	}
	return series
}

// subject returns the mail header's subject without "[PATCH]", unfolded (RFC 5322 section
// 2.2.3).
func subject(mail string) string {
	_, rest, _ := strings.Cut(mail, "\nSubject: ")
	header, _, _ := strings.Cut(strings.ReplaceAll(rest, "\n ", " "), "\n")
	return strings.TrimSpace(strings.TrimPrefix(header, "[PATCH]"))
}
