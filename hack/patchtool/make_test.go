package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/openshift/origin-node/hack/patchtool/branch"
)

// dryRun returns what make would run at the top of the repository.
func dryRun(t *testing.T, environment []string, arguments ...string) string {
	t.Helper()
	if _, err := exec.LookPath("make"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	command := exec.CommandContext(t.Context(), "make", append([]string{"--no-print-directory", "-n"}, arguments...)...)
	command.Dir = "../.."
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "MAKE") && !strings.HasPrefix(variable, "MFLAGS=") {
			command.Env = append(command.Env, variable)
		}
	}
	command.Env = append(command.Env, environment...)
	said, _ := command.CombinedOutput() // what it says is what counts
	return string(said)
}

// TestMake_RebasePatches fails when make takes our own version for a release of Kubernetes.
func TestMake_RebasePatches(t *testing.T) {
	for _, test := range []struct {
		environment, arguments []string
		want                   string
	}{
		{arguments: []string{"rebase-patches", "VERSION=v1.38.0"}, want: "hack/rebase-patches.sh 'v1.38.0' \n"},
		{arguments: []string{"rebase-patches", "MODULE=example.test/other"}, want: "hack/rebase-patches.sh '' example.test/other\n"},
		{environment: []string{"VERSION=4.9", "MODULE=other"}, arguments: []string{"rebase-patches"}, want: "hack/rebase-patches.sh '' \n"},
	} {
		wantText(t, dryRun(t, test.environment, test.arguments...), test.want)
	}
}

// TestMake_Kube fails when a binary is built against another branch than the one that was meant.
func TestMake_Kube(t *testing.T) {
	all, err := branch.Load("../../patches")
	wantError(t, err)
	for _, b := range all {
		number := strings.TrimPrefix(b.Name, "release-")
		want := "go run ./hack/patchtool go " + number + " build "
		if b.Vendored {
			want = "CGO_ENABLED=0 GOARCH="
		}
		for _, name := range []string{number, b.Name, b.Version, strings.TrimPrefix(b.Version, "v")} {
			said := dryRun(t, nil, "build", "KUBE="+name)
			wantText(t, said, want, "gitVersion="+b.Version)
		}
	}
	for _, name := range []string{"1.2", "v1.36.99", "1.36 1.35", "release", "%"} {
		wantText(t, dryRun(t, nil, "build", "KUBE="+name), "KUBE="+name+": want one of the branches in patches/branches: ")
	}
	wantText(t, dryRun(t, []string{"KUBE=1.2"}, "build"), "CGO_ENABLED=0 GOARCH=")
}
