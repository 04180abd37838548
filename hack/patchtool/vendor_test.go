package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestVendor_Regenerate fails when vendor/ is not what hack/lib/vendor.sh promises, or is lost where it cannot be made.
func TestVendor_Regenerate(t *testing.T) {
	b := newBench(t)
	good := b.files(b.Patches)[shared]
	b.write(b.root, map[string]string{
		"go.mod":        "module example.test/own\n\ngo 1.24\n\nrequire k8s.io/kubernetes v1.2.0\n\nreplace k8s.io/kubernetes => " + b.modules[kubernetes+"v1.2.0"] + "\n",
		"vendor/former": "",
	})
	library, err := filepath.Abs("../lib/vendor.sh")
	wantError(t, err)
	regenerate := func(patch string) (string, error) {
		b.write(b.root, map[string]string{"patches/" + shared: patch})
		command := exec.CommandContext(t.Context(), "bash", "-euc", `source "$1"; vendor::regenerate "$2"`, "bash", library, b.root)
		command.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off")
		said, err := command.CombinedOutput()
		return string(said), err
	}
	said, err := regenerate(strings.Replace(good, "\tp.synced++", "\tp.gone++", 1))
	wantError(t, err, "exit status 1")
	wantText(t, said, shared+" does not apply to the vendored k8s.io/kubernetes")
	if !exists(filepath.Join(b.root, "vendor/former")) {
		t.Error("vendor/ is lost")
	}
	said, err = regenerate(good)
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	vendored := b.files(filepath.Join(b.root, "vendor"))
	wantText(t, vendored["k8s.io/kubernetes/pkg/proxy/proxier.go"], "\tp.tell()\n")
	if _, kept := vendored["former"]; kept {
		t.Error("vendor/ has what it had before")
	}
	if left, _ := filepath.Glob(filepath.Join(b.root, ".vendor-*")); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
}
