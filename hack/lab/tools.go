//go:build linux

package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// Backend is a flavour of iptables.
type Backend string

const (
	// Legacy is iptables over the kernel's ip_tables.
	Legacy Backend = "legacy"
	// NFT is iptables over nf_tables, the default of current distributions.
	NFT Backend = "nft"
)

// Backends returns every flavour, for tests that run once with each.
func Backends() []Backend { return []Backend{Legacy, NFT} }

// binary is the program that is every iptables tool of the flavour, by the name
// under which it is called.
func (b Backend) binary() string { return "xtables-" + string(b) + "-multi" }

// Missing returns the Debian packages that hold the tools which this machine
// lacks; none when the lab can be built.
func Missing() []string {
	tools := []struct{ name, debian string }{
		{"ip", "iproute2"},
		{Legacy.binary(), "iptables"},
		{NFT.binary(), "iptables"},
		{"nft", "nftables"},
		{"conntrack", "conntrack"},
	}
	var missing []string
	for _, tool := range tools {
		if _, err := find(tool.name); err != nil {
			missing = append(missing, tool.debian)
		}
	}
	return slices.Compact(missing)
}

// find is exec.LookPath that knows where Debian keeps the tools of root.
func find(tool string) (string, error) {
	path, err := exec.LookPath(tool)
	if err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, tool)); err == nil {
			return path, nil
		}
	}
	return "", err
}

// linkTools makes the directory that precedes PATH for processes on the node.
func (l *Lab) linkTools(context.Context) error {
	target, err := find(l.cfg.Backend.binary())
	if err != nil {
		return fmt.Errorf("backend %q: %w", l.cfg.Backend, err)
	}
	if err := os.Mkdir(l.binDir(), 0o755); err != nil {
		return err
	}
	for _, family := range []string{"iptables", "ip6tables"} {
		for _, tool := range []string{"", "-save", "-restore"} {
			if err := os.Symlink(target, filepath.Join(l.binDir(), family+tool)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *Lab) binDir() string { return filepath.Join(l.dir, "bin") }

// Path returns the PATH of processes on the node: the iptables tools of the
// backend come first. Code of this process that runs them itself, inside a Do,
// needs it in its own environment.
func (l *Lab) Path() string {
	return fmt.Sprintf("%s:%s:/usr/sbin:/sbin", l.binDir(), os.Getenv("PATH"))
}

// Env returns the environment of this process with PATH as in Path, for
// exec.Cmd.Env. Processes started by Host.Command have it and a little more.
func (l *Lab) Env() []string {
	return append(os.Environ(), "PATH="+l.Path())
}
