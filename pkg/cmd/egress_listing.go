package cmd

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/kernel"
)

// listing describes a table and its rows.
type listing[T any] struct {
	columns []column[T]
	// ofNodes are the titles of the columns that only nodes know.
	ofNodes []string
	// clusterWide: the rows are of no namespace, so that 'kubectl egress' shows all of them by default.
	clusterWide bool
	// empty returns what is printed if there are no rows. where says where there are none.
	empty func(s standing, where string) string
	// rows returns the rows in the order of the table, those of wanted, which is the
	// snapshot of this node, or that with the plans of the whole cluster.
	rows func(node, wanted status.Snapshot) []T
	// key identifies a row, before and after a change.
	key         func(T) any
	namespaceOf func(T) string
	// document returns the JSON and YAML document.
	document func(standing, []T) any
}

type column[T any] struct {
	title string
	// wide: the column is printed with -o wide only.
	wide bool
	cell func(row T, now time.Time) string
}

// always returns text and where, however a node stands.
func always(text string) func(standing, string) string {
	return func(_ standing, where string) string { return text + where }
}

// command returns the command that prints the listing. ofPlan: a plan has it, so a node can list that of the whole cluster.
func (l listing[T]) command(o *egressOptions, use, short, long, example string, ofPlan bool) *cobra.Command {
	c := plain(use, short, long, example, func(c *cobra.Command) error { return l.run(c, o) })
	o.addListing(c)
	if ofPlan {
		o.addAll(c)
	}
	return c
}

// run prints the listing according to the flags.
func (l listing[T]) run(c *cobra.Command, o *egressOptions) error {
	if err := o.checkOutput(); err != nil {
		return err
	}
	p := &listingPrinter[T]{listing: l, options: o, out: c.OutOrStdout(), errOut: c.ErrOrStderr()}
	p.table.out = p.out
	source, err := o.source()
	if err != nil {
		return err
	}
	if p.namespace = o.namespace; o.desk != nil {
		p.namespace = o.desk.namespaceOf(l.clusterWide)
	}
	if o.watch {
		return source.Watch(c.Context(), p.show)
	}
	snapshot, err := source.Snapshot(c.Context())
	if err != nil {
		return err
	}
	return cmp.Or(p.show(snapshot), incomplete(snapshot.LeftOut))
}

// listingPrinter prints a listing once, or again after each change.
type listingPrinter[T any] struct {
	listing[T]
	options     *egressOptions
	out, errOut io.Writer
	table       table
	// namespace is the only one whose rows are shown; all if empty.
	namespace string

	// The state at the last print.
	printed  bool
	standing standing
	rows     []T
}

// show prints the differences from the last print.
func (p *listingPrinter[T]) show(s status.Snapshot) error {
	wanted := s
	if p.options.all {
		wanted = ofCluster(s)
	}
	rows, elsewhere := p.rowsOf(s, wanted)
	now := standingOf(s)
	first, before, then := !p.printed, p.rows, p.standing
	p.printed, p.rows, p.standing = true, rows, now
	if !slices.Equal(then.LeftOut, now.LeftOut) {
		if err := tellLeftOut(p.errOut, now.LeftOut); err != nil {
			return err
		}
	}
	switch p.options.output {
	case asJSON, asYAML:
		if !first && reflect.DeepEqual(then, now) && reflect.DeepEqual(before, rows) {
			return nil
		}
		return printDocument(p.out, p.document(now, rows), p.options.output, p.options.watch, first)
	}
	if !slices.Equal(then.Problems, now.Problems) {
		if err := warn(p.errOut, now.Problems); err != nil {
			return err
		}
	}
	if first && len(rows) == 0 {
		text := asFarAsRead(p.empty(now, p.where(elsewhere)), now.LeftOut)
		if _, err := fmt.Fprintln(p.errOut, text); err != nil || !p.options.watch {
			return err
		}
	}
	if p.options.watch {
		return p.printChanges(before, rows, first, s.Time)
	}
	cells := p.header(first)
	for _, row := range rows {
		cells = append(cells, p.cells(row, s.Time))
	}
	return p.table.write(cells...)
}

