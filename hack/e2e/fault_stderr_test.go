package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestLog_CannotBeWritten: four nodes have four troubles with their standard error. They
// do what they have to do all the same, and where the trouble ends, the log goes on.
func TestLog_CannotBeWritten(t *testing.T) {
	belongsTo(t, usual)
	w := newWatchedWorld(t, settings{nodes: 4})
	full, closed, broken, disk := w.members[0], w.members[1], w.members[2], w.members[3]
	reader, writer, err := os.Pipe()
	w.must(err)
	devFull, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	w.must(err)
	dir := disk.File("log")
	w.must(os.Mkdir(dir, 0o700))
	nodes := []*logger{
		{member: full, name: "/dev/full", script: `exec "$@"`, out: devFull},
		{member: closed, name: "closed", script: `exec "$@" >&- 2>&-`},
		{member: broken, name: "a pipe that nobody reads from any more", script: `exec "$@"`, out: writer},
		{member: disk, name: "a file on a disk that is full", script: `mount -t tmpfs -o size=256k none ` + dir + ` && exec "$@" >` + dir + `/log 2>&1`},
	}
	for _, n := range nodes {
		n.Stop()
		n.start(w)
	}
	w.must(errors.Join(writer.Close(), devFull.Close()))
	w.publish()
	w.published() // all nodes have started as they should
	w.must(reader.Close())
	inside := filepath.Join("/proc", fmt.Sprint(nodes[3].cmd.Process.Pid), "root", dir)
	filler, log := filepath.Join(inside, "filler"), filepath.Join(inside, "log")
	fillDisk(t, filler)
	size := func() int64 {
		info, err := os.Stat(log)
		w.must(err)
		return info.Size()
	}
	was := size()
	if was == 0 {
		t.Fatal("the node has logged nothing")
	}
	for range 3 {
		w.publish()
		w.published()
	}
	if now := size(); now > was+4<<10 { // the rest of its last page
		t.Errorf("the log has grown from %d to %d bytes although the disk is full", was, now)
	}
	for _, n := range nodes {
		select {
		case <-n.ended:
			t.Errorf("with its standard error being %s the node of %s ended: %s", n.name, n.Name, n.cmd.ProcessState)
		default:
		}
	}
	was = size()
	w.must(os.Remove(filler))
	w.publish()
	w.published()
	if now := size(); now <= was {
		t.Errorf("the log has not grown from %d bytes, now that there is room", was)
	}
	w.calm("standard error is /dev/full, closed, a broken pipe, on a full disk")
}

// logger is a node whose process logs to somewhere else than the test.
type logger struct {
	*member
	name string
	// script starts the process, its arguments, and out, if not nil, is its output.
	script string
	out    *os.File
	cmd    *exec.Cmd
	ended  chan struct{}
}

func (l *logger) start(w *watchedWorld) {
	w.Helper()
	ctx := context.WithoutCancel(w.Context())
	// ip netns exec NAMESPACE program: the script goes in front of the program.
	l.cmd = l.Command(ctx, "start", "node", "--config="+l.Config(), "--loglevel=4")
	l.cmd.Args = slices.Insert(l.cmd.Args, 4, "sh", "-c", l.script, "sh")
	l.cmd.Stdout = io.Discard // by a pipe, so that the end of all processes that the script starts is waited for
	if l.out != nil {
		l.cmd.Stdout, l.cmd.Stderr = l.out, l.out
	}
	w.must(l.cmd.Start())
	ended := make(chan struct{})
	l.ended = ended
	go func() {
		_ = l.cmd.Wait() // the status is in its ProcessState
		close(ended)
	}()
	w.Cleanup(func() {
		_ = l.cmd.Process.Kill() // it may have ended
		<-ended
	})
}

// fillDisk makes a file that takes all the room that there is.
func fillDisk(t *testing.T, name string) {
	t.Helper()
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for size := 64 << 10; size > 0; {
		if _, err := file.Write(bytes.Repeat([]byte("x"), size)); err != nil {
			size /= 2
		}
	}
}
