package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/openshift/origin-node/hack/bench/figure"
)

const resultsFile = "hack/bench/RESULTS.md"

// published is what RESULTS.md says.
type published struct {
	machine string
	rows    []row
	// settled is the text behind the table: figures that are not measured any more.
	settled string
}

// row is a line of its table: the columns name, at, measured, middle half, target, verdict, rounds, date.
type row [8]string

// The columns that are looked for.
const (
	nameColumn = iota
	atColumn
	valueColumn
)

const (
	preamble       = "# What egress SNAT costs\n\n`make bench-readme` writes this file; README.adoc says how everything is measured. A value is the median of its rounds.\n\nMachine: "
	heading        = "\n\n| figure | at | measured | middle half | target | | rounds | date |\n|---|---|---|---|---|---|---|---|\n"
	settledHeading = "\n## Settled\n"
)

// load returns what RESULTS.md says; nothing if there is no such file, or it is to be measured anew. Results of
// different machines do not go together.
func load(here machine, anew bool) (published, error) {
	empty := published{machine: here.String()}
	text, err := os.ReadFile(resultsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return empty, nil
	}
	if err != nil {
		return empty, err
	}
	p, err := parseResults(string(text))
	if anew && err == nil {
		empty.settled = p.settled
		return empty, nil
	}
	if err == nil && p.machine != empty.machine {
		err = fmt.Errorf("measured on another machine (%s): measure everything here, without -run", p.machine)
	}
	if err != nil {
		return p, fmt.Errorf("%s: %w", resultsFile, err)
	}
	return p, nil
}

func parseResults(text string) (p published, err error) {
	text, preambled := strings.CutPrefix(text, preamble)
	machine, table, headed := strings.Cut(text, heading)
	if !preambled || !headed {
		return p, errors.New("not in the format that -publish writes")
	}
	p.machine = machine
	table, settled, remembered := strings.Cut(table, settledHeading)
	if remembered {
		p.settled = settledHeading + settled
	}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(strings.Trim(line, "|\n")), "|")
		if len(cells) != len(row{}) {
			return p, fmt.Errorf("%q has %d columns, want %d", line, len(cells), len(row{}))
		}
		var r row
		for i, cell := range cells {
			r[i] = strings.TrimSpace(cell)
		}
		p.rows = append(p.rows, r)
	}
	return p, nil
}

func (p published) String() string {
	var text bytes.Buffer
	text.WriteString(preamble + p.machine + heading)
	for _, r := range p.rows {
		fmt.Fprintf(&text, "| %s |\n", strings.Join(r[:], " | "))
	}
	text.WriteString(p.settled)
	return text.String()
}

// merge adds results, in the place of earlier ones with the same name and size. Other sizes follow the last row with
// the same name.
func (p *published) merge(results []figure.Result, now time.Time) {
	for _, result := range results {
		r := row{
			result.Name, result.At, result.Value(), result.Spread(), result.Wants(), result.Verdict(),
			strconv.Itoa(len(result.Measured)), now.UTC().Format(time.DateOnly),
		}
		at, replaced := len(p.rows), 0
		for i, other := range p.rows {
			if other[nameColumn] != r[nameColumn] {
				continue
			}
			at = i + 1
			if other[atColumn] == r[atColumn] {
				at, replaced = i, 1
				break
			}
		}
		p.rows = append(p.rows[:at:at], append([]row{r}, p.rows[at+replaced:]...)...)
	}
}

// value returns what was measured, with its unit.
func (p published) value(name, at string) (string, error) {
	for _, r := range p.rows {
		if r[nameColumn] == name && r[atColumn] == at {
			return r[valueColumn], nil
		}
	}
	return "", fmt.Errorf("%s has no row %q at %s yet: make bench-readme, perhaps with RUN", resultsFile, name, at)
}
