package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/openshift/origin-node/hack/lab"
)

const (
	folder = "_output/cluster"
	// patience is how long the cluster may take to come up or to end. It takes seconds; machines
	// may be busy.
	patience = 2 * time.Minute
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "playground:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	dir, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	switch {
	case len(args) == 3 && args[0] == "up":
		return up(ctx, dir, args[1:])
	case len(args) == 1 && args[0] == "down":
		return down(ctx, dir)
	case len(args) == 3 && args[0] == "run": // what up starts
		return keep(ctx, dir, args[1], args[2])
	}
	return errors.New("usage: playground up OPENSHIFT CONTROLPLANE, or playground down")
}

// up starts this program in the background and waits until the cluster is usable.
func up(ctx context.Context, dir string, binaries []string) error {
	if pid := running(dir); pid != 0 {
		return fmt.Errorf("the cluster is up already, as process %d; 'make cluster-down' ends it", pid)
	}
	if err := lab.Remove(ctx, prefix); err != nil { // of a cluster whose process was killed
		return err
	}
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	background := exec.Command(self, append([]string{"run"}, binaries...)...) //nolint:noctx // it outlives this process
	background.Stdout, background.Stderr = log, log
	background.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := background.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = background.Wait() // the status is in its ProcessState
		close(ended)
	}()
	if err := os.WriteFile(pidFile(dir), []byte(strconv.Itoa(background.Process.Pid)), 0o600); err != nil {
		return err
	}
	welcome, err := awaitWelcome(ctx, dir, background, ended)
	if err != nil {
		return errors.Join(err, end(background.Process, ended), os.Remove(pidFile(dir)))
	}
	_, err = os.Stdout.Write(welcome)
	return err
}

// end has the background process take away what it has made, and returns when it has.
func end(background *os.Process, ended <-chan struct{}) error {
	_ = background.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-ended:
		return nil
	case <-time.After(patience):
		_ = background.Kill()
		<-ended
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return lab.Remove(ctx, prefix)
	}
}

func pidFile(dir string) string     { return filepath.Join(dir, "pid") }
func welcomeFile(dir string) string { return filepath.Join(dir, "welcome") }

// awaitWelcome returns what the background process has to say when the cluster is usable.
func awaitWelcome(ctx context.Context, dir string, background *exec.Cmd, ended <-chan struct{}) ([]byte, error) {
	deadline := time.After(patience)
	for {
		if text, err := os.ReadFile(welcomeFile(dir)); err == nil {
			return text, nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ended:
			log, _ := os.ReadFile(filepath.Join(dir, "log")) // the error is told either way
			return nil, fmt.Errorf("the cluster did not come up: %s\n%s", background.ProcessState, bytes.TrimSpace(log))
		case <-deadline:
			return nil, fmt.Errorf("the cluster is not up after %s; its logs are in %s", patience, dir)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// down ends the background process and waits until it is gone.
func down(ctx context.Context, dir string) error {
	pid := running(dir)
	if pid == 0 {
		return downAfterKill(ctx, dir)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return fmt.Errorf("end process %d: %w", pid, err)
	}
	for deadline := time.After(patience); running(dir) != 0; {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-deadline:
			return fmt.Errorf("process %d does not end; its log is %s", pid, filepath.Join(dir, "log"))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := os.Remove(pidFile(dir)); err != nil {
		return err
	}
	_, err := os.Stdout.WriteString("The cluster is down.\n")
	return err
}

// downAfterKill removes what is left of a cluster whose background process was killed.
func downAfterKill(ctx context.Context, dir string) error {
	if err := lab.Remove(ctx, prefix); err != nil {
		return err
	}
	err := os.Remove(pidFile(dir))
	if errors.Is(err, os.ErrNotExist) {
		return errors.New("no cluster is up")
	}
	if err != nil {
		return err
	}
	_, err = os.Stdout.WriteString("The cluster had lost its process; what was left of it is removed.\n")
	return err
}

// running returns the background process's ID; 0 if there is none.
func running(dir string) int {
	text, err := os.ReadFile(pidFile(dir))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	// The number may be another process's since.
	command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || !strings.Contains(string(command), "playground\x00run\x00") {
		return 0
	}
	return pid
}

// keep runs the cluster until it is told to end.
func keep(ctx context.Context, dir, openshift, controlPlane string) (err error) {
	c, err := newCluster(ctx, dir, openshift, controlPlane)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	var text strings.Builder
	if err := c.welcome(ctx, &text); err != nil {
		return err
	}
	if err := publish(welcomeFile(dir), text.String()); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// publish writes a file in one step.
func publish(file, text string) error {
	if err := os.WriteFile(file+"~", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(file+"~", file)
}
