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

// LegacyPart is a match or a target, with the bytes of its structure. They are good until the next rule.
type LegacyPart struct {
	Name string
	Info []byte
}

// LegacyRules tells all rules in the legacy tables of a family, in the network namespace of the calling thread, but for those of tables
// that are larger than 8 MiB: kube-proxy has tens of thousands of rules there. It runs no program and makes no table.
func LegacyRules(family kernel.Family, tell func(LegacyRule)) error {
	l, err := openLegacy(family)
	if err != nil {
		return err
	}
	defer l.Close()
	for _, name := range l.names {
		info, err := l.info(name)
		if err == nil && info.Size <= mostHashed {
			var t *legacyTable
			if t, err = l.table(name); err == nil {
				t.tell(name, tell)
			}
		}
		if err != nil {
			return fmt.Errorf("read the legacy table %s: %w", name, err)
		}
	}
	return nil
}

// tell tells all rules of a table.
func (t *legacyTable) tell(name string, tell func(LegacyRule)) {
	hooks := map[int]string{}
	for hook, chain := range hookChains {
		if t.info.ValidHooks&(1<<hook) != 0 {
			hooks[int(t.info.HookEntry[hook])] = chain
		}
	}
	chain := ""
	for at, entry := range t.all(t.whole()) {
		if hook, begins := hooks[at]; begins {
			chain = hook
		}
		if named := t.chainName(entry); named != nil {
			chain = string(named)
			continue
		}
		tell(LegacyRule{Table: name, Chain: chain, Parts: t.parts(entry)})
	}
}

// parts returns the matches and the target of an entry: each is its length, its name and its structure.
func (t *legacyTable) parts(entry []byte) (parts []LegacyPart) {
	for at := t.counters + countersLength; at+targetHeader <= len(entry); {
		length := int(binary.NativeEndian.Uint16(entry[at:]))
		if length < targetHeader || at+length > len(entry) {
			break
		}
		name, _, _ := bytes.Cut(entry[at+targetNameOffset:at+targetHeader-1], []byte{0})
		parts = append(parts, LegacyPart{Name: string(name), Info: entry[at+targetHeader : at+length]})
		at += length
	}
	return parts
}
