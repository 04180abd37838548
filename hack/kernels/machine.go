//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/openshift/origin-node/hack/testlog"
)

// machineTime bounds everything that happens in a virtual machine. Each package has its own bound, which is less.
const machineTime = 24 * time.Hour

// machine is a virtual machine with a kernel.
type machine struct {
	dir, disk string
	began     time.Time
	result    *result
	publish   bool // the results of each package as soon as it ends: all take hours
}

func newMachine(kernel, dir, disk string) *machine {
	return &machine{dir: dir, disk: disk, result: &result{Kernel: kernel, Date: time.Now().UTC().Format(time.DateOnly)}}
}

// run boots the machine and listens to what it says until it is off. The machine does not outlive this process.
func (m *machine) run(ctx context.Context) error {
	runtime.LockOSThread() // the kernel kills a child with the thread that began it
	defer runtime.UnlockOSThread()
	ctx, cancel := context.WithTimeout(ctx, machineTime)
	defer cancel()
	console := filepath.Join(m.dir, "console")
	// One processor: with two, the kernel may run on one of them what it is rewriting from the other, which emulation does not show it
	// at once (an oops in int3). no_timer_check: on a busy machine the emulated timer may seem broken to the kernel, which does not boot then.
	// Page tables of five levels, the protection of memory from the kernel itself, and memory that is cleared when it is taken cost time, and
	// nothing here is about them.
	qemu := exec.CommandContext(ctx, "qemu-system-x86_64", "-accel", "tcg", "-cpu", "max,-la57,-smap,-smep,-pku", "-m", "8192", "-smp", "1",
		"-nodefaults", "-display", "none", "-no-reboot", "-serial", "file:"+console, "-serial", "stdio",
		"-kernel", filepath.Join(m.dir, "vmlinuz"), "-initrd", filepath.Join(m.dir, "initrd"),
		"-append", "root=LABEL=root rw init=/sbin/init-tests console=ttyS0 quiet panic=-1 mitigations=off init_on_alloc=0 no_timer_check",
		"-drive", "if=virtio,format=raw,snapshot=on,file="+filepath.Join(m.dir, "disk"),
		"-drive", "if=virtio,format=raw,snapshot=on,file="+m.disk)
	qemu.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	qemu.Stderr = os.Stderr
	out, err := qemu.StdoutPipe()
	if err != nil {
		return err
	}
	m.began = time.Now()
	if err := qemu.Start(); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(m.dir, "tests.log"))
	done := false
	if err == nil {
		done, err = m.listen(ctx, io.TeeReader(out, log))
		err = errors.Join(err, log.Close())
	}
	if err != nil {
		cancel()
	}
	err = errors.Join(err, qemu.Wait())
	if err == nil && !done {
		err = errors.New("the machine has ended before its tests")
	}
	if err != nil {
		return fmt.Errorf("%w; %s has what its kernel said, tests.log beside it what its tests did", err, console)
	}
	return nil
}

// listen reads what the machine says, and says whether all tests have ended.
func (m *machine) listen(ctx context.Context, out io.Reader) (done bool, err error) {
	lines := bufio.NewReader(out)
	var now *conversion
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) && now != nil {
			return done, m.end(message{End: now.pkg, Error: "the machine has ended before them"}, now)
		} else if errors.Is(err, io.EOF) {
			return done, nil
		} else if err != nil {
			return done, err
		}
		text, ok := strings.CutPrefix(line, said)
		if !ok {
			if err := now.write(line); err != nil {
				return done, err
			}
			continue
		}
		var heard message
		if err := json.Unmarshal([]byte(text), &heard); err != nil {
			return done, fmt.Errorf("the machine says %q: %w", line, err)
		}
		switch {
		case heard.Machine != nil:
			m.result.facts, m.result.Boot = *heard.Machine, time.Since(m.began).Seconds()
		case heard.Begin != "":
			now, err = convert(ctx, heard.Begin)
		case heard.End != "":
			err = m.end(heard, now)
			now = nil
		}
		if err != nil {
			return done, err
		}
		done = heard.Done
	}
}

// end takes the results of a package.
func (m *machine) end(end message, c *conversion) error {
	if c == nil {
		return fmt.Errorf("the machine says that %s ends, which has not begun", end.End)
	}
	events, err := c.close()
	if err != nil {
		return err
	}
	counts := count(events)
	if end.Error != "" && len(counts.Failed) == 0 {
		counts.Failed = map[string]string{"": end.Error}
	}
	m.result.add(end.End, counts)
	if _, err := io.WriteString(os.Stdout, counts.text(m.result.Kernel, end.End, time.Since(c.began))); err != nil {
		return err
	}
	if m.publish {
		return publishResult(*m.result)
	}
	return nil
}

// conversion is a test2json that reads what the tests of a package print.
type conversion struct {
	pkg    string
	began  time.Time
	cmd    *exec.Cmd
	in     io.WriteCloser
	events []testlog.Event
	ended  chan error
}

func convert(ctx context.Context, pkg string) (*conversion, error) {
	c := &conversion{pkg: pkg, began: time.Now(), cmd: exec.CommandContext(ctx, "go", "tool", "test2json", "-p", pkg), ended: make(chan error, 1)}
	out, err := c.cmd.StdoutPipe()
	if err == nil {
		c.in, err = c.cmd.StdinPipe()
	}
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.cmd, err)
	}
	go func() {
		c.ended <- testlog.Read(out, func(e testlog.Event) { c.events = append(c.events, e) })
	}()
	return c, nil
}

// write hands a line over; between packages there is nobody to hand it to.
func (c *conversion) write(line string) error {
	if c == nil {
		_, err := io.WriteString(os.Stdout, line)
		return err
	}
	_, err := io.WriteString(c.in, line)
	return err
}

// close returns all events.
func (c *conversion) close() ([]testlog.Event, error) {
	err := errors.Join(c.in.Close(), <-c.ended, c.cmd.Wait())
	return c.events, err
}
