package figure

import (
	"context"
	"fmt"
	"math/rand/v2"
)

// Figure is one benchmark, or a family of them that share what is costly to set up.
type Figure struct {
	// Name selects it, for example flows/1000.
	Name string
	// Run measures. It undoes what it has set up also when ctx ends early. An error
	// means that it could not measure, or that what it measured did the wrong thing; slowness
	// is none.
	Run func(ctx context.Context, s Settings) ([]Result, error)
	// Lacks, if not nil, says what Run would fail for at once: what is not installed, or
	// not set.
	Lacks func() error
}

// Settings say how to measure.
type Settings struct {
	// Smoke: see in seconds that everything works, at the smallest sizes; nobody looks at
	// the values.
	Smoke bool
	// Rounds is how often each case is measured; what takes long is measured less often.
	Rounds int
	// Log tells a person what goes on.
	Log func(format string, args ...any)
	// Record writes a line for benchstat: what was measured n times, with the mean value.
	// The name is without "Benchmark" in front, NewFlow/structure=nftables/n=1000 for
	// example; units are as in the testing package: ns/op.
	Record func(benchmark string, n int, value float64, unit string)
}

// Case is one thing to measure.
type Case struct {
	// Name and Unit are as for Record.
	Name, Unit string
	// N is how many operations one Measure is.
	N int
	// Measure returns what one operation takes, in Unit.
	Measure func(ctx context.Context) (float64, error)
}

// Measure measures each case once in every round, in an order of chance, and records each
// value. It returns the values in the order of the cases, those of a round at the same place.
func (s Settings) Measure(ctx context.Context, cases ...Case) ([]Distribution, error) {
	values := make([]Distribution, len(cases))
	for range s.Rounds {
		for _, i := range rand.Perm(len(cases)) {
			if err := ctx.Err(); err != nil {
				return nil, context.Cause(ctx)
			}
			value, err := cases[i].Measure(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", cases[i].Name, err)
			}
			s.Record(cases[i].Name, cases[i].N, value, cases[i].Unit)
			values[i] = append(values[i], value)
		}
	}
	return values, nil
}
