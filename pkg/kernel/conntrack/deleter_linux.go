package conntrack

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel"
)

// deletions is how many entries are deleted at once. The kernel's answers to all of them, should
// all fail, fit into the smallest receive buffer that is common.
const deletions = 64

// deleter deletes entries, some at a time.
type deleter struct {
	*socket
	family  kernel.Family
	entries []ends // that were not deleted yet
	// requests is what the kernel is sent of them; last is where the last begins.
	requests []byte
	last     int

	// barrier and nudger are there when they are needed, and can be had. lacks is why they cannot.
	barrier *barrier
	nudger  *nudger
	lacks   error

	// deleted is how many entries were deleted.
	deleted int
	// refused is how many the kernel did not delete, though they are there, and why the first.
	refused int
	refusal error
	// broken is why the kernel cannot be asked any more.
	broken error
}

func (k *handle) newDeleter() (*deleter, error) {
	s, err := openSocket()
	if err != nil {
		return nil, explain(err)
	}
	return &deleter{socket: s, family: k.family}, nil
}

func (d *deleter) close() {
	d.socket.close()
	if d.barrier != nil {
		d.barrier.close()
	}
	if d.nudger != nil {
		d.nudger.close()
	}
}

// delete deletes t, unless it is gone: now, or when more have come together.
func (d *deleter) delete(t *tracked) {
	// A request that names no entry would empty the whole table.
	if !t.nameable() {
		return
	}
	d.sequence++
	d.last = len(d.requests)
	b := append(d.requests, make([]byte, headerLength)...)
	b = append(b, inet(d.family), nl.NFNETLINK_V0, 0, 0) // nfgenmsg
	d.requests = t.appendName(b)
	header := d.requests[d.last:]
	binary.NativeEndian.PutUint32(header, uint32(len(header)))
	binary.NativeEndian.PutUint16(header[4:], unix.NFNL_SUBSYS_CTNETLINK<<8|nl.IPCTNL_MSG_CT_DELETE)
	binary.NativeEndian.PutUint16(header[6:], unix.NLM_F_REQUEST)
	binary.NativeEndian.PutUint32(header[8:], d.sequence)
	d.entries = append(d.entries, t.ends)
	if len(d.entries) == deletions {
		d.flush()
	}
}

// finish deletes what was not yet, and returns what went wrong since the beginning.
func (d *deleter) finish() error {
	d.flush()
	if d.refused > 0 {
		return errors.Join(d.broken, fmt.Errorf("the kernel refused to delete %d flows: %w", d.refused, d.refusal))
	}
	return d.broken
}

// flush deletes the entries. First they get their barrier: if the process is killed in between, the next one
// finds the entries and begins again.
func (d *deleter) flush() {
	if len(d.entries) > 0 && d.broken == nil {
		d.broken = d.bar()
	}
	if len(d.entries) > 0 && d.broken == nil {
		before := d.deleted
		d.deleted += len(d.entries)
		if d.broken = d.request(); d.broken != nil {
			d.deleted = before // which of them the kernel met, nobody knows
		}
		d.nudge()
	}
	d.requests, d.entries = d.requests[:0], d.entries[:0]
}

// bar keeps the entries from being taken up again, where the kernel can do that.
func (d *deleter) bar() error {
	if d.barrier == nil && d.lacks == nil {
		barrier, err := openBarrier(d.family)
		if errors.Is(err, errNoBarrier) {
			d.lacks = err
			return nil
		}
		if err != nil {
			return err
		}
		d.barrier = barrier
		d.nudger, d.lacks = openNudger(d.family)
	}
	if d.barrier == nil {
		return nil
	}
	return d.barrier.add(d.entries)
}

// nudge lets both ends of the connections know. Whom it does not reach learns of the end when it sends by itself.
func (d *deleter) nudge() {
	if d.nudger == nil {
		return
	}
	for i := range d.entries {
		if d.entries[i].connected() {
			_ = d.nudger.nudge(&d.entries[i])
		}
	}
}

// request sends the requests and waits for what the kernel says of them.
func (d *deleter) request() error {
	// The kernel answers those that fail anyway, so all have been when the last is.
	binary.NativeEndian.PutUint16(d.requests[d.last+6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	if err := d.send(d.requests); err != nil {
		return err
	}
	for answered := false; !answered; {
		err := d.receive(func(m message) error {
			answered = answered || m.sequence == d.sequence
			d.count(errorOf(m))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// count takes note of an answer.
func (d *deleter) count(err error) {
	if err == nil {
		return
	}
	d.deleted--
	if errors.Is(err, unix.ENOENT) {
		return // somebody else was faster, or another flow has its place
	}
	d.refused++
	if d.refusal == nil {
		d.refusal = err
	}
}
