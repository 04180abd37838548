//go:build linux

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/openshift/origin-node/hack/lab"
)

// askAgain is the pause between two questions whether something is so yet.
var askAgain = lab.Stretch(50 * time.Millisecond)

// logTail is how much of a log an error or a failed test repeats.
const logTail = 4 << 10

// Component is one process of the control plane. Its methods may be called from
// several goroutines.
type Component struct {
	// Name of the program.
	Name string
	// Log is the file that has its output, of all its starts.
	Log string

	host   *lab.Host
	binary string
	args   []string
	// first: on a slow machine it comes before all others, who ask it and wait for an answer no longer than elsewhere.
	first  bool
	probe  string // URL that answers 200 once it is ready
	client *http.Client

	mu      sync.Mutex
	process *process // of the last start, nil before the first
}

type process struct {
	cmd   *exec.Cmd
	ended <-chan struct{} // closed when it has ended
}

func (p *process) running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Start starts the process; [Component.Ready] waits until it serves. It is an error
// when it runs already.
func (c *Component) Start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process.running() {
		return fmt.Errorf("%s runs already", c.Name)
	}
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own
	command := append([]string{c.binary}, c.args...)
	if c.first && lab.Slow() {
		command = append([]string{"nice", "-n", "-10"}, command...)
	}
	cmd := c.host.Command(context.Background(), command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	// In a group of its own: ^C at the terminal is for the test, which ends it in turn.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	ended, err := lab.Start(cmd)
	if err != nil {
		return fmt.Errorf("start %s: %w", c.Name, err)
	}
	c.process = &process{cmd: cmd, ended: ended}
	return nil
}

// Stop ends the process as a service manager does, with SIGTERM, and returns when it
// has ended or ctx has. It does nothing when the process does not run. A server with
// open watches takes its time: the API server two seconds, etcd seven.
func (c *Component) Stop(ctx context.Context) error { return c.end(ctx, syscall.SIGTERM) }

// Kill ends the process with SIGKILL and returns when it has ended. It does nothing
// when the process does not run.
func (c *Component) Kill() error { return c.end(context.Background(), syscall.SIGKILL) }

func (c *Component) end(ctx context.Context, signal syscall.Signal) error {
	c.mu.Lock()
	p := c.process
	c.mu.Unlock()
	if !p.running() {
		return nil
	}
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("%s: send %s: %w", c.Name, signal, err)
	}
	select {
	case <-p.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s does not end on %s: %w; the end of its log:\n%s", c.Name, signal, ctx.Err(), c.tail())
	}
}

// Restart stops the process, starts it and waits until it is ready.
func (c *Component) Restart(ctx context.Context) error {
	if err := c.Stop(ctx); err != nil {
		return err
	}
	return c.startReady(ctx)
}

func (c *Component) startReady(ctx context.Context) error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Ready(ctx)
}

// Running reports whether the process runs, ready or not.
func (c *Component) Running() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.process.running()
}

// PID is that of the process of the last start.
func (c *Component) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.process.cmd.Process.Pid
}

// Ready returns when the process says that it is ready. It is an error when it does
// not run or ends meanwhile, and when ctx ends.
func (c *Component) Ready(ctx context.Context) error {
	tick := time.NewTicker(askAgain)
	defer tick.Stop()
	for {
		err := c.askReady(ctx)
		if err == nil {
			return nil
		}
		if !c.Running() {
			return fmt.Errorf("%s does not run; the end of its log:\n%s", c.Name, c.tail())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w: %w; the end of its log:\n%s", c.Name, ctx.Err(), err, c.tail())
		case <-tick.C:
		}
	}
}

func (c *Component) askReady(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.probe, nil)
	if err != nil {
		return err
	}
	response, err := c.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, logTail)) // of an answer that is bad anyway
		return fmt.Errorf("%s: %s: %s", c.probe, response.Status, bytes.TrimSpace(body))
	}
	return nil
}

// tail is the end of the log, or why there is none.
func (c *Component) tail() []byte {
	log, err := os.ReadFile(c.Log)
	if err != nil {
		return []byte(err.Error())
	}
	if len(log) > logTail {
		log = log[len(log)-logTail:]
		log = log[bytes.IndexByte(log, '\n')+1:]
	}
	return log
}
