package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"text/tabwriter"

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
	for _, r := range results {
		fmt.Fprintf(&text, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, r.At, r.Value(), r.Spread(), r.Wants(), r.Verdict())
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	if _, err := table.Write(text.Bytes()); err != nil {
		return err
	}
	return table.Flush()
}
