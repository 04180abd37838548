package iptables

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"github.com/openshift/origin-node/pkg/kernel"
)

// IsLegacy tells whether the iptables on PATH is iptables-legacy.
func IsLegacy(ctx context.Context, family kernel.Family) (bool, error) {
	backend, err := commandsFor(family, "").backend(ctx)
	return backend == backendLegacy, err
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
