package iptables

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/openshift/origin-node/pkg/kernel"
)

// OnOtherBackend calls fn with the iptables on PATH being that of the other back end than
// the one that is there, if it is installed and holds anything. It is for code that runs
// whatever iptables is on PATH. PATH is the process's: nothing else must run a program
// meanwhile.
func OnOtherBackend(ctx context.Context, fn func() error) error {
	commands, err := otherBackend(ctx, kernel.IPv4)
	if err != nil {
		return err
	}
	if used, err := commands.used(ctx); !used || err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "iptables-")
	if err != nil {
		return err
	}
	path := os.Getenv("PATH")
	return errors.Join(
		commands.link(dir),
		os.Setenv("PATH", dir+string(os.PathListSeparator)+path),
		fn(),
		os.Setenv("PATH", path),
		os.RemoveAll(dir))
}

// otherBackend returns the commands of the back end that is not the one on PATH.
func otherBackend(ctx context.Context, family kernel.Family) (commands, error) {
	current, err := commandsFor(family, "").backend(ctx)
	if err != nil {
		return commands{}, err
	}
	other := backendLegacy
	if current == other {
		other = backendNFT
	}
	return commandsFor(family, other), nil
}

// used tells whether the back end can be used and has any table, of either family. Only
// asking what there is makes no table come into being.
func (c commands) used(ctx context.Context) (bool, error) {
	for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
		of := commandsFor(family, c.name)
		if !of.usable(ctx) {
			return false, nil
		}
		if text, err := run(ctx, nil, of.save); text != "" || err != nil {
			return text != "", err
		}
	}
	return false, nil
}

// link fills dir with links by which iptables and the like are those of the back end.
func (c commands) link(dir string) error {
	for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
		plain, named := commandsFor(family, ""), commandsFor(family, c.name)
		for name, program := range map[string]string{plain.version: named.version, plain.save: named.save, plain.restore: named.restore} {
			file, err := exec.LookPath(program)
			if err != nil {
				return err
			}
			if err := os.Symlink(file, filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}
