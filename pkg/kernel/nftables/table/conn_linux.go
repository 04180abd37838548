package table

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

const (
	// answerTime is how long the kernel may take to answer; large transactions take a second.
	answerTime = 30 * time.Second
	// sendBuffer bounds a transaction: a hundred bytes for an element, so some 600,000.
	sendBuffer = 64 << 20
	// receiveBuffer bounds the answers to one: one for every message.
	receiveBuffer = 8 << 20
)

// ErrNone is returned where the kernel has no nftables.
var ErrNone = errors.New("this kernel has no nftables (nf_tables)")

// Conn is a connection to the kernel's nftables, for several questions and transactions.
type Conn struct {
	*nftables.Conn
	raw *netlink.Conn
}

// Open connects to the nftables of the thread's network namespace. The error is [ErrNone] if there is none.
func Open(ctx context.Context) (*Conn, error) {
	c := &Conn{}
	option := func(raw *netlink.Conn) error {
		c.raw = raw
		return errors.Join(raw.SetWriteBuffer(sendBuffer), raw.SetReadBuffer(receiveBuffer), c.expect(ctx))
	}
	var err error
	if c.Conn, err = nftables.New(nftables.AsLasting(), nftables.WithSockOptions(option)); err != nil {
		if errors.Is(err, unix.EPROTONOSUPPORT) {
			return nil, ErrNone
		}
		return nil, fmt.Errorf("connect to nftables: %w", err)
	}
	return c, nil
}

// expect gives the kernel its time to answer, from now on.
func (c *Conn) expect(ctx context.Context) error {
	deadline := time.Now().Add(answerTime)
	if at, ok := ctx.Deadline(); ok && at.Before(deadline) {
		deadline = at
	}
	if err := c.raw.SetDeadline(deadline); err != nil {
		return fmt.Errorf("connect to nftables: %w", err)
	}
	return nil
}

// Close ends the connection.
func (c *Conn) Close() { _ = c.CloseLasting() } // nothing is under way

// Generation returns the number of the kernel's ruleset in the network namespace, which each transaction of
// anybody raises by one. The error is [ErrNone] if the kernel has no nftables.
func (c *Conn) Generation() (uint32, error) {
	answers, err := c.raw.Execute(netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETGEN), Flags: netlink.Request},
		Data:   []byte{unix.AF_UNSPEC, unix.NFNETLINK_V0, 0, 0},
	})
	switch {
	case errors.Is(err, unix.EINVAL):
		return 0, ErrNone // nobody serves this part of netfilter
	case err != nil:
		return 0, fmt.Errorf("ask nftables for its generation: %w", err)
	case len(answers) == 0 || len(answers[0].Data) < 4:
		return 0, errors.New("ask nftables for its generation: no answer")
	}
	attributes, err := netlink.NewAttributeDecoder(answers[0].Data[4:])
	if err != nil {
		return 0, fmt.Errorf("ask nftables for its generation: %w", err)
	}
	attributes.ByteOrder = binary.BigEndian
	for attributes.Next() {
		if attributes.Type() == unix.NFTA_GEN_ID {
			return attributes.Uint32(), nil
		}
	}
	return 0, errors.New("ask nftables for its generation: the answer has none")
}

// marks returns the marks of all rules of a table, by chain. A chain without rules is not there. The library
// asks for one chain at a time, and there may be a thousand.
func (c *Conn) marks(t *nftables.Table) (map[string][]string, error) {
	table, err := netlink.MarshalAttributes([]netlink.Attribute{{Type: unix.NFTA_RULE_TABLE, Data: []byte(t.Name + "\x00")}})
	if err != nil {
		return nil, err
	}
	answers, err := c.raw.Execute(netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETRULE), Flags: netlink.Request | netlink.Dump},
		Data:   append([]byte{byte(t.Family), unix.NFNETLINK_V0, 0, 0}, table...),
	})
	if err != nil {
		return nil, fmt.Errorf("list the rules of the nftables table %s: %w", t.Name, err)
	}
	marks := map[string][]string{}
	for _, answer := range answers {
		if len(answer.Data) < 4 {
			continue // the end of the list
		}
		attributes, err := netlink.NewAttributeDecoder(answer.Data[4:])
		if err != nil {
			return nil, fmt.Errorf("list the rules of the nftables table %s: %w", t.Name, err)
		}
		var chain, mark string
		for attributes.Next() {
			switch attributes.Type() {
			case unix.NFTA_RULE_CHAIN:
				chain = attributes.String()
			case unix.NFTA_RULE_USERDATA:
				mark = string(attributes.Bytes())
			}
		}
		marks[chain] = append(marks[chain], mark)
	}
	return marks, nil
}
