package scratch

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Git runs git in a directory and returns what it says on stdout. It finds no repository above the
// directory: git apply would then skip, silently, what lies outside of that one.
func Git(ctx context.Context, dir string, arguments ...string) (string, error) {
	stdout, _, err := run(ctx, dir, arguments...)
	return stdout, err
}

// gitSays is Git and returns what git says on stderr, also when it fails.
func gitSays(ctx context.Context, dir string, arguments ...string) (string, error) {
	_, stderr, err := run(ctx, dir, arguments...)
	return stderr, err
}

func run(ctx context.Context, dir string, arguments ...string) (stdout, stderr string, err error) {
	command := exec.CommandContext(ctx, "git", arguments...)
	command.Dir = dir
	command.Env = environment(dir)
	var output, errors bytes.Buffer
	command.Stdout, command.Stderr = &output, &errors
	if err := command.Run(); err != nil {
		said := strings.TrimSpace(errors.String())
		if said == "" {
			said = strings.TrimSpace(output.String())
		}
		return output.String(), errors.String(), fmt.Errorf("git %s: %w: %s", arguments[0], err, said)
	}
	return output.String(), errors.String(), nil
}

func environment(dir string) []string {
	var kept []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "GIT_") { // of a hook that runs us, or of the user
			kept = append(kept, variable)
		}
	}
	const name, mail, date = "patchtool", "patchtool@localhost", "2000-01-01T00:00:00Z"
	return append(kept,
		"LC_ALL=C", "TZ=UTC", "PAGER=cat", "PWD="+dir,
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_CEILING_DIRECTORIES="+filepath.Dir(dir),
		"GIT_AUTHOR_NAME="+name, "GIT_AUTHOR_EMAIL="+mail, "GIT_AUTHOR_DATE="+date,
		"GIT_COMMITTER_NAME="+name, "GIT_COMMITTER_EMAIL="+mail, "GIT_COMMITTER_DATE="+date)
}
