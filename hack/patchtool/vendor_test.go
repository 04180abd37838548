package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestVendor fails when vendor/ is not what hack/lib/vendor.sh promises, or is lost where it cannot be made anew.
func TestVendor(t *testing.T) {
	b := newBench(t)
	b.write(b.root, map[string]string{
		"go.mod":            "module example.test/own\n\ngo 1.24\n\nrequire k8s.io/kubernetes v1.2.0\n\nreplace k8s.io/kubernetes => " + b.modules["v1.2.0"] + "\n",
		"cmd/own/main.go":   "package main\n\nimport _ \"k8s.io/kubernetes/pkg/proxy\"\n\nfunc main() {}\n",
		"vendor/former":     "",
		"patches/" + series: b.snapshot()[series],
		"patches/README.md": "",
	})
	library, err := filepath.Abs("../lib/vendor.sh")
	wantError(t, err)
	regenerate := func() (string, error) {
		command := exec.CommandContext(t.Context(), "bash", "-euc", `source "$1"; vendor::regenerate "$2"`, "bash", library, b.root)
		command.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off")
		said, err := command.CombinedOutput()
		return string(said), err
	}
	proxier := filepath.Join(b.root, "vendor/k8s.io/kubernetes/pkg/proxy/proxier.go")
	former := filepath.Join(b.root, "vendor/former")

	good := b.snapshot()[series]
	b.write(b.root, map[string]string{"patches/" + series: strings.Replace(good, "\tp.synced++", "\tp.gone++", 1)})
	said, err := regenerate()
	wantText(t, said, series+" does not apply to the vendored k8s.io/kubernetes")
	if _, statErr := os.Stat(former); err == nil || statErr != nil {
		t.Errorf("it gave %v, and vendor/ is lost: %v", err, statErr)
	}

	b.write(b.root, map[string]string{"patches/" + series: good})
	if said, err = regenerate(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	content, err := os.ReadFile(proxier)
	wantError(t, err)
	wantText(t, string(content), "\tp.tell()\n")
	if _, err := os.Stat(former); err == nil {
		t.Error("vendor/ has what it had before")
	}
	if left, _ := filepath.Glob(filepath.Join(b.root, ".vendor-*")); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
}
