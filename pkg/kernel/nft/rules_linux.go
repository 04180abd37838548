package nft

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Reader reads rules of an IP family's tables, whoever has written them; iptables-nft for example.
type Reader struct {
	conn   *Conn
	family nftables.TableFamily
}

// OpenReader returns a Reader for the network namespace of the calling thread.
func OpenReader(ctx context.Context, family kernel.Family) (*Reader, error) {
	c, err := Open(ctx)
	if err != nil {
		return nil, err
	}
	return &Reader{conn: c, family: FamilyOf(family).Table}, nil
}

// Close gives back what the Reader has from the kernel.
func (r *Reader) Close() { r.conn.Close() }

// ListedRule is a rule as the kernel has it, whoever has written it.
type ListedRule struct {
	// Content is the same as long as the rule is, but for its counters.
	Content []byte
	// LeadsTo is the chain that it jumps or goes to, if any. LeadsAnywhere: a map of verdicts says where.
	LeadsTo       string
	LeadsAnywhere bool
}

// Rules calls visit with each rule of a chain in their order, and tells whether there is such a chain. It costs
// what the chain holds, however many others there are. A rule's content is visit's only until that returns.
func (r *Reader) Rules(table, chain string, visit func(ListedRule)) (exists bool, err error) {
	var rule ListedRule
	for encoded, err := range r.list(table, chain) {
		if err != nil {
			return false, fmt.Errorf("list the rules of the nftables chain %s: %w", chain, err)
		}
		rule = decodeRule(encoded, rule.Content[:0])
		visit(rule)
		exists = true
	}
	if exists {
		return true, nil
	}
	return r.hasChain(table, chain)
}

// HasRules tells whether a chain has rules, however many.
func (r *Reader) HasRules(table, chain string) (bool, error) {
	for _, err := range r.list(table, chain) {
		if err != nil {
			return false, fmt.Errorf("list the rules of the nftables chain %s: %w", chain, err)
		}
		return true, nil
	}
	return false, nil
}

func (r *Reader) list(table, chain string) iter.Seq2[[]byte, error] {
	return r.conn.list(r.family, unix.NFT_MSG_GETRULE, map[uint16]string{unix.NFTA_RULE_TABLE: table, unix.NFTA_RULE_CHAIN: chain})
}

// hasChain tells whether there is a chain, which may be empty.
func (r *Reader) hasChain(table, chain string) (bool, error) {
	_, err := r.conn.get(r.family, unix.NFT_MSG_GETCHAIN, map[uint16]string{unix.NFTA_CHAIN_TABLE: table, unix.NFTA_CHAIN_NAME: chain})
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the nftables chain %s: %w", chain, err)
	}
	return true, nil
}

// decodeRule returns the rule that a message tells of, its content appended to a buffer.
func decodeRule(encoded, content []byte) ListedRule {
	rule := ListedRule{Content: content}
	for kind, value := range attributes(encoded) {
		switch kind {
		case unix.NFTA_RULE_EXPRESSIONS:
			for _, expression := range attributes(value) {
				rule.addExpression(attribute(expression, unix.NFTA_EXPR_NAME), attribute(expression, unix.NFTA_EXPR_DATA))
			}
		case unix.NFTA_RULE_COMPAT, unix.NFTA_RULE_USERDATA:
			rule.Content = append(rule.Content, value...)
		}
	}
	return rule
}

func (r *ListedRule) addExpression(name, data []byte) {
	switch word(name) {
	case "counter":
		return
	case "immediate":
		verdict := attribute(attribute(data, unix.NFTA_IMMEDIATE_DATA), unix.NFTA_DATA_VERDICT)
		if chain := word(attribute(verdict, unix.NFTA_VERDICT_CHAIN)); chain != "" {
			r.LeadsTo = chain
		}
	case "lookup":
		if to := attribute(data, unix.NFTA_LOOKUP_DREG); len(to) == 4 && binary.BigEndian.Uint32(to) == unix.NFT_REG_VERDICT {
			r.LeadsAnywhere = true
		}
	}
	r.Content = append(append(r.Content, name...), data...)
}
