// Command dashboard writes images/node/dashboard.json, the Grafana dashboard of the metrics that the node exports. With
// -check it changes nothing, and fails if another one would be written.
//
// It tells the module in hack/dashboard/grafana which metrics the packages of extensions define, and what the alerts ask
// for. That module has the panels, and fails if they and the metrics do not fit together.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/openshift/origin-node/pkg/egress"
	"github.com/openshift/origin-node/pkg/extension"
	"github.com/openshift/origin-node/pkg/tunnel"
)

const (
	dashboardFile = "images/node/dashboard.json"
	alertsFile    = "images/node/alerts.yaml"
)

func main() {
	check := flag.Bool("check", false, "only compare "+dashboardFile+" with what would be written")
	flag.Parse()
	if err := run(context.Background(), *check); err != nil {
		fmt.Fprintf(os.Stderr, "dashboard: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, check bool) error {
	in, err := gather()
	if err != nil {
		return err
	}
	wanted, err := generate(ctx, in)
	if err != nil {
		return err
	}
	if !check {
		return os.WriteFile(dashboardFile, wanted, 0o644)
	}
	is, err := os.ReadFile(dashboardFile)
	if err != nil {
		return err
	}
	if !bytes.Equal(is, wanted) {
		return fmt.Errorf("%s is not up to date; run 'make dashboard'", dashboardFile)
	}
	return nil
}

// input is what the module in hack/dashboard/grafana reads.
type input struct {
	Metrics []extension.Metric `json:"metrics"`
	Alerts  []alert            `json:"alerts"`
}

type alert struct {
	Alert string `json:"alert"`
	Expr  string `json:"expr"`
}

func gather() (in input, err error) {
	in.Metrics = slices.Concat(egress.Metrics(), tunnel.Metrics())
	text, err := os.ReadFile(alertsFile)
	if err != nil {
		return in, err
	}
	var file struct {
		Groups []struct {
			Rules []alert `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return in, fmt.Errorf("%s: %w", alertsFile, err)
	}
	for _, group := range file.Groups {
		in.Alerts = append(in.Alerts, group.Rules...)
	}
	return in, nil
}

// generate returns the dashboard.
func generate(ctx context.Context, in input) ([]byte, error) {
	document, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, "go", "run", "-C", "hack/dashboard/grafana", "-trimpath", ".")
	command.Stdin, command.Stderr = bytes.NewReader(document), os.Stderr
	dashboard, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("hack/dashboard/grafana: %w", err)
	}
	return dashboard, nil
}
