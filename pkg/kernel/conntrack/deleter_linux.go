package conntrack

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"

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

	// barrier and nudger are there when they are needed, and can be had. noBarrier and noNudger are
	// why they cannot, and unreached is how many nudges were not sent.
	barrier             *barrier
	nudger              *nudger
	noBarrier, noNudger error
	unreached           int

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
	if d.barrier == nil && d.noBarrier == nil {
		barrier, err := openBarrier(d.family)
		if errors.Is(err, errNoBarrier) {
			d.noBarrier = err
			return nil
		}
		if err != nil {
			return err
		}
		d.barrier = barrier
		d.nudger, d.noNudger = openNudger(d.family)
	}
	if d.barrier == nil {
		return nil
	}
	return d.barrier.add(d.entries)
}

// nudge lets both ends of the connections know. An end that it does not reach learns it when it sends by
// itself.
func (d *deleter) nudge() {
	if d.nudger == nil {
		return
	}
	for i := range d.entries {
		if d.entries[i].connected() {
			if d.nudger.nudge(&d.entries[i]) != nil {
				d.unreached++
			}
		}
	}
}

// complain says what the kernel does not let it do.
func (d *deleter) complain(logger klog.Logger) {
	if d.noBarrier != nil {
		logger.Info("Connections were deleted, but the other side may take them up again under the wrong source address; a kernel of version 5.9 or newer with nf_tables prevents that",
			"connections", d.deleted, "reason", d.noBarrier)
	}
	if d.noNudger != nil || d.unreached > 0 {
		logger.Info("Connections were reset, but a side that only receives may not learn of it; the node needs the capability CAP_NET_RAW",
			"connections", d.deleted, "notReached", d.unreached, "reason", d.noNudger)
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
