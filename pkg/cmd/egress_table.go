package cmd

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/openshift/origin-node/pkg/kernel"
)

// gap separates two columns.
const gap = "   "

// table prints rows of cells in columns, each as wide as its widest cell so far.
type table struct {
	out    io.Writer
	indent string
	widths []int
}

// write prints rows, all with the same number of cells, in one write.
func (t *table) write(rows ...[]string) error {
	for _, row := range rows {
		for i, cell := range row {
			if i == len(t.widths) {
				t.widths = append(t.widths, 0)
			}
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(cell))
		}
	}
	var lines bytes.Buffer
	for _, row := range rows {
		line := t.indent
		for i, cell := range row {
			line += kernel.Printable(cell)
			if i < len(row)-1 {
				line += strings.Repeat(" ", t.widths[i]-utf8.RuneCountInString(cell)) + gap
			}
		}
		lines.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, err := t.out.Write(lines.Bytes())
	return err
}

// orNone returns text, or <none> if it is empty.
func orNone(text string) string {
	if text == "" {
		return "<none>"
	}
	return text
}

// age returns the time since then as kubectl prints it (k8s.io/apimachinery, pkg/util/duration):
// the longer, the coarser.
func age(since, now time.Time) string {
	d := max(now.Sub(since), 0).Truncate(time.Second)
	const day, year = 24 * time.Hour, 365 * 24 * time.Hour
	two := func(large, small time.Duration, units string) string {
		text := fmt.Sprintf("%d%c", d/large, units[0])
		if rest := d % large / small; rest > 0 {
			text += fmt.Sprintf("%d%c", rest, units[1])
		}
		return text
	}
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < 10*time.Minute:
		return two(time.Minute, time.Second, "ms")
	case d < 3*time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 8*time.Hour:
		return two(time.Hour, time.Minute, "hm")
	case d < 2*day:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d < 8*day:
		return two(day, time.Hour, "dh")
	case d < 2*year:
		return fmt.Sprintf("%dd", d/day)
	case d < 8*year:
		return two(year, day, "yd")
	}
	return fmt.Sprintf("%dy", d/year)
}
