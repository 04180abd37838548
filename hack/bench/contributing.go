package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/origin-node/hack/bench/scale"
)

const scaleFile = "hack/bench/README.adoc"

// scaled is where hack/bench/README.adoc has its table of clusters of several sizes.
var scaled = markers{"// scale: begin\n", "// scale: end\n"}

// scaleTable returns that table: a line for each figure, a column for each size.
func (p published) scaleTable() string {
	var sizes, names []string
	values := map[[2]string]string{}
	for _, r := range p.rows {
		name, ours := strings.CutPrefix(r[nameColumn], scale.Prefix)
		if !ours {
			continue
		}
		if !slices.Contains(sizes, r[atColumn]) {
			sizes = append(sizes, r[atColumn])
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		values[[2]string{name, r[atColumn]}] = r[valueColumn]
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "[cols=\"5%s\"]\n|===\n| Figure | %s\n\n", strings.Repeat(",2", len(sizes)), strings.Join(sizes, " | "))
	for _, name := range names {
		fmt.Fprintf(&text, "| %s", name)
		for _, size := range sizes {
			fmt.Fprintf(&text, " | %s", values[[2]string{name, size}])
		}
		text.WriteByte('\n')
	}
	text.WriteString("|===\n")
	return text.String()
}
