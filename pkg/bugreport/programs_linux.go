package bugreport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// Program is a part with the output of a program, which should only read.
func Program(name, program string, arguments ...string) Part {
	return Programs(name, append([]string{program}, arguments...))
}

// Programs is Program for the outputs of several programs, each below its command line. One that fails does not keep
// others from running.
func Programs(name string, commands ...[]string) Part {
	return Part{name, func(ctx context.Context) ([]byte, error) {
		var all bytes.Buffer
		var errs []error
		for _, command := range commands {
			output, err := Output(ctx, command...)
			if len(commands) > 1 {
				fmt.Fprintf(&all, "# %s\n", strings.Join(command, " "))
			}
			all.Write(output)
			errs = append(errs, err)
		}
		return all.Bytes(), errors.Join(errs...)
	}}
}

// Output returns the output of a program; also what it has written until it failed, or ctx ended.
func Output(ctx context.Context, command ...string) ([]byte, error) {
	program := exec.CommandContext(ctx, command[0], command[1:]...)
	program.WaitDelay = time.Second // if a child of it keeps the output open
	var output, complaint bytes.Buffer
	program.Stdout, program.Stderr = &output, &complaint
	if err := program.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return output.Bytes(), fmt.Errorf("%s: %w %s", strings.Join(command, " "), err, strings.TrimSpace(complaint.String()))
	}
	return output.Bytes(), nil
}
