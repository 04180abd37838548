package conntrack

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
)

// deletions is how many entries are deleted at once. The kernel's answers to all of them, should
// all fail, fit into the smallest receive buffer that is common.
const deletions = 64

// deleter deletes entries, some at a time, with the sockets of a handle.
type deleter struct {
	*handle
	entries []doomed // that were not deleted yet
	// requests is what the kernel is sent of them; last is where the last begins.
	requests []byte
	last     int

	// barred: the barrier is as it should be. full are the sets that have no more room. nudger is there when it is
	// needed, and can be had. noBarrier and noNudger are why they cannot, and unreached is how many nudges were not sent, of which the first
	// failed for unsent.
	barred              bool
	full                map[string]bool
	nudger              *nudger
	noBarrier, noNudger error
	unreached           int
	unsent              error
	// again are whose sources are to be nudged a second time.
	again []tuple

	// done is what has become of the flows.
	done Deleted
	// refused is how many the kernel did not delete, though they are there, and why the first.
	refused int
	refusal error
	// broken is why the kernel cannot be asked any more.
	broken error
}

// doomed is an entry that is to be deleted.
type doomed struct {
	ends
	verdict Verdict
	// barred: it cannot be taken up again. left: it was not deleted by this.
	barred, left bool
}

// ending tells that the flow does not go on.
func (d *doomed) ending() bool { return d.verdict == EndsAtPod || d.verdict == Ends }

// newDeleter returns one for a change.
func (k *handle) newDeleter() (*deleter, error) {
	if k.deletions == nil {
		s, err := openSocket()
		if err != nil {
			return nil, explain(err)
		}
		k.deletions = s
	}
	return &deleter{handle: k, full: map[string]bool{}}, nil
}

func (d *deleter) close() {
	if d.nudger != nil {
		d.nudger.closeAfter(d.again)
	}
}

// do does what a verdict on t says, unless t is gone: now, or when more have come together.
func (d *deleter) do(t *tracked, verdict Verdict) {
	if verdict == Resumes {
		d.nudge(&doomed{ends: t.ends, verdict: verdict})
		return
	}
	// A request that names no entry would empty the whole table.
	if !t.nameable() {
		return
	}
	d.deletions.sequence++
	d.last = len(d.requests)
	d.requests = t.appendName(appendHeader(d.requests, inet(d.family)))
	request := d.requests[d.last:]
	finishRequest(request, nl.IPCTNL_MSG_CT_DELETE, 0)
	binary.NativeEndian.PutUint32(request[8:], d.deletions.sequence)
	d.entries = append(d.entries, doomed{ends: t.ends, verdict: verdict})
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
		if d.broken = d.request(); d.broken == nil { // else nobody knows which of them the kernel met
			d.count()
		}
		for i := range d.entries {
			d.nudge(&d.entries[i])
		}
	}
	d.requests, d.entries = d.requests[:0], d.entries[:0]
}

// bar keeps the flows that end from being taken up again, where the kernel can do that and has room for them.
func (d *deleter) bar() error {
	ending := map[string][]*doomed{}
	for i := range d.entries {
		e := &d.entries[i]
		if set := barOf(e); e.ending() && set != "" {
			ending[set] = append(ending[set], e)
		}
	}
	if len(ending) == 0 || d.noBarrier != nil {
		return nil
	}
	if !d.barred {
		err := d.makeBarrier()
		if errors.Is(err, errNoBarrier) {
			d.noBarrier = err
			return nil
		}
		if err != nil {
			return err
		}
		d.barred = true
	}
	for set, entries := range ending {
		if err := d.barSome(set, entries); err != nil {
			return err
		}
	}
	return nil
}

// barSome bars as many flows of one set as there is room for. When there is none, there is none for the next ones.
func (d *deleter) barSome(set string, entries []*doomed) error {
	if !d.full[set] {
		err := d.barrier.fill(set, entries)
		if d.full[set] = errors.Is(err, unix.ENFILE); err != nil && !d.full[set] {
			return err
		}
	}
	for _, e := range entries {
		if !e.barred && !e.over() { // of which the far side takes nothing up
			d.done.Unbarred++
		}
	}
	return nil
}

// nudge lets those ends of a connection send a packet that have to, see [nudger]. An end that it does not
// reach learns what has become of the connection when it sends by itself.
func (d *deleter) nudge(e *doomed) {
	if !e.connected() || e.verdict == Leaves || e.ending() && !e.barred {
		return
	}
	if d.nudger == nil && d.noNudger == nil {
		d.nudger, d.noNudger = openNudger(d.family)
	}
	if d.nudger == nil {
		return
	}
	pod := e.original
	if e.verdict == Returns {
		pod = e.replying // the pod is the one that answers
	}
	err := d.nudger.nudge(pod)
	if e.verdict == Ends {
		err = errors.Join(err, d.nudger.nudge(e.replying))
	}
	if !e.ending() {
		d.again = append(d.again, pod)
	}
	if err != nil {
		d.unreached++
		d.unsent = cmp.Or(d.unsent, err)
	}
}

// complain says what the kernel does not let it do.
func (d *deleter) complain(logger klog.Logger) {
	if d.noBarrier != nil {
		logger.Info("Connections were deleted, but the other side may take them up again under the wrong source address; a kernel of version 5.9 or newer with nf_tables prevents that",
			"connections", d.done.Ended, "reason", d.noBarrier)
	}
	if d.done.Unbarred > 0 {
		logger.Info("Connections were deleted, but the other side may take some of them up again under the wrong source address: too many have ended in the last 20 minutes for the nftables table that prevents it. Look for a Service or pods that change all the time",
			"connections", d.done.Ended, "notPrevented", d.done.Unbarred, "table", barrierTable)
	}
	switch text := "Connections were reset or moved, but a side that only receives may not learn of it"; {
	case d.noNudger != nil:
		logger.Info(text+"; the node needs the capability CAP_NET_RAW", "connections", d.done.Ended, "reason", d.noNudger)
	case d.unreached > 0:
		logger.Info(text, "connections", d.done.Ended, "notReached", d.unreached, "reason", d.unsent)
	}
}

// request sends the requests and waits for what the kernel says of them.
func (d *deleter) request() error {
	// The kernel answers those that fail anyway, so all have been when the last is.
	binary.NativeEndian.PutUint16(d.requests[d.last+6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	if err := d.deletions.send(d.requests); err != nil {
		return err
	}
	for answered := false; !answered; {
		err := d.deletions.receive(func(m message) error {
			answered = answered || m.sequence == d.deletions.sequence
			d.note(m.sequence, errorOf(m))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// count counts the entries whose flows have ended.
func (d *deleter) count() {
	for _, e := range d.entries {
		if e.ending() && !e.left {
			d.done.Ended++
		}
	}
}

// note takes note of the answer to a request. They are numbered, one for each entry.
func (d *deleter) note(sequence uint32, err error) {
	if err == nil {
		return
	}
	if behind := int(d.deletions.sequence - sequence); behind < len(d.entries) {
		d.entries[len(d.entries)-1-behind].left = true
	}
	if errors.Is(err, unix.ENOENT) {
		return // somebody else was faster, or another flow has its place
	}
	d.refused++
	if d.refusal == nil {
		d.refusal = err
	}
}
