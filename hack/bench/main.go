package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/openshift/origin-node/hack/bench/failover"
	"github.com/openshift/origin-node/hack/bench/figure"
	"github.com/openshift/origin-node/hack/bench/flows"
	"github.com/openshift/origin-node/hack/bench/process"
	"github.com/openshift/origin-node/hack/bench/programming"
	"github.com/openshift/origin-node/hack/bench/scale"
	"github.com/openshift/origin-node/hack/bench/starts"
	"github.com/openshift/origin-node/hack/lab"
)

// figures are all, in the order of the table.
var figures = slices.Concat(process.Figures(), []figure.Figure{programming.Figure()}, flows.Figures(), starts.Figures(), []figure.Figure{flows.Steering(), flows.PortSecurity(), flows.PortBlocks(), flows.FastPath(), flows.Sockets(), failover.Figure(), scale.Figure()})

func main() {
	switch {
	case programming.IsAgent():
		programming.Agent()
		return
	case failover.IsAgent():
		failover.Agent()
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

// options are those of the command line.
type options struct {
	smoke, publish bool
	run            *regexp.Regexp
	rounds         int
	output         string
}

func parse(arguments []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&o.smoke, "smoke", false, "only check that everything works, at the smallest sizes")
	flags.BoolVar(&o.publish, "publish", false, "update RESULTS.md, and from it the picture, README.md and hack/bench/README.adoc")
	flags.IntVar(&o.rounds, "rounds", 0, "how often to measure everything; costly figures take fewer rounds (default 21, with -smoke 2)")
	flags.StringVar(&o.output, "o", "", "write every value to this `file`, for benchstat")
	flags.Func("run", "measure the figures that `regexp` matches: "+strings.Join(names(figures), ", "), func(text string) error {
		o.run, err = regexp.Compile(text)
		return err
	})
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.rounds < 0:
		return o, fmt.Errorf("invalid -rounds %d: expected a positive number", o.rounds)
	case o.smoke && o.publish:
		return o, errors.New("the values of -smoke are not worth a -publish")
	case o.rounds == 0 && o.smoke:
		o.rounds = 2
	case o.rounds == 0:
		o.rounds = 21
	}
	return o, nil
}

func names(figures []figure.Figure) []string {
	var all []string
	for _, f := range figures {
		all = append(all, f.Name)
	}
	return all
}

func run(ctx context.Context, arguments []string, stdout, stderr io.Writer) error {
	o, err := parse(arguments, stderr)
	if err != nil {
		return err
	}
	chosen := slices.DeleteFunc(slices.Clone(figures), func(f figure.Figure) bool {
		return o.run != nil && !o.run.MatchString(f.Name)
	})
	if len(chosen) == 0 {
		return fmt.Errorf("-run %s matches none of %s", o.run, strings.Join(names(figures), ", "))
	}
	if err := possible(chosen); err != nil {
		return err
	}
	here := describe(ctx)
	published, err := load(here, o.run == nil)
	if o.publish && err != nil {
		return err
	}
	values := newRecord(here)
	results, err := measure(ctx, o, chosen, values, stderr)
	// What was measured before an error is not lost.
	err = errors.Join(err, values.save(o.output), tell(stdout, here, results))
	switch {
	case o.smoke:
		_, failed := draw(ctx, published)
		err = errors.Join(err, failed)
	case o.publish && err == nil:
		published.merge(results, time.Now())
		err = publish(ctx, published, stderr)
	}
	return err
}

// possible says what is missing, before anything is measured.
func possible(chosen []figure.Figure) error {
	if os.Geteuid() != 0 {
		return errors.New("network namespaces need root")
	}
	if missing := lab.Missing(); len(missing) > 0 {
		return fmt.Errorf("tools are missing: apt-get install %s", strings.Join(missing, " "))
	}
	for _, f := range chosen {
		if f.Lacks == nil {
			continue
		}
		if err := f.Lacks(); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return nil
}

func measure(ctx context.Context, o options, chosen []figure.Figure, values *record, stderr io.Writer) ([]figure.Result, error) {
	start := time.Now()
	settings := figure.Settings{
		Smoke: o.smoke, Rounds: o.rounds, Record: values.add,
		Log: func(format string, args ...any) {
			_, _ = fmt.Fprintf(stderr, "%6.1fs  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
		},
	}
	var all []figure.Result
	for _, f := range chosen {
		settings.Log("%s", f.Name)
		results, err := f.Run(ctx, settings)
		all = append(all, results...)
		if err != nil {
			return all, fmt.Errorf("%s: %w", f.Name, err)
		}
		for _, r := range results {
			if median := r.Measured.Median(); math.IsNaN(median) || math.IsInf(median, 0) {
				return all, fmt.Errorf("%s: %s %s is %s", f.Name, r.Name, r.At, r.Value())
			}
		}
	}
	settings.Log("done")
	return all, nil
}
