package cmd

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestValidateNodeConfig_BrokenManifests: a node that starts with them ends.
func TestValidateNodeConfig_BrokenManifests(t *testing.T) {
	folder := t.TempDir()
	config, manifest := filepath.Join(folder, "node-config"), filepath.Join(folder, "broken.yaml")
	if err := os.WriteFile(config, []byte("kind: NodeConfig\napiVersion: v1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"# nothing\n": "", "apiVersion: v1\nkind: Service\nmetadata: {nam: x}\n": "--manifests: " + manifest + ":3"} {
		if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c := newValidateNodeConfigCommand()
		c.SetArgs([]string{config, "--manifests=" + folder})
		c.SetOut(io.Discard)
		c.SetErr(io.Discard)
		if err := c.Execute(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("with %q: %v, want %q", text, err, want)
		}
	}
}
