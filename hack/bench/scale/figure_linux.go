package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/openshift/origin-node/hack/bench/figure"
	"github.com/openshift/origin-node/hack/bench/objects"
	"github.com/openshift/origin-node/hack/cluster"
)

const (
	binaryVariable = "OPENSHIFT"
	// processesVariable says how many node processes run; as many as fit, if it is not given.
	processesVariable = "PROCESSES"
)

// Prefix begins the names of the results.
const Prefix = "scale: "

// Figure is that of this package.
func Figure() figure.Figure { return figure.Figure{Name: "scale", Lacks: lacks, Run: run} }

func lacks() error {
	for _, variable := range []string{binaryVariable, cluster.BinariesVariable} {
		if os.Getenv(variable) == "" {
			return fmt.Errorf("the environment variable %s is not set: run make bench-scale", variable)
		}
	}
	return nil
}

// size is what differs between the clusters that are compared.
type size struct{ nodes, addresses int }

func (s size) String() string {
	return fmt.Sprintf("%s nodes, %s addresses", figure.Size(s.nodes), figure.Size(s.addresses))
}

// plan says what is measured, and for how long.
type plan struct {
	objects objects.Size
	sizes   []size
	// processes is how many nodes are real ones.
	processes int
	// window is how long each state is measured.
	window time.Duration
	// look is between two looks whether a node has become quiet.
	look time.Duration
	// reporting is how often each Node's status is written.
	reporting time.Duration
	// pace is between two changed EndpointSlices.
	pace time.Duration
	// moves is how often something changes or moves, to see how fast nodes follow.
	moves int
}

// members is how many of the real nodes are in the pool. Two are not: one hears direct announcements, the other does not.
func (p plan) members() int { return min(3, p.processes-2) }

var (
	full = plan{
		objects: objects.Size{Services: 10_000, Endpoints: 10, Every: 10, Nodes: 5_000},
		sizes:   []size{{1_000, 1_000}, {5_000, 1_000}, {5_000, 100}},
		window:  30 * time.Second, look: time.Second, pace: 100 * time.Millisecond, moves: 3,
		reporting: 5 * time.Minute, // the kubelet's nodeStatusReportFrequency
	}
	smoke = plan{
		objects: objects.Size{Services: 100, Endpoints: 10, Every: 10, Nodes: 50},
		sizes:   []size{{20, 10}, {50, 5}}, processes: 4,
		window: 2 * time.Second, look: 200 * time.Millisecond, reporting: 20 * time.Second, pace: 100 * time.Millisecond, moves: 1,
	}
)

func run(ctx context.Context, s figure.Settings) (results []figure.Result, err error) {
	p := smoke
	if !s.Smoke {
		p = full
		if p.processes, err = processes(); err != nil {
			return nil, err
		}
	}
	w, err := newWorld(ctx, s, p)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	var bySize [][]figure.Result
	for _, size := range p.sizes {
		rows, err := w.visit(ctx, size)
		if err != nil {
			return sideBySide(bySize), fmt.Errorf("%s: %w", size, err)
		}
		bySize = append(bySize, rows)
	}
	return sideBySide(bySize), nil
}

// sideBySide returns the rows of all sizes in such an order that what is to be compared stands together.
func sideBySide(bySize [][]figure.Result) (results []figure.Result) {
	if len(bySize) == 0 {
		return nil
	}
	for i := range bySize[0] {
		for _, rows := range bySize {
			results = append(results, rows[i])
		}
	}
	return results
}

var memAvailable = regexp.MustCompile(`(?m)^MemAvailable:\s+(\d+) kB$`)

// processes is how many fit into the memory that is available, beside the control plane and the stand-ins. Each needs some for
// its kernel's rules as well.
func processes() (int, error) {
	const least, most, each, others = 4, 6, 1 << 20, 5 << 20 // KiB
	if text := os.Getenv(processesVariable); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < least {
			return 0, fmt.Errorf("invalid %s=%s: expected a number from %d", processesVariable, text, least)
		}
		return n, nil
	}
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	match := memAvailable.FindSubmatch(text)
	if match == nil {
		return 0, errors.New("/proc/meminfo does not say how much memory is available")
	}
	available, err := strconv.Atoi(string(match[1]))
	if err != nil {
		return 0, err
	}
	n := min(most, (available-others)/each)
	if n < least {
		return 0, fmt.Errorf("%d MiB of memory are available, want %d", available>>10, (others+least*each)>>10)
	}
	return n, nil
}

// sheet collects rows of a size.
type sheet struct {
	figure.Settings
	at   size
	rows []figure.Result
}

// add adds a row. It has one value for each node, or for each time that something was measured.
func (t *sheet) add(name, unit string, values ...float64) {
	measured := figure.Distribution(values)
	t.Record(fmt.Sprintf("Scale/%s/nodes=%d/addresses=%d", strings.ReplaceAll(name, " ", "-"), t.at.nodes, t.at.addresses), len(values), measured.Median(), strings.ReplaceAll(unit, " ", "-"))
	t.rows = append(t.rows, figure.Result{Name: Prefix + name, At: t.at.String(), Measured: measured, Unit: unit})
}
