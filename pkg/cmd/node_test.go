package cmd

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOutliveLog_BrokenPipe: without outliveLog this process would end here.
func TestOutliveLog_BrokenPipe(t *testing.T) {
	outliveLog()
	stderr, err := unix.Dup(2)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(stderr) }() // a copy of the test's own
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if err := errors.Join(reader.Close(), unix.Dup3(int(writer.Fd()), 2, 0)); err != nil {
		t.Fatal(err)
	}
	_, got := os.Stderr.WriteString("a line of the log\n")
	if err := unix.Dup3(stderr, 2, 0); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(got, syscall.EPIPE) {
		t.Errorf("got %v, want %v", got, syscall.EPIPE)
	}
}

// TestRead_NodeNameOfTheCommandLine: it is used, not that of the configuration.
func TestRead_NodeNameOfTheCommandLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "node-config.yaml")
	if err := os.WriteFile(file, []byte("kind: NodeConfig\napiVersion: v1\nnodeName: a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{"": "a", "b": "b"} {
		o := nodeOptions{config: file, nodeName: given}
		config, err := o.read()
		if err != nil {
			t.Fatal(err)
		}
		if got := config.NodeConfig.NodeName; got != want {
			t.Errorf("--node-name=%s: the node is called %q, want %q", given, got, want)
		}
	}
}
