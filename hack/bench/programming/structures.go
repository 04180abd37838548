package programming

import (
	"context"
	"errors"
	"fmt"

	"github.com/openshift/origin-node/hack/bench/figure"
	"github.com/openshift/origin-node/hack/bench/objects"
	"github.com/openshift/origin-node/pkg/egress/placement"
)

// ofSize is a cluster of so many bindings.
func ofSize(bindings int) objects.Size {
	const endpoints = 10
	return objects.Size{Services: bindings / endpoints, Endpoints: endpoints, Every: 1, Nodes: 2 * endpoints}
}

// What a visit for structures measures.
const (
	installCPU = iota // from the first event until the kernel has all
	writeCPU          // the writer alone
	updateCPU
	updateWall
	eventCPU // from the event of a changed pod until the kernel has it and its flows are checked
	execs
	messages
)

// structures measures what happens between events and the kernel with few and with many bindings.
func structures(ctx context.Context, s figure.Settings) ([]figure.Result, error) {
	few, many := ofSize(100), ofSize(100_000)
	if s.Smoke {
		few, many = ofSize(20), ofSize(200)
	}
	var cases []figure.Case
	for _, m := range allMeans {
		changes := m.changes
		if s.Smoke {
			changes = 2
		}
		for _, size := range []objects.Size{few, many} {
			cases = append(cases, figure.Case{
				Name: fmt.Sprintf("means=%s/n=%d", m.name, size.Bindings()),
				Quantities: []figure.Quantity{
					installCPU: {Name: "Install", Unit: "cpu-ms/op", N: 1}, writeCPU: {Name: "Write", Unit: "cpu-ms/op", N: 1},
					updateCPU: {Name: "Update", Unit: "cpu-ms/op", N: changes}, updateWall: {Name: "Update", Unit: "ms/op", N: changes},
					eventCPU: {Name: "Event", Unit: "cpu-ms/op", N: changes},
					execs:    {Name: "Same", Unit: "execs/op", N: 1}, messages: {Name: "Same", Unit: "messages/op", N: 1},
				},
				Measure: func(ctx context.Context) ([]float64, error) { return m.measureStructure(ctx, size, changes) },
			})
		}
	}
	values, err := s.AtMost(3).Measure(ctx, cases...)
	if err != nil {
		return nil, err
	}
	var results []figure.Result
	for i, m := range allMeans {
		results = append(results, m.structureRows(few, many, values[2*i], values[2*i+1])...)
	}
	return results, nil
}

func (m means) measureStructure(ctx context.Context, size objects.Size, changes int) (values []float64, err error) {
	v, err := newVisit(ctx, m, placement.Cluster, size)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, v.close()) }()
	installed := v.order(install, 1)
	v.order(elsewhere, 2) // the first ones are slower
	changed := v.order(elsewhere, changes)
	v.holds(ctx, size.Bindings())
	ran, sent := v.traced(ctx, elsewhere, same)
	written := v.order(write, 1)
	v.order(update, 2)
	updated := v.order(update, changes)
	v.holds(ctx, size.Bindings())
	return []float64{
		installCPU: figure.Milliseconds(installed.CPU), writeCPU: figure.Milliseconds(written.CPU),
		updateCPU: figure.Milliseconds(updated.CPU), updateWall: figure.Milliseconds(updated.Wall),
		eventCPU: figure.Milliseconds(changed.CPU), execs: ran, messages: sent,
	}, v.err
}

// structureRows are the rows for one means.
func (m means) structureRows(fewSize, manySize objects.Size, few, many []figure.Distribution) (results []figure.Result) {
	less, at := figure.Size(fewSize.Bindings()), figure.Size(manySize.Bindings())
	row := func(name, at string, measured figure.Distribution, unit string, target figure.Target) {
		results = append(results, figure.Result{Name: name + ", " + m.name, At: at, Measured: measured, Unit: unit, Target: target})
	}
	row("full install, event to kernel", at, many[installCPU].Scale(1e-3), "s CPU", m.full)
	row("full write", at, many[writeCPU].Scale(1e-3), "s CPU", figure.None)
	row("write of one change", less, few[updateCPU], "ms CPU", figure.None)
	row("write of one change", at, many[updateCPU], "ms CPU", m.change)
	row("write of one change, wall time", at, many[updateWall], "ms", figure.None)
	row(fmt.Sprintf("write of one change ÷ the same at %s, CPU", less), at, figure.Ratio(many[updateCPU], few[updateCPU]), "", m.growth)
	row("write of one change ÷ full write, CPU", at, figure.Ratio(many[updateCPU], many[writeCPU]), "", m.share)
	row("one change, event to kernel, its flows checked", less, few[eventCPU], "ms CPU", figure.None)
	row("one change, event to kernel, its flows checked", at, many[eventCPU], "ms CPU", figure.None)
	for _, size := range []struct {
		at     string
		values []figure.Distribution
	}{{less, few}, {at, many}} {
		row("sync without a change, programs run", size.at, size.values[execs], "execs", figure.AtMost(0))
		row("sync without a change, sent to netlink", size.at, size.values[messages], "messages", figure.AtMost(0))
	}
	return results
}
