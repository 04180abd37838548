package programming

import (
	"context"
	"errors"
	"fmt"

	"github.com/openshift/origin-node/hack/bench/figure"
	"github.com/openshift/origin-node/hack/bench/objects"
	"github.com/openshift/origin-node/pkg/egress/placement"
)

// What a visit of a typical node measures.
const (
	movedWall = iota
	elsewhereCPU
	elsewhereExecs
	elsewhereMessages
)

// typical measures a node on which few of the cluster's pods are, in either scope.
func typical(ctx context.Context, s figure.Settings) ([]figure.Result, error) {
	size, moves, changes := objects.Typical(10_000), 50, 500
	if s.Smoke {
		size, moves, changes = objects.Typical(100), 2, 2
	}
	scopes := []placement.Scope{placement.Node, placement.Cluster}
	var cases []figure.Case
	for _, m := range allMeans {
		for _, scope := range scopes {
			changes := changes
			if scope == placement.Cluster {
				changes = min(changes, m.changes)
			}
			cases = append(cases, figure.Case{
				Name: fmt.Sprintf("means=%s/scope=%s/endpoints=%d", m.name, scope, size.All()),
				Quantities: []figure.Quantity{
					movedWall: {Name: "Moved", Unit: "ms/op", N: moves}, elsewhereCPU: {Name: "Elsewhere", Unit: "cpu-µs/op", N: changes},
					elsewhereExecs: {Name: "Elsewhere", Unit: "execs/op", N: 1}, elsewhereMessages: {Name: "Elsewhere", Unit: "messages/op", N: 1},
				},
				Measure: func(ctx context.Context) ([]float64, error) {
					return m.measureTypical(ctx, scope, size, moves, changes)
				},
			})
		}
	}
	values, err := s.AtMost(5).Measure(ctx, cases...)
	if err != nil {
		return nil, err
	}
	var results []figure.Result
	for i, m := range allMeans {
		inNode, inCluster := values[2*i], values[2*i+1]
		row := func(name string, measured figure.Distribution, unit string, target figure.Target) {
			results = append(results, figure.Result{Name: name + ", " + m.name, At: figure.Size(size.All()), Measured: measured, Unit: unit, Target: target})
		}
		row("a pod elsewhere changes, CPU", inNode[elsewhereCPU], "µs CPU", figure.AtMost(30))
		row("a pod elsewhere changes, programs run", inNode[elsewhereExecs], "execs", figure.AtMost(0))
		row("a pod elsewhere changes, sent to netlink", inNode[elsewhereMessages], "messages", figure.AtMost(0))
		row("a pod elsewhere changes, scope cluster, CPU", inCluster[elsewhereCPU], "µs CPU", figure.None)
		row("a pod comes here, time until it is bound", inNode[movedWall], "ms", figure.None)
		row("a pod comes here, that time ÷ the same in scope cluster", figure.Ratio(inNode[movedWall], inCluster[movedWall]), "", figure.AtMost(1.05))
	}
	return results, nil
}

func (m means) measureTypical(ctx context.Context, scope placement.Scope, size objects.Size, moves, changes int) (values []float64, err error) {
	v, err := newVisit(ctx, m, scope, size)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, v.close()) }()
	v.order(install, 1)
	v.order(moved, 2) // the first ones are slower
	came := v.order(moved, moves)
	changed := v.order(elsewhere, changes)
	ran, sent := v.traced(ctx, moved, elsewhere, same)
	want := size.Bindings()
	if scope == placement.Node {
		want = bindingsHere(size) + 2 + moves + 1 // the last one traced
	}
	v.holds(ctx, want)
	return []float64{
		movedWall: figure.Milliseconds(came.Wall), elsewhereCPU: 1000 * figure.Milliseconds(changed.CPU), elsewhereExecs: ran, elsewhereMessages: sent,
	}, v.err
}

// bindingsHere is how many endpoints of Services with external IPs are on this node at the beginning.
func bindingsHere(size objects.Size) (count int) {
	for i := 0; i < size.Services; i += size.Every {
		for _, endpoint := range size.Slice(i).Endpoints {
			if *endpoint.NodeName == objects.Node(0) {
				count++
			}
		}
	}
	return count
}
