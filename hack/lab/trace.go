package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
)

// Trace is what a process has done, with its children: a line of strace for each.
type Trace struct {
	// Programs are those that it ran, Messages what it sent to netlink.
	Programs, Messages []string
}

func (t Trace) String() string {
	text := fmt.Sprintf("%d programs, %d netlink messages", len(t.Programs), len(t.Messages))
	for _, line := range append(t.Programs, t.Messages...) {
		text += "\n" + line
	}
	return text
}

var (
	programs = regexp.MustCompile(`(?m)^\d+ +execve(?:at)?\(.*`)
	messages = regexp.MustCompile(`(?m)^\d+ +(?:sendto|sendmsg|sendmmsg|write|writev)\(\d+<NETLINK:.*`)
)

// Trace returns what a process, and its children, do to the kernel during do.
func (h *Host) Trace(ctx context.Context, pid int, do func() error) (Trace, error) {
	dir, err := os.MkdirTemp("", "strace-")
	if err != nil {
		return Trace{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "output")
	// In the namespace, where it can tell which sockets are netlink's.
	tracer := h.Command(ctx, "strace", "-f", "-yy", "-o", file,
		"-e", "trace=execve,execveat,sendto,sendmsg,sendmmsg,write,writev", "-p", strconv.Itoa(pid))
	said, err := tracer.StderrPipe()
	if err == nil {
		err = tracer.Start()
	}
	if err != nil {
		return Trace{}, err
	}
	if err := attached(said); err != nil {
		_ = tracer.Process.Kill() // it may have ended
		_ = tracer.Wait()
		return Trace{}, err
	}
	err = errors.Join(do(), tracer.Process.Signal(syscall.SIGINT)) // it detaches
	_, _ = io.Copy(io.Discard, said)
	_ = tracer.Wait() // ended by the signal
	if err != nil {
		return Trace{}, err
	}
	text, err := os.ReadFile(file)
	return parseTrace(string(text)), err
}

func parseTrace(text string) Trace {
	return Trace{programs.FindAllString(text, -1), messages.FindAllString(text, -1)}
}

// attached returns when strace says that it sees all threads.
func attached(said io.Reader) error {
	var text []byte
	buffer := make([]byte, 4096)
	for !bytes.Contains(text, []byte(" attached")) {
		n, err := said.Read(buffer)
		text = append(text, buffer[:n]...)
		if err != nil {
			return fmt.Errorf("strace: %w: %s", err, text)
		}
	}
	return nil
}
