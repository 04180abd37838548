package iptables

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Program finds out again and again which back end the iptables on PATH has. It runs the program if another one is there than
// before, and after askAgain: a script may choose between both.
type Program struct {
	known  file
	asked  time.Time
	legacy bool
}

const askAgain = 30 * time.Second

// file is what a program is in.
type file struct {
	path    string
	changed time.Time
}

// IsLegacy tells whether it is iptables-legacy.
func (p *Program) IsLegacy(ctx context.Context, family kernel.Family) (bool, error) {
	commands := commandsFor(family, "")
	now, err := fileOf(commands.version)
	if err != nil || now == p.known && time.Since(p.asked) < askAgain {
		return p.legacy, err
	}
	backend, err := commands.backend(ctx)
	if err == nil {
		*p = Program{now, time.Now(), backend == backendLegacy}
	}
	return p.legacy, err
}

// fileOf returns which file runs if this program is run.
func fileOf(program string) (f file, err error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return f, err
	}
	if f.path, err = filepath.EvalSymlinks(path); err != nil {
		return f, err
	}
	info, err := os.Stat(f.path)
	if err != nil {
		return f, err
	}
	f.changed = info.ModTime()
	return f, nil
}

// LegacyRule is a rule of iptables-legacy.
type LegacyRule struct {
	// Table and Chain are where it is. The chain is that of a hook, or one with a name.
	Table, Chain string
	// Parts are its matches and its target.
	Parts []LegacyPart
}

// LegacyPart is a match or a target, with its name and the bytes of its structure. They are good until the next rule.
type LegacyPart struct{ Name, Info []byte }

// LegacyRules tells all rules in the legacy tables of a family, in the network namespace of the calling thread, but for those of tables
// that are larger than 8 MiB: kube-proxy has tens of thousands of rules there. It runs no program and makes no table.
func LegacyRules(family kernel.Family, tell func(LegacyRule)) error {
	l, err := openLegacy(family)
	if err != nil {
		return err
	}
	defer l.Close()
	for _, name := range l.names {
		if err := l.tell(name, tell); err != nil {
			return fmt.Errorf("read the legacy table %s: %w", name, err)
		}
	}
	return nil
}

// LegacyRulesFrom is LegacyRules for those rules of one table, if it exists, that packets may meet which come to the chain of a hook:
// they are in it, or in chains to which such rules lead. It ends when tell returns false.
func LegacyRulesFrom(family kernel.Family, table, chain string, tell func(parts []LegacyPart) bool) error {
	l, err := openLegacy(family)
	if err != nil {
		return err
	}
	defer l.Close()
	if !slices.Contains(l.names, table) {
		return nil
	}
	info, err := l.info(table)
	if err != nil {
		return fmt.Errorf("read the legacy table %s: %w", table, err)
	}
	if info.Size > mostHashed {
		return nil
	}
	t, err := l.table(table)
	if err != nil {
		return err
	}
	t.from(chain, tell)
	return nil
}

// from follows the rules of a table from the chain of a hook.
func (t *legacyTable) from(chain string, tell func(parts []LegacyPart) bool) {
	var next []int
	hooks := t.hooks()
	for at, hook := range hooks {
		if hook == chain {
			next = append(next, at)
		}
	}
	met, parts := map[int]bool{}, []LegacyPart(nil)
	for len(next) > 0 {
		begin := next[0]
		if next = next[1:]; met[begin] {
			continue
		}
		met[begin] = true
		for at, entry := range t.all(span{begin, len(t.entries)}) {
			if hooks[at] != "" && at != begin || t.chainName(entry) != nil {
				break // the next chain
			}
			if parts = t.parts(entry, parts[:0]); !tell(parts) {
				return
			}
			if to, leads := t.leadsTo(entry); leads && to != at+len(entry) {
				next = append(next, to)
			}
		}
	}
}

// tell tells all rules of a table.
func (l *legacy) tell(name string, tell func(LegacyRule)) error {
	info, err := l.info(name)
	if err != nil || info.Size > mostHashed {
		return err
	}
	t, err := l.copy(name)
	if err != nil {
		return err
	}
	defer unmap(t)
	hooks, r, end := t.hooks(), LegacyRule{Table: name}, 0
	for at, entry := range t.all(t.whole()) {
		end = at + len(entry)
		if hook, begins := hooks[at]; begins {
			r.Chain = hook
		}
		if named := t.chainName(entry); named != nil {
			r.Chain = string(named)
			continue
		}
		r.Parts = t.parts(entry, r.Parts[:0])
		tell(r)
	}
	if end != len(t.entries) {
		return errNoEnd
	}
	return nil
}

// parts appends the matches and the target of an entry: each is its length, its name and its structure.
func (t *legacyTable) parts(entry []byte, parts []LegacyPart) []LegacyPart {
	for at := t.counters + countersLength; at+targetHeader <= len(entry); {
		length := int(binary.NativeEndian.Uint16(entry[at:]))
		if length < targetHeader || at+length > len(entry) {
			break
		}
		name, _, _ := bytes.Cut(entry[at+targetNameOffset:at+targetHeader-1], []byte{0})
		parts = append(parts, LegacyPart{Name: name, Info: entry[at+targetHeader : at+length]})
		at += length
	}
	return parts
}
