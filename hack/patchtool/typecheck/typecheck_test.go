package typecheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// list returns the command that lists a made-up module with one file.
func list(t *testing.T, source string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"go.mod": "module example.test/m\n\ngo 1.24\n", "m.go": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), "go", append(Arguments(), "./...")...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "PWD="+dir)
	return command
}

// TestCheck_Dependency fails when a package is missed that compiles in no build of what was asked for, because another one
// of the module imports it.
func TestCheck_Dependency(t *testing.T) {
	command := list(t, "package m\n\nimport \"example.test/m/n\"\n\nvar A = n.B()\n")
	dir := filepath.Join(command.Dir, "n")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "n.go"), []byte("package n\n\nfunc B() int { return gone }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	command.Args[len(command.Args)-1] = "."
	count, faults, err := Check(command)
	if err != nil || count != 2 || len(faults) != 1 || !strings.Contains(faults[0], "n.go:3:23: undefined: gone") {
		t.Errorf("%d packages, faults %q, %v", count, faults, err)
	}
}

func TestCheck_Module(t *testing.T) {
	for name, test := range map[string]struct {
		source string
		count  int
		fault  string
		err    string
	}{
		"right":       {source: "package m\n\nvar A = 1\n", count: 1},
		"wrong":       {source: "package m\n\nvar A string = 1\n", count: 1, fault: "m.go:3:16: cannot use 1"},
		"not listed":  {source: "package m\n\nimport _ \"example.test/none\"\n", err: "example.test/none"},
		"no language": {source: "package m\n\nvar\n", err: "m.go:"},
	} {
		t.Run(name, func(t *testing.T) {
			count, faults, err := Check(list(t, test.source))
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("error %v; want %q", err, test.err)
				}
				return
			}
			if err != nil || count != test.count {
				t.Errorf("%d packages, %v", count, err)
			}
			if got := strings.Join(faults, "\n"); !strings.Contains(got, test.fault) || (got == "") != (test.fault == "") {
				t.Errorf("faults %q; want %q", got, test.fault)
			}
		})
	}
}
