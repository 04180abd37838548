package table

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Reader reads rules of an IP family's tables, whoever has written them; iptables-nft for example.
type Reader struct {
	ctx    context.Context
	conn   *Conn
	family byte
}

// OpenReader returns a Reader for the network namespace of the calling thread.
func OpenReader(ctx context.Context, family kernel.Family) (*Reader, error) {
	c, err := Open(ctx)
	if err != nil {
		return nil, err
	}
	return &Reader{ctx: ctx, conn: c, family: byte(FamilyOf(family).Table)}, nil
}

// Close gives back what the Reader has from the kernel.
func (r *Reader) Close() { r.conn.Close() }

// ListedRule is a rule as the kernel has it, whoever has written it.
type ListedRule struct {
	// Content is the same as long as the rule is, but for its counters.
	Content []byte
	// LeadsTo is the chain that it jumps or goes to, if any.
	LeadsTo string
}

// Rules calls visit with each rule of a chain in their order, and tells whether there is such a chain. It costs
// what the chain holds, however many others there are. A rule's content is visit's only until that returns.
func (r *Reader) Rules(table, chain string, visit func(ListedRule)) (exists bool, err error) {
	if err := r.requestRules(r.conn, table, chain); err != nil {
		return false, err
	}
	var rule ListedRule
	for message, err := range r.conn.raw.ReceiveIter() {
		if err != nil {
			return false, fmt.Errorf("list the rules of the nftables chain %s: %w", chain, err)
		}
		rule = decodeRule(message.Data[min(headerLength, len(message.Data)):], rule.Content[:0])
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
	c, err := Open(r.ctx)
	if err != nil {
		return false, err
	}
	defer c.Close()
	if err := r.requestRules(c, table, chain); err != nil {
		return false, err
	}
	for _, err := range c.raw.ReceiveIter() {
		c.Close() // else all others would be waited for
		if err != nil {
			return false, fmt.Errorf("list the rules of the nftables chain %s: %w", chain, err)
		}
		return true, nil
	}
	return false, nil
}

func (r *Reader) requestRules(c *Conn, table, chain string) error {
	request, err := r.request(unix.NFT_MSG_GETRULE, netlink.Dump, map[uint16]string{unix.NFTA_RULE_TABLE: table, unix.NFTA_RULE_CHAIN: chain})
	if err == nil {
		_, err = c.raw.Send(request)
	}
	if err != nil {
		return fmt.Errorf("list the rules of the nftables chain %s: %w", chain, err)
	}
	return nil
}

// hasChain tells whether there is a chain, which may be empty.
func (r *Reader) hasChain(table, chain string) (bool, error) {
	request, err := r.request(unix.NFT_MSG_GETCHAIN, 0, map[uint16]string{unix.NFTA_CHAIN_TABLE: table, unix.NFTA_CHAIN_NAME: chain})
	if err != nil {
		return false, err
	}
	_, err = r.conn.raw.Execute(request)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the nftables chain %s: %w", chain, err)
	}
	return true, nil
}

func (r *Reader) request(kind uint16, flags netlink.HeaderFlags, names map[uint16]string) (netlink.Message, error) {
	attributes := netlink.NewAttributeEncoder()
	for attribute, name := range names {
		attributes.String(attribute, name)
	}
	encoded, err := attributes.Encode()
	return netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(unix.NFNL_SUBSYS_NFTABLES<<8 | kind), Flags: netlink.Request | flags},
		Data:   append([]byte{r.family, unix.NFNETLINK_V0, 0, 0}, encoded...),
	}, err
}

// headerLength is that of struct nfgenmsg, behind which a message has its attributes.
const headerLength = 4

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
		r.LeadsTo = word(attribute(verdict, unix.NFTA_VERDICT_CHAIN))
	}
	r.Content = append(append(r.Content, name...), data...)
}

func word(value []byte) string { return string(bytes.TrimRight(value, "\x00")) }

// attribute returns the value of the first attribute of a kind; nil if there is none.
func attribute(encoded []byte, kind uint16) []byte {
	for k, value := range attributes(encoded) {
		if k == kind {
			return value
		}
	}
	return nil
}

// attributes are those of a message, or of another attribute, up to the first that the kernel would not
// have written.
func attributes(encoded []byte) iter.Seq2[uint16, []byte] {
	return func(yield func(uint16, []byte) bool) {
		const header, flags = unix.SizeofNlAttr, unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER
		for len(encoded) >= header {
			length, kind := int(binary.NativeEndian.Uint16(encoded)), binary.NativeEndian.Uint16(encoded[2:])
			if length < header || length > len(encoded) || !yield(kind&^flags, encoded[header:length]) {
				return
			}
			aligned := (length + unix.NLA_ALIGNTO - 1) &^ (unix.NLA_ALIGNTO - 1)
			encoded = encoded[min(aligned, len(encoded)):]
		}
	}
}
