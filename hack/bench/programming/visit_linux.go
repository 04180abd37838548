package programming

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/openshift/origin-node/hack/bench/objects"
	"github.com/openshift/origin-node/hack/lab"
)

// visit is an agent in a lab of its own.
type visit struct {
	lab     *lab.Lab
	dir     string
	process *exec.Cmd
	orders  io.WriteCloser
	answers *json.Decoder
	printed bytes.Buffer
}

// newVisit starts an agent.
func newVisit(ctx context.Context, m means, size objects.Size) (v *visit, err error) {
	v = &visit{}
	defer func() {
		if err != nil {
			err = errors.Join(err, v.close())
		}
	}()
	if v.lab, err = lab.New(ctx, lab.Config{Backend: m.iptables}); err != nil {
		return v, err
	}
	if v.dir, err = os.MkdirTemp("", "bench-"); err != nil {
		return v, err
	}
	manifest := fmt.Sprintf("kind: Node\napiVersion: v1\nmetadata: {name: %s}\nstatus: {addresses: [{type: InternalIP, address: %s}]}\n",
		objects.Node(0), v.lab.Node().V4)
	if err := os.WriteFile(filepath.Join(v.dir, "node.yaml"), []byte(manifest), 0o600); err != nil {
		return v, err
	}
	self, err := os.Executable()
	if err != nil {
		return v, err
	}
	v.process = v.lab.Node().Command(ctx, self, agentArguments(m.backend, size, v.dir)...)
	v.process.Stderr = &v.printed
	if v.orders, err = v.process.StdinPipe(); err != nil {
		return v, err
	}
	answers, err := v.process.StdoutPipe()
	if err != nil {
		return v, err
	}
	v.answers = json.NewDecoder(answers)
	return v, v.process.Start()
}

// order has the agent do something.
func (v *visit) order(do string, count int) (a answer, err error) {
	err = json.NewEncoder(v.orders).Encode(order{do, count})
	if err == nil {
		err = v.answers.Decode(&a)
	}
	if err != nil {
		ended := v.end()
		return a, fmt.Errorf("the agent has not done its %s: %w, %w; its log:\n%s", do, err, ended, strings.TrimSpace(v.printed.String()))
	}
	return a, nil
}

// end ends the agent.
func (v *visit) end() error {
	if v.process == nil || v.process.Process == nil || v.process.ProcessState != nil {
		return nil
	}
	_ = v.orders.Close() // it may have ended
	return v.process.Wait()
}

func (v *visit) close() error {
	errs := []error{v.end()}
	if v.lab != nil {
		errs = append(errs, v.lab.Close())
	}
	if v.dir != "" {
		errs = append(errs, os.RemoveAll(v.dir))
	}
	return errors.Join(errs...)
}

var (
	execs    = regexp.MustCompile(`(?m)^\d+ +execve(?:at)?\(`)
	messages = regexp.MustCompile(`(?m)^\d+ +(?:sendto|sendmsg|sendmmsg|write|writev)\(\d+<NETLINK:`)
)

// traced returns how many programs the agent and its children run, and how often they send to netlink,
// for an order.
func (v *visit) traced(ctx context.Context, do string) (ran, sent int, err error) {
	file := filepath.Join(v.dir, "strace")
	// In the namespace, where it can tell which sockets are netlink's.
	tracer := v.lab.Node().Command(ctx, "strace", "-f", "-yy", "-o", file,
		"-e", "trace=execve,execveat,sendto,sendmsg,sendmmsg,write,writev", "-p", strconv.Itoa(v.process.Process.Pid))
	said, err := tracer.StderrPipe()
	if err != nil {
		return 0, 0, err
	}
	if err := tracer.Start(); err != nil {
		return 0, 0, err
	}
	if err := attached(said); err != nil {
		return 0, 0, errors.Join(err, tracer.Process.Kill(), tracer.Wait())
	}
	_, err = v.order(do, 1)
	detach := tracer.Process.Signal(syscall.SIGINT)
	_, _ = io.Copy(io.Discard, said)
	_ = tracer.Wait() // ended by the signal
	if err := errors.Join(err, detach); err != nil {
		return 0, 0, err
	}
	trace, err := os.ReadFile(file)
	return len(execs.FindAll(trace, -1)), len(messages.FindAll(trace, -1)), err
}

// attached returns when strace says that it sees all.
func attached(said io.Reader) error {
	var text []byte
	buffer := make([]byte, 4096)
	for {
		n, err := said.Read(buffer)
		text = append(text, buffer[:n]...)
		switch {
		case bytes.Contains(text, []byte(" attached")):
			return nil
		case err != nil:
			return fmt.Errorf("strace: %w: %s", err, text)
		}
	}
}

// milliseconds is a time as a number.
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
