package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/openshift/origin-node/hack/bench/figure"
)

// record collects what benchstat reads.
type record struct{ text bytes.Buffer }

func newRecord(here machine) *record {
	r := &record{}
	fmt.Fprintf(&r.text, "goos: %s\ngoarch: %s\npkg: github.com/openshift/origin-node/hack/bench\ncpu: %s\n",
		runtime.GOOS, runtime.GOARCH, here.cpu)
	return r
}

// add is [figure.Settings].Record. A name ends in the number of processors, as in go test.
func (r *record) add(benchmark string, n int, value float64, unit string) {
	fmt.Fprintf(&r.text, "Benchmark%s-%d\t%d\t%s %s\n", benchmark, runtime.GOMAXPROCS(0), n, figure.Number(value), unit)
}

func (r *record) save(file string) error {
	if file == "" {
		return nil
	}
	return os.WriteFile(file, r.text.Bytes(), 0o644)
}

// tell prints the table for the terminal.
func tell(stdout io.Writer, here machine, results []figure.Result) error {
	if len(results) == 0 {
		return nil
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s\n\nfigure\tat\tmeasured\tmiddle half\ttarget\t\n", here)
	for _, r := range slices.Concat(byName(results)...) {
		fmt.Fprintf(&text, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, r.At, r.Value(), r.Spread(), r.Wants(), r.Verdict())
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	if _, err := table.Write(text.Bytes()); err != nil {
		return err
	}
	return table.Flush()
}

// The table of README.md stands between these.
const (
	begin = "<!-- performance: begin -->\n"
	end   = "<!-- performance: end -->\n"
)

// replace returns text with table between the markers.
func replace(text, table []byte) ([]byte, error) {
	before, rest, opened := bytes.Cut(text, []byte(begin))
	_, after, closed := bytes.Cut(rest, []byte(end))
	if !opened || !closed {
		return nil, errors.New("has no lines " + strings.TrimSpace(begin) + " and " + strings.TrimSpace(end) + ", between which the table would go")
	}
	return slices.Concat(before, []byte(begin), table, []byte(end), after), nil
}

// byName puts the sizes of a figure next to each other, figures in the order of their first.
func byName(results []figure.Result) [][]figure.Result {
	var all [][]figure.Result
	at := map[string]int{}
	for _, r := range results {
		i, there := at[r.Name]
		if !there {
			i = len(all)
			at[r.Name], all = i, append(all, nil)
		}
		all[i] = append(all[i], r)
	}
	return all
}

// section is the table for README.md. The sizes of a figure share a line.
func section(here machine, now time.Time, rounds int, results []figure.Result) []byte {
	var text bytes.Buffer
	fmt.Fprintf(&text, "Measured on %s in %d rounds, programming and process in up to 5 and 3: %s.\n\n| figure | measured | target | |\n|---|---|---|---|\n", now.UTC().Format(time.DateOnly), rounds, here)
	for _, same := range byName(results) {
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", same[0].Name,
			sizes(same, figure.Result.Value), sizes(same, figure.Result.Wants), sizes(same, figure.Result.Verdict))
	}
	return text.Bytes()
}

// sizes joins what is told of one figure at several sizes, and says it once if it is the
// same at all.
func sizes(results []figure.Result, tell func(figure.Result) string) string {
	var all []string
	for _, r := range results {
		all = append(all, tell(r))
	}
	if len(slices.Compact(slices.Clone(all))) == 1 && len(all) > 1 {
		return all[0]
	}
	var told []string
	for i, r := range results {
		switch {
		case all[i] == "":
		case r.At == "":
			told = append(told, all[i])
		default:
			told = append(told, r.At+": "+all[i])
		}
	}
	return strings.Join(told, "<br>")
}
