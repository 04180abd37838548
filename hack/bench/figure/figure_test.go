package figure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDistribution_Quantiles(t *testing.T) {
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
		t.Errorf("the median of no values is %v, want NaN", median)
	}
}

func TestDistribution_CombinedRoundByRound(t *testing.T) {
	a, b := Distribution{10, 20, 30}, Distribution{2, 5}
	if diff := cmp.Diff([]Distribution{{5, 4}, {8, 15}}, []Distribution{Ratio(a, b), Difference(a, b)}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestResult_Texts(t *testing.T) {
	type texts struct{ Value, Spread, Wants, Verdict string }
	for _, test := range []struct {
		result Result
		want   texts
	}{
		{Result{Measured: Distribution{0.97, 0.98, 0.96}, Target: AtLeast(0.97)}, texts{"0.970", "0.965–0.975", "≥ 0.970", "met"}},
		{Result{Measured: Distribution{0.9699}, Target: AtLeast(0.97)}, texts{"0.970", "", "≥ 0.970", "missed"}},
		{Result{Measured: Distribution{21}, Unit: "ms", Target: AtMost(20)}, texts{"21.0 ms", "", "≤ 20.0 ms", "missed"}},
		{Result{Measured: Distribution{0}, Unit: "execs", Target: AtMost(0)}, texts{"0 execs", "", "≤ 0 execs", "met"}},
		{Result{Measured: Distribution{-0.5}, Unit: "ms/s", Target: AtMost(2)}, texts{"-0.500 ms/s", "", "≤ 2.00 ms/s", "met"}},
		{Result{Measured: Distribution{1234.5}}, texts{"1234", "", "", ""}},
		// A value that could not be measured never meets a target.
		{Result{Target: AtMost(1)}, texts{"NaN", "", "≤ 1.00", "missed"}},
	} {
		got := texts{test.result.Value(), test.result.Spread(), test.result.Wants(), test.result.Verdict()}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.result, diff)
		}
	}
}

func TestMeasure_EveryCaseOncePerRound(t *testing.T) {
	var recorded []string
	rounds := [2]int{}
	count := func(i int) Case {
		return Case{
			Name: fmt.Sprint("case=", i), Quantities: []Quantity{{"Time", "ns/op", 10}, {"Size", "MiB", 1}},
			Measure: func(context.Context) ([]float64, error) {
				rounds[i]++
				return []float64{float64(100*(i+1) + rounds[i]), float64(i)}, nil
			},
		}
	}
	settings := Settings{Rounds: 3, Record: func(name string, n int, value float64, unit string) {
		recorded = append(recorded, fmt.Sprint(name, " ", n, " ", value, " ", unit))
	}}
	values, err := settings.AtMost(2).Measure(t.Context(), count(0), count(1))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]Distribution{{{101, 102}, {0, 0}}, {{201, 202}, {1, 1}}}, values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	slices.Sort(recorded)
	want := []string{
		"Size/case=0 1 0 MiB", "Size/case=0 1 0 MiB", "Size/case=1 1 1 MiB", "Size/case=1 1 1 MiB",
		"Time/case=0 10 101 ns/op", "Time/case=0 10 102 ns/op", "Time/case=1 10 201 ns/op", "Time/case=1 10 202 ns/op",
	}
	if diff := cmp.Diff(want, recorded); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
}

func TestMeasure_EndsWithAnErrorOrTheContext(t *testing.T) {
	broken := errors.New("broken")
	settings := Settings{Rounds: 3}
	fails := One("fails", Quantity{}, func(context.Context) (float64, error) { return 0, broken })
	if _, err := settings.Measure(t.Context(), fails); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := settings.Measure(ctx, fails); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// TestCPUOf_SameAsTheKernelReports compares this process with rusage, and another one with the CPU time that
// it must at least have used.
func TestCPUOf_SameAsTheKernelReports(t *testing.T) {
	spent, err := Time(func() (time.Duration, error) { return CPUOf(0) }, func() error {
		var before, now syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
			return err
		}
		for now.Utime.Nano()-before.Utime.Nano() < int64(50*time.Millisecond) {
			if err := syscall.Getrusage(syscall.RUSAGE_SELF, &now); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || spent.CPU < 50*time.Millisecond {
		t.Errorf("%+v, %v; want 50 ms at least", spent, err)
	}
	busy := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = busy.Wait() }) // killed by the context, which ends before
	deadline := time.Now().Add(10 * time.Second)
	for used := time.Duration(0); used < 20*time.Millisecond; {
		if used, err = CPUOf(busy.Process.Pid); err != nil || time.Now().After(deadline) {
			t.Fatalf("a busy process has used %s, %v", used, err)
		}
	}
}
