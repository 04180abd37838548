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
