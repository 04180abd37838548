// Command grafana prints a Grafana dashboard. Standard input tells, as JSON, which metrics there are and what the alerts
// ask for: see hack/dashboard, which runs this. It fails if
//
//   - a query of a panel, or of an alert, does not parse, or cannot have a result: of a metric or a label that does not
//     exist, of a counter as if it were a gauge, of two sides that have no labels in common to match by;
//   - the legend of a panel does not tell its lines apart;
//   - no panel shows a metric.
//
// The dashboard is generated, although its JSON is committed as well, and not edited by hand: 250 lines of panels (panels.go) say
// what 4,200 lines of JSON do, which also have the help text of each metric a second time, and numbers and places of panels.
// Without the generator only draw.go and panels.go would go, 420 lines: the checks above would still be needed.
//
// It is a module of its own, so that what Grafana's and Prometheus' libraries require stays out of the product's go.mod
// and vendor/.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// input is what there is.
type input struct {
	Metrics []metric `json:"metrics"`
	Alerts  []struct {
		Alert string `json:"alert"`
		Expr  string `json:"expr"`
	} `json:"alerts"`
}

func run(stdin io.Reader, stdout io.Writer) error {
	var in input
	if err := json.NewDecoder(stdin).Decode(&in); err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	c := newCatalog(in.Metrics)
	var problems []error
	for _, a := range in.Alerts {
		if _, err := c.understand(a.Expr); err != nil {
			problems = append(problems, fmt.Errorf("alert %s: %w", a.Alert, err))
		}
	}
	problems = append(problems, c.check(rows), c.unshown(rows))
	if err := errors.Join(problems...); err != nil {
		return err
	}
	board, err := c.draw(rows)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(stdout)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(board)
}
