//go:build linux

package cluster

import (
	"os"
	"testing"

	"github.com/openshift/origin-node/hack/lab"
)

// BinariesVariable is the environment variable that names the directory of the control
// plane's binaries.
const BinariesVariable = "CONTROLPLANE"

// RequireBinaries returns the directory that CONTROLPLANE names. Without that variable
// the test is skipped, for it is not cheap and nobody asked for it; but it fails when the
// environment has CI=true.
func RequireBinaries(t testing.TB) string {
	t.Helper()
	dir := os.Getenv(BinariesVariable)
	if dir == "" {
		lab.Lacks(t, "the environment variable %s does not name the directory of the control plane's binaries; run 'make test-e2e'", BinariesVariable)
	}
	return dir
}

// ForTest is New for a test, with the binaries of the environment and a directory of the lab. The test is skipped as by
// RequireBinaries, and fails when CONTROLPLANE is set but the control plane cannot be
// started. When it fails it logs the end of each component's log, and all of them are
// kept, see [lab.LogFile]. At its end the control plane is closed.
func ForTest(t testing.TB, config Config) *ControlPlane {
	t.Helper()
	config.Binaries = RequireBinaries(t)
	dir, err := config.Host.MkdirTemp("control-plane-")
	if err != nil {
		t.Fatal(err)
	}
	config.Dir = dir
	config.Log = func(component string) string { return lab.LogFile(t, component) }
	c, err := New(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		for _, component := range c.Components() {
			if t.Failed() {
				t.Logf("the end of %s's log:\n%s", component.Name, component.tail())
			}
		}
	})
	return c
}
