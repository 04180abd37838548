package figure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDistribution(t *testing.T) {
	for _, test := range []struct {
		values            Distribution
		low, median, high float64
	}{
		{Distribution{7}, 7, 7, 7},
		{Distribution{3, 1}, 1.5, 2, 2.5},
		{Distribution{5, 1, 4, 2, 3}, 2, 3, 4},
	} {
		low, high := test.values.Quartiles()
		got, want := []float64{low, test.values.Median(), high}, []float64{test.low, test.median, test.high}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.values, diff)
		}
	}
	if median := (Distribution{}).Median(); !math.IsNaN(median) {
		t.Errorf("the median of nothing is %v", median)
	}
}

func TestResult(t *testing.T) {
	type texts struct{ Value, Spread, Wants, Verdict string }
	for _, test := range []struct {
		result Result
		want   texts
	}{
		{Result{Measured: Distribution{0.97, 0.98, 0.96}, Target: AtLeast(0.97)}, texts{"0.970", "0.965–0.975", "≥ 0.970", "met"}},
		{Result{Measured: Distribution{0.9699}, Target: AtLeast(0.97)}, texts{"0.970", "", "≥ 0.970", "missed"}},
		{Result{Measured: Distribution{21}, Unit: "ms", Target: AtMost(20)}, texts{"21.0 ms", "", "≤ 20.0 ms", "missed"}},
		{Result{Measured: Distribution{0}, Unit: "execs", Target: AtMost(0)}, texts{"0 execs", "", "≤ 0 execs", "met"}},
		{Result{Measured: Distribution{1234.5}}, texts{"1234", "", "", ""}},
		// What could not be measured never meets a target.
		{Result{Target: AtMost(1)}, texts{"NaN", "", "≤ 1.00", "missed"}},
	} {
		got := texts{test.result.Value(), test.result.Spread(), test.result.Wants(), test.result.Verdict()}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.result, diff)
		}
	}
}

func TestMeasure(t *testing.T) {
	var recorded []string
	rounds := [2]int{}
	count := func(i int) Case {
		return Case{Name: fmt.Sprint("case=", i), Unit: "ns/op", N: 10, Measure: func(context.Context) (float64, error) {
			rounds[i]++
			return float64(100*(i+1) + rounds[i]), nil
		}}
	}
	settings := Settings{Rounds: 3, Record: func(name string, n int, value float64, unit string) {
		recorded = append(recorded, fmt.Sprint(name, n, value, unit))
	}}
	values, err := settings.Measure(t.Context(), count(0), count(1))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Distribution{{101, 102, 103}, {201, 202, 203}}, values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	slices.Sort(recorded)
	want := []string{
		"case=010 101ns/op", "case=010 102ns/op", "case=010 103ns/op",
		"case=110 201ns/op", "case=110 202ns/op", "case=110 203ns/op",
	}
	if diff := cmp.Diff(want, recorded); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
}

func TestMeasureEnds(t *testing.T) {
	broken := errors.New("broken")
	settings := Settings{Rounds: 3}
	fails := Case{Name: "fails", Measure: func(context.Context) (float64, error) { return 0, broken }}
	if _, err := settings.Measure(t.Context(), fails); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := settings.Measure(ctx, fails); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
