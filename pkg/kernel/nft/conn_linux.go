package nft

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
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
	// receiveBuffer bounds the answers to one: up to a kilobyte of the kernel's memory for every message, and a table of steering to 5,000
	// nodes has 20,000.
	receiveBuffer = 64 << 20
	// listBuffer is the most that the kernel puts into one message of a list. In each message it goes through
	// the list from its beginning, so with small ones a long list takes seconds.
	listBuffer = 32 << 10
)

// ErrNone is returned where the kernel has no nftables.
var ErrNone = errors.New("this kernel has no nftables (nf_tables)")

// UnlessNone returns err unless it is [ErrNone]: a kernel without nftables holds nothing there.
func UnlessNone(err error) error {
	if errors.Is(err, ErrNone) {
		return nil
	}
	return err
}

// Conn is a connection to the kernel's nftables, for several questions and transactions.
type Conn struct {
	*nftables.Conn
	raw *netlink.Conn
	// lists is for long answers; nil before the first one.
	lists    *netlink.Conn
	deadline time.Time
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
	if _, err := c.Generation(); err != nil { // netfilter may be there without nftables
		c.Close()
		return nil, err
	}
	return c, nil
}

// expect gives the kernel its time to answer, from now on.
func (c *Conn) expect(ctx context.Context) error {
	within := answerTime
	if at, ok := ctx.Deadline(); ok {
		within = min(within, time.Until(at))
	}
	return c.Within(within)
}

// Within gives the kernel so long to answer what is asked from now on.
func (c *Conn) Within(d time.Duration) error {
	c.deadline = time.Now().Add(d)
	if err := c.raw.SetDeadline(c.deadline); err != nil {
		return fmt.Errorf("connect to nftables: %w", err)
	}
	return nil
}

// Close ends the connection.
func (c *Conn) Close() {
	_ = c.CloseLasting() // nothing is under way
	c.closeLists()
}

func (c *Conn) closeLists() {
	if c.lists != nil {
		_ = c.lists.Close() // nobody waits for the rest of an answer
		c.lists = nil
	}
}

// list asks for a list, and yields the attributes of its entries. They are the caller's only until the next
// one.
func (c *Conn) list(family nftables.TableFamily, kind uint16, names map[uint16]string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if err := c.ask(family, kind, names); err != nil {
			yield(nil, err)
			return
		}
		for message, err := range c.lists.ReceiveIter() {
			if !yield(message.Data[min(headerLength, len(message.Data)):], err) || err != nil {
				c.closeLists() // else the rest would be waited for
				return
			}
		}
	}
}

func (c *Conn) ask(family nftables.TableFamily, kind uint16, names map[uint16]string) (err error) {
	if c.lists == nil {
		if c.lists, err = netlink.Dial(unix.NETLINK_NETFILTER, &netlink.Config{MessageBufferSize: listBuffer}); err != nil {
			return err
		}
	}
	if err := c.lists.SetDeadline(c.deadline); err != nil {
		return err
	}
	question, err := request(family, kind, netlink.Dump, names)
	if err != nil {
		return err
	}
	_, err = c.lists.Send(question)
	return err
}

// headerLength is that of struct nfgenmsg, behind which a message has its attributes.
const headerLength = 4

func request(family nftables.TableFamily, kind uint16, flags netlink.HeaderFlags, names map[uint16]string) (netlink.Message, error) {
	attributes := netlink.NewAttributeEncoder()
	for attribute, name := range names {
		attributes.String(attribute, name)
	}
	encoded, err := attributes.Encode()
	return netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(unix.NFNL_SUBSYS_NFTABLES<<8 | kind), Flags: netlink.Request | flags},
		Data:   append([]byte{byte(family), unix.NFNETLINK_V0, 0, 0}, encoded...),
	}, err
}

// get asks for one thing, and returns the attributes of the answer; none if there is no answer.
func (c *Conn) get(family nftables.TableFamily, kind uint16, names map[uint16]string) ([]byte, error) {
	question, err := request(family, kind, 0, names)
	if err != nil {
		return nil, err
	}
	answers, err := c.raw.Execute(question)
	if err != nil || len(answers) == 0 {
		return nil, err
	}
	return answers[0].Data[min(headerLength, len(answers[0].Data)):], nil
}

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

// word is the value of an attribute that is a name.
func word(value []byte) string { return string(bytes.TrimRight(value, "\x00")) }

// Generation returns the number of the kernel's ruleset in the network namespace, which each transaction of
// anybody raises by one. The error is [ErrNone] if the kernel has no nftables.
func (c *Conn) Generation() (uint32, error) {
	answer, err := c.get(nftables.TableFamilyUnspecified, unix.NFT_MSG_GETGEN, nil)
	if errors.Is(err, unix.EINVAL) {
		return 0, ErrNone // nobody serves this part of netfilter
	}
	id := attribute(answer, unix.NFTA_GEN_ID)
	if len(id) != 4 {
		return 0, fmt.Errorf("ask nftables for its generation: %w", cmp.Or(err, errors.New("the answer has none")))
	}
	return binary.BigEndian.Uint32(id), nil
}

// devices returns the devices at which the chains of a table are, by chain; an empty one for a chain at none.
func (c *Conn) devices(t *nftables.Table) (map[string]string, error) {
	devices := map[string]string{}
	for encoded, err := range c.list(t.Family, unix.NFT_MSG_GETCHAIN, nil) {
		if err != nil {
			return nil, fmt.Errorf("list the chains of the nftables table %s: %w", t.Name, err)
		}
		if word(attribute(encoded, unix.NFTA_CHAIN_TABLE)) == t.Name {
			hook := attribute(encoded, unix.NFTA_CHAIN_HOOK)
			devices[word(attribute(encoded, unix.NFTA_CHAIN_NAME))] = word(attribute(hook, unix.NFTA_HOOK_DEV))
		}
	}
	return devices, nil
}

// marks returns the marks of all rules of a table, by chain. A chain without rules is not there. The library
// asks for one chain at a time, and there may be a thousand.
func (c *Conn) marks(t *nftables.Table) (map[string][]string, error) {
	marks := map[string][]string{}
	for encoded, err := range c.list(t.Family, unix.NFT_MSG_GETRULE, map[uint16]string{unix.NFTA_RULE_TABLE: t.Name}) {
		if err != nil {
			return nil, fmt.Errorf("list the rules of the nftables table %s: %w", t.Name, err)
		}
		chain := word(attribute(encoded, unix.NFTA_RULE_CHAIN))
		marks[chain] = append(marks[chain], string(attribute(encoded, unix.NFTA_RULE_USERDATA)))
	}
	return marks, nil
}
