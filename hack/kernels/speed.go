//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// speed returns how long this machine takes to do what tests do most: to start processes, which compute a little. It is the shortest
// of some times, because other work may have delayed the others.
func speed(ctx context.Context) (time.Duration, error) {
	const times, processes = 5, 10
	var shortest time.Duration
	for range times {
		began := time.Now()
		for range processes {
			if err := command(ctx, "/proc/self/exe", "nothing"); err != nil {
				return 0, err
			}
		}
		if took := time.Since(began); shortest == 0 || took < shortest {
			shortest = took
		}
	}
	return shortest, nil
}

// work is what each of these processes computes: nothing that a processor has an instruction for.
func work() {
	words := rand.New(rand.NewPCG(1, 2)).Perm(20000) //nolint:gosec // the same each time
	slices.Sort(words)
}

// printSpeed prints what speed returns.
func printSpeed() error {
	took, err := speed(context.Background())
	if err == nil {
		_, err = fmt.Fprintln(os.Stdout, took)
	}
	return err
}

// speedOf is speed of the same binary as in the virtual machine.
func speedOf(ctx context.Context, self string) (time.Duration, error) {
	out, err := exec.CommandContext(ctx, self, "speed").Output()
	if err != nil {
		return 0, fmt.Errorf("measure the speed of this machine: %w", err)
	}
	return time.ParseDuration(strings.TrimSpace(string(out)))
}
