package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Licences whose text is the same wherever it is: it stands in the file copyright once.
const (
	apache  = "Apache-2.0"
	mozilla = "MPL-2.0"
)

// goLicence is also that of Go's standard library and runtime, which are compiled in but not vendored.
const goLicence = "vendor/golang.org/x/sys/LICENSE"

const copyrightHeader = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: origin-node
Source: https://github.com/openshift/origin-node
Comment: The programs have parts of Go and of the modules below, which are in
 the folder vendor of the sources. A comment names the module and its version,
 by which the module's own sources are found, and has its NOTICE.
`

// copyright returns the licences of the repository in the folder root and of each vendored module, in Debian's machine-readable
// format (DEP 5), sorted. A module without a licence and a licence that is not known are errors.
func copyright(root string) ([]byte, error) {
	modules, err := vendored(root)
	if err != nil {
		return nil, err
	}
	licences, err := licencesIn(root)
	if err != nil {
		return nil, err
	}
	for _, module := range slices.Sorted(maps.Keys(modules)) {
		if !slices.ContainsFunc(licences, func(l licence) bool { return l.dir == "vendor/"+module }) {
			return nil, fmt.Errorf("vendor/%s has no file with a licence", module)
		}
	}
	var b bytes.Buffer
	b.WriteString(copyrightHeader)
	common := map[string]string{}
	for _, l := range licences {
		l.write(&b, modules)
		if l.isCommon() {
			common[l.name] = cmp.Or(common[l.name], l.text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(common)) {
		fmt.Fprintf(&b, "\nLicense: %s\n%s", name, indented(common[name]))
	}
	return b.Bytes(), nil
}

// vendored returns the version of each module of which vendor/ has packages.
func vendored(root string) (map[string]string, error) {
	list, err := os.ReadFile(filepath.Join(root, "vendor/modules.txt"))
	if err != nil {
		return nil, err
	}
	modules := map[string]string{}
	var module, version string
	for line := range strings.Lines(string(list)) {
		fields := strings.Fields(line)
		switch {
		case fields[0] == "#": // # MODULE VERSION, perhaps => MODULE VERSION
			module, version = fields[1], fields[len(fields)-1]
		case fields[0] != "##": // a package
			modules[module] = version
		}
	}
	return modules, nil
}

// licence is one that holds in a folder, unless one further down does.
type licence struct {
	dir  string // relative to the root; "." for our own
	name string // of SPDX; several are joined by "and"
	text string
	// notice is the text of a file NOTICE beside it.
	notice string
}

var (
	licenceFile = regexp.MustCompile(`(?i)^(licen[sc]e|copying)[^/]*$`)
	// notLicence are files of such a name with other contents: code, and the licence of documentation, which is in no package.
	notLicence = regexp.MustCompile(`\.(go|docs)$`)
	noticeFile = regexp.MustCompile(`(?i)^notice(\.(txt|md))?$`)
)

// licencesIn returns our own licence and those below vendor/, in the order of their folders.
func licencesIn(root string) ([]licence, error) {
	own, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	found := map[string]*licence{".": {dir: ".", text: string(own)}}
	err = fs.WalkDir(os.DirFS(root), "vendor", func(file string, entry fs.DirEntry, err error) error {
		name := path.Base(file)
		isLicence, isNotice := licenceFile.MatchString(name) && !notLicence.MatchString(name), noticeFile.MatchString(name)
		if err != nil || entry.IsDir() || !isLicence && !isNotice {
			return err
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		dir := path.Dir(file)
		if found[dir] == nil {
			found[dir] = &licence{dir: dir}
		}
		if isLicence {
			found[dir].text += string(text)
		} else {
			found[dir].notice += string(text)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var licences []licence
	for _, dir := range slices.Sorted(maps.Keys(found)) {
		l := *found[dir]
		if l.name = spdx(l.text); l.name == "" {
			return nil, fmt.Errorf("the licence in %s is not known; add what it says to hack/packages/documents/copyright.go", dir)
		}
		licences = append(licences, l)
	}
	return licences, nil
}

// says has what each licence says and no other does, white space apart, in the order in which several are named.
var says = []struct {
	name string
	text *regexp.Regexp
}{
	{apache, regexp.MustCompile(`Apache License,? Version 2\.0`)},
	{"BSD-2-Clause", regexp.MustCompile(`Redistribution and use in source and binary forms`)},
	{"BSD-3-Clause", regexp.MustCompile(`may be used to endorse or promote products`)},
	{"ISC", regexp.MustCompile(`Permission to use, copy, modify,? and(/or)? distribute this software for any purpose`)},
	{"MIT", regexp.MustCompile(`Permission is hereby granted, free of charge`)},
	{mozilla, regexp.MustCompile(`Mozilla Public License,? [Vv]ersion 2\.0`)},
}

// spdx names the licences that a text has; empty for none that is known.
func spdx(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	var names []string
	for _, licence := range says {
		if licence.text.MatchString(text) {
			names = append(names, licence.name)
		}
	}
	if slices.Contains(names, "BSD-3-Clause") { // which has the other one's sentence, too
		names = slices.DeleteFunc(names, func(name string) bool { return name == "BSD-2-Clause" })
	}
	return strings.Join(names, " and ")
}

// isCommon says whether the text is the same wherever it is.
func (l licence) isCommon() bool { return l.name == apache || l.name == mozilla }

// write appends the paragraph about the folder.
func (l licence) write(b *bytes.Buffer, modules map[string]string) {
	files, holders, comment := l.dir+"/*", l.holders(), ""
	if l.dir == "." {
		files, holders = "*", "the authors of origin-node"
	} else {
		module := strings.TrimPrefix(l.dir, "vendor/")
		for modules[module] == "" && module != "." { // a folder of one
			module = path.Dir(module)
		}
		comment = module + " " + modules[module]
		holders = cmp.Or(holders, "the authors of "+module)
	}
	if l.dir == path.Dir(goLicence) {
		comment += "\nIt is also the licence of Go itself."
	}
	fmt.Fprintf(b, "\nFiles: %s\nCopyright: %s\nLicense: %s\n", files, holders, l.name)
	if !l.isCommon() {
		b.WriteString(indented(l.text))
	}
	if comment != "" {
		fmt.Fprintf(b, "Comment:\n%s", indented(strings.TrimSpace(comment+"\n\n"+l.notice)))
	}
}

var holderLine = regexp.MustCompile(`(?im)^[^\w\n]*copyright (?:\(c\)|©|\d).*$`)

// holders are the lines that tell who has the copyright, without those of the Apache License's appendix.
func (l licence) holders() string {
	var lines []string
	for _, line := range holderLine.FindAllString(l.text, -1) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.Join(slices.Compact(lines), "\n ")
}

// indented is text as the value of a field, after its first line.
func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.Trim(text, "\n") + "\n") {
		line = strings.TrimRight(line, " \t\r\n\f")
		fmt.Fprintf(&b, " %s\n", cmp.Or(line, "."))
	}
	return b.String()
}
