//go:build linux

package lab

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// ForTest is New for a test, which fails if the lab cannot be built and closes
// the lab at its end. Without root or the tools the test is skipped, but fails
// when the environment has CI=true. KEEP=1 keeps the namespaces and the temporary
// files to look into, under a prefix that nobody removes but who wanted it.
func ForTest(t testing.TB, cfg Config) *Lab {
	t.Helper()
	if reason := unusable(); reason != "" {
		if os.Getenv("CI") == "true" {
			t.Fatal(reason)
		}
		t.Skip(reason)
	}
	keep := os.Getenv("KEEP") == "1"
	if keep && cfg.Prefix == "" {
		cfg.Prefix = ownPrefix("keep")
	}
	l, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if keep {
			t.Logf("KEEP=1: look into it with: PATH=%s ip netns exec %s bash; its files are in %s", l.Path(), l.Node().Name, l.dir)
			return
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// unusable says why no lab can be built here; empty when one can.
func unusable() string {
	if os.Geteuid() != 0 {
		return "network namespaces need root"
	}
	if missing := Missing(); len(missing) > 0 {
		return fmt.Sprintf("tools are missing: apt-get install %s", strings.Join(missing, " "))
	}
	return ""
}
