package figure

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Figure is one benchmark, or several that share a costly setup.
type Figure struct {
	// Name selects it, for example flows/1000.
	Name string
	// Run measures. It removes what it has set up, also when ctx ends early. An error means that it
	// could not measure, or that what it measured did the wrong thing; being slow is no error.
	Run func(ctx context.Context, s Settings) ([]Result, error)
	// Lacks, if not nil, says which tool or variable is missing for Run.
	Lacks func() error
}

// Settings say how to measure.
type Settings struct {
	// Smoke: check within seconds that everything works, at the smallest sizes; the values do not matter.
	Smoke bool
	// Rounds is how often each case is measured.
	Rounds int
	// Log reports progress.
	Log func(format string, args ...any)
	// Record writes a line for benchstat: a benchmark's name without "Benchmark", how many operations
	// were measured, their mean, and its unit as in package testing (ns/op).
	Record func(benchmark string, n int, value float64, unit string)
}

// AtMost limits the rounds, for figures whose rounds take long.
func (s Settings) AtMost(rounds int) Settings {
	s.Rounds = min(s.Rounds, rounds)
	return s
}

// Quantity is a value that a Case measures, for benchstat.
type Quantity struct {
	Name, Unit string
	// N is how many operations the value is the mean of.
	N int
}

// Case is one thing to measure.
type Case struct {
	// Name distinguishes it from the others: structure=nftables/n=1000.
	Name       string
	Quantities []Quantity
	// Measure returns a value for each quantity.
	Measure func(ctx context.Context) ([]float64, error)
}

// One is a case with one quantity.
func One(name string, q Quantity, measure func(ctx context.Context) (float64, error)) Case {
	return Case{name, []Quantity{q}, func(ctx context.Context) ([]float64, error) {
		value, err := measure(ctx)
		return []float64{value}, err
	}}
}

// Measure measures each case once per round, in random order, and records every value. It returns the
// values of each quantity by case; values of the same round have the same index.
func (s Settings) Measure(ctx context.Context, cases ...Case) ([][]Distribution, error) {
	all := make([][]Distribution, len(cases))
	for i, c := range cases {
		all[i] = make([]Distribution, len(c.Quantities))
	}
	for round := range s.Rounds {
		for _, i := range rand.Perm(len(cases)) {
			if err := ctx.Err(); err != nil {
				return nil, context.Cause(ctx)
			}
			began := time.Now()
			values, err := cases[i].Measure(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", cases[i].Name, err)
			}
			for q, value := range values {
				s.Record(cases[i].Quantities[q].Name+"/"+cases[i].Name, cases[i].Quantities[q].N, value, cases[i].Quantities[q].Unit)
				all[i][q] = append(all[i][q], value)
			}
			if time.Since(began) > time.Second {
				s.Log("round %d: %s: %s", round+1, cases[i].Name, describe(cases[i].Quantities, values))
			}
		}
	}
	return all, nil
}

func describe(quantities []Quantity, values []float64) string {
	var texts []string
	for q, value := range values {
		texts = append(texts, fmt.Sprintf("%s %s %s", strings.ToLower(quantities[q].Name), Number(value), quantities[q].Unit))
	}
	return strings.Join(texts, ", ")
}

// Sleep returns after a time, or with ctx's error when it ends.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