// rowsOf returns the rows of the namespace that is shown, and how many there are in others.
func (p *listingPrinter[T]) rowsOf(node, wanted status.Snapshot) (rows []T, elsewhere int) {
	all := p.listing.rows(node, wanted)
	count := len(all)
	rows = slices.DeleteFunc(all, func(row T) bool { return p.namespace != "" && p.namespaceOf(row) != p.namespace })
	return rows, count - len(rows)
}

// where names what was looked at: the namespace whose rows are shown, with how many rows others have, this node, or everything.
func (p *listingPrinter[T]) where(elsewhere int) string {
	here := ""
	if p.options.desk == nil && !p.options.all && !p.clusterWide {
		here = " on this node"
	}
	switch {
	case p.namespace == "":
		return cmp.Or(here, " in any namespace")
	case elsewhere == 0:
		return here + " in the namespace " + p.namespace
	}
	return fmt.Sprintf("%s in the namespace %s (in others: %d)", here, p.namespace, elsewhere)
}

// The events of a watch, with kubectl's names (kubectl get --output-watch-events).
const (
	eventAdded    = "ADDED"
	eventModified = "MODIFIED"
	eventDeleted  = "DELETED"
)

// printChanges prints each row that was added, modified or deleted between before and after.
func (p *listingPrinter[T]) printChanges(before, after []T, first bool, now time.Time) error {
	var lines [][]string
	for _, header := range p.header(first) {
		lines = append(lines, append([]string{fmt.Sprintf("%-*s", len(eventModified), "EVENT")}, header...))
	}
	line := func(event string, row T) { lines = append(lines, append([]string{event}, p.cells(row, now)...)) }
	old := make(map[any]T, len(before))
	for _, row := range before {
		old[p.key(row)] = row
	}
	for _, row := range after {
		was, known := old[p.key(row)]
		delete(old, p.key(row))
		switch {
		case !known:
			line(eventAdded, row)
		case !reflect.DeepEqual(was, row):
			line(eventModified, row)
		}
	}
	for _, row := range before {
		if _, gone := old[p.key(row)]; gone {
			line(eventDeleted, row)
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return p.table.write(lines...)
}

// header returns the row of headers, or none if it must not be printed.
func (p *listingPrinter[T]) header(first bool) [][]string {
	if !first || p.options.noHeaders {
		return nil
	}
	var titles []string
	for _, c := range p.columns {
		if p.shows(c) {
			titles = append(titles, c.title)
		}
	}
	return [][]string{titles}
}

func (p *listingPrinter[T]) shows(c column[T]) bool {
	return (!c.wide || p.options.output == asWide) && (p.options.desk == nil || !slices.Contains(p.ofNodes, c.title))
}

func (p *listingPrinter[T]) cells(row T, now time.Time) []string {
	var cells []string
	for _, c := range p.columns {
		if p.shows(c) {
			cells = append(cells, c.cell(row, now))
		}
	}
	return cells
}

// printDocument prints JSON or YAML. Of several documents each JSON document is one line, and YAML
// documents are separated by three dashes. The API server does not validate the names of pods in
// EndpointSlices, so they may have any characters.
func printDocument(out io.Writer, document any, output string, several, first bool) error {
	text, err := json.Marshal(document)
	switch {
	case err != nil:
	case output == asYAML:
		// JSON allows characters that YAML does not.
		text, err = yaml.JSONToYAML([]byte(kernel.Printable(string(text))))
		if several && !first {
			text = append([]byte("---\n"), text...)
		}
	case several:
		text = append(escapeJSON(text), '\n')
	default:
		var indented bytes.Buffer
		err = json.Indent(&indented, escapeJSON(text), "", "  ")
		text = append(indented.Bytes(), '\n')
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", output, err)
	}
	_, err = out.Write(text)
	return err
}

// escapeJSON escapes unprintable characters that JSON allows in strings, for example the control
// characters of terminals (U+0080 to U+009F).
func escapeJSON(text []byte) []byte {
	escaped := make([]byte, 0, len(text))
	for _, r := range string(text) {
		switch {
		case unicode.IsPrint(r):
			escaped = utf8.AppendRune(escaped, r)
		case r < 0x10000:
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			escaped = fmt.Appendf(escaped, `\u%04x\u%04x`, high, low)
		}
	}
	return escaped
}
