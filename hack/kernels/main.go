//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// kernels are those that hack/build-kernel.sh knows, the oldest first.
var kernels = []string{"5.10", "6.1", "6.12", "7.2"}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kernels:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case "inside":
			return inside(args[1:])
		case "speed":
			return printSpeed()
		case "nothing":
			work()
			return nil
		}
	}
	flags := flag.NewFlagSet("kernels", flag.ExitOnError)
	only := flags.String("packages", "", "only the packages, as pkg/kernel/steering, that match this regular expression")
	tests := flags.String("run", "", "only the tests that match this regular expression, see -run of go test")
	all := flags.Bool("all", false, "all tests of the packages, which takes hours, and not the short form")
	publish := flags.Bool("publish", false, "write results.json and RESULTS.md")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *publish && *tests != "" {
		return errors.New("-publish with -run: the table has whole packages")
	}
	chosen := flags.Args()
	if len(chosen) == 0 {
		chosen = kernels
	}
	for _, kernel := range chosen {
		if !slices.Contains(kernels, kernel) {
			return fmt.Errorf("kernel %q: want one of %s", kernel, strings.Join(kernels, ", "))
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	output, err := filepath.Abs("_output/kernels")
	if err != nil {
		return err
	}
	p, err := planOf(*only, *tests, *all)
	if err != nil {
		return err
	}
	return testAll(ctx, chosen, output, p, *publish)
}

// testAll runs the tests on each kernel, and fails if one fails on any.
func testAll(ctx context.Context, chosen []string, output string, p plan, publish bool) error {
	dirs := map[string]string{}
	for _, kernel := range chosen {
		build := exec.CommandContext(ctx, "hack/build-kernel.sh", kernel)
		build.Stderr = os.Stderr
		dir, err := build.Output()
		if err != nil {
			return fmt.Errorf("%s: %w", build, err)
		}
		dirs[kernel] = strings.TrimSpace(string(dir))
	}
	disk, err := makeDisk(ctx, output, p)
	if err != nil {
		return err
	}
	var failed []error
	for _, kernel := range chosen {
		began := time.Now()
		m := newMachine(kernel, dirs[kernel], disk)
		m.result.all, m.publish = p.All, publish
		if err = m.run(ctx); err == nil {
			err = m.result.err()
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", kernel, err))
		}
		told := fmt.Sprintf("%s: %s, booted in %.0f s, %.1f times slower than this machine; everything took %s\n", kernel, m.result.Release,
			m.result.Boot, m.result.Slowness, time.Since(began).Round(time.Second))
		if _, err := os.Stdout.WriteString(told); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}
