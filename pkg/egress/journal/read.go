package journal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"time"

	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/kernel"
)

// Wanted tells whether what is about these ports of an egress IP is wanted; nil wants all.
type Wanted func(egressIP netip.Addr, ports kernel.Ports) bool

// About wants what is about an egress IP and a port.
func About(q netip.AddrPort) Wanted {
	return func(egressIP netip.Addr, ports kernel.Ports) bool {
		return egressIP == q.Addr() && ports.Contains(q.Port())
	}
}

// Period is a time, both ends included.
type Period struct{ From, To time.Time }

// contains tells whether at is in the period. One that has just begun has no time yet: lines of it may follow.
func (p Period) contains(at time.Time) bool {
	return p.From.Before(p.To) && !at.Before(p.From) && !at.After(p.To)
}

// String returns both ends.
func (p Period) String() string { return p.From.Format(timeForm) + " to " + p.To.Format(timeForm) }

// Span is how long a pod had ports.
type Span struct {
	portblocks.Assignment
	// Seen is until when the pod had them for certain, Until when they were taken back. These are the same if that is known exactly.
	// A zero Until: the files do not tell of an end.
	Seen, Until time.Time
}

// had tells whether the pod had the ports at a time, for certain.
func (s Span) had(at time.Time) bool {
	if at.Before(s.Since) {
		return false
	}
	return at.Before(s.Until) && s.Seen.Equal(s.Until) || !s.Seen.Equal(s.Until) && !at.After(s.Seen)
}

// may tells whether the pod may have had the ports at a time, which is not certain.
func (s Span) may(at time.Time) bool {
	return !at.Before(s.Since) && !s.had(at) && (s.Until.IsZero() || at.Before(s.Until))
}

// File is what a file says.
type File struct {
	// Name is the file's, for messages.
	Name string
	header
	// covered are the times of which the file has everything, the last one in any case.
	covered []Period
	// live is the last time that says alive; zero if none does.
	live  time.Time
	spans []Span
	// open are the indexes of those spans that have not ended, by reference.
	open map[uint64]int
	// refs is how many references the file has used, and read how many bytes its lines have.
	refs uint64
	read int64
	// damaged is the first thing that is wrong with a line; nil if all are right. What is after it has ends that are missing, maybe.
	damaged error
	// cut: after the last line comes one that has no end.
	cut bool
}

// longestLine is more than any line has.
const longestLine = 4096

// Read reads a file. It is an error if that is no journal; what is wrong with a line is noted in the File.
func Read(name string, from io.Reader, want Wanted) (*File, error) {
	reader := bufio.NewReaderSize(from, 1<<18)
	text, err := readLine(reader)
	if err != nil {
		return nil, fmt.Errorf("%s: its first line: %w", name, wholeOr(err))
	}
	f := &File{Name: name, open: map[uint64]int{}, read: int64(len(text)) + 1}
	if f.header, err = parseHeader(text); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f.covered = []Period{{f.from, f.from}}
	// Most lines are not wanted. The references of these are known without a Span.
	others := references{}
	for number := 2; ; number++ {
		text, err := readLine(reader)
		switch {
		case errors.Is(err, io.EOF):
			f.finish()
			return f, nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			f.cut = true
			f.finish()
			return f, nil
		case err != nil && !errors.Is(err, errLong):
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		f.read += int64(len(text)) + 1
		var l line
		if err == nil {
			l, err = parseLine(text)
		}
		if err == nil {
			err = f.take(l, want, others)
		}
		if err != nil && f.damaged == nil {
			f.damaged = fmt.Errorf("%s:%d: %w", name, number, err)
		}
	}
}

// errLong is that of a line that is too long, and is skipped.
var errLong = fmt.Errorf("the line has more than %d bytes", longestLine)

// wholeOr names the end of a file that is empty, or has no whole line.
func wholeOr(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it is missing, or not whole")
	}
	return err
}

// readLine returns the next line without its end, until the next call. It is [io.ErrUnexpectedEOF] if the last line has no end.
func readLine(reader *bufio.Reader) ([]byte, error) {
	text, err := reader.ReadSlice('\n')
	long := len(text) > longestLine
	for errors.Is(err, bufio.ErrBufferFull) {
		long = true
		text, err = reader.ReadSlice('\n')
	}
	switch {
	case errors.Is(err, io.EOF) && len(text) > 0:
		return nil, io.ErrUnexpectedEOF
	case err != nil:
		return nil, err
	case long:
		return nil, errLong
	}
	return bytes.TrimSuffix(text, []byte{'\n'}), nil
}

// take takes a line.
func (f *File) take(l line, want Wanted, others references) error {
	last := &f.covered[len(f.covered)-1]
	switch l.kind {
	case assigned:
		return f.begin(l, want, others)
	case released:
		i, known := f.open[l.ref]
		switch {
		case known && !l.seen.IsZero():
			f.spans[i].Seen, f.spans[i].Until = l.seen, l.at
		case known:
			f.spans[i].Seen, f.spans[i].Until = l.at, l.at
		case !others.has(l.ref):
			return fmt.Errorf("it ends %s, which has not begun", "reference "+strconv.FormatUint(l.ref, 36))
		}
		delete(f.open, l.ref)
		others.remove(l.ref)
	case alive:
		if f.damaged == nil {
			if last.To = later(l.at, last.To); l.at.Before(f.from) { // the file began while lines of before had to wait
				last.To = l.at
			}
			f.live = later(l.at, f.live)
		}
	case gap:
		if f.damaged == nil {
			if l.seen.Before(last.To) {
				last.To = l.seen
			}
			f.covered = append(f.covered, Period{l.at, l.at})
		}
	}
	return nil
}

// begin takes the line of an assignment.
func (f *File) begin(l line, want Wanted, others references) error {
	if _, known := f.open[l.ref]; known || others.has(l.ref) {
		return fmt.Errorf("it begins %s, which has not ended", "reference "+strconv.FormatUint(l.ref, 36))
	}
	f.refs = max(f.refs, l.ref)
	if want != nil && !want(l.egressIP, l.ports) {
		others.add(l.ref)
		return nil
	}
	a := l.assignment(f.node)
	if err := validate(a); err != nil {
		return err
	}
	f.open[l.ref] = len(f.spans)
	f.spans = append(f.spans, Span{Assignment: a})
	return nil
}

// finish says of what has not ended until when it was there.
func (f *File) finish() {
	for _, i := range f.open {
		f.spans[i].Seen = later(f.live, f.spans[i].Since)
	}
}

// begun tells whether nothing is missing of what the file began with, which is a copy perhaps.
func (f *File) begun() bool { return f.afterSize == 0 || !f.live.IsZero() || len(f.covered) > 1 }

// goesOn tells whether the file has everything that came after another one, of which no line is missing, nor what this one began with.
func (f *File) goesOn(before *File) bool {
	return f.begun() && f.after.Equal(before.from) && f.afterSize > 0 && before.read >= f.afterSize && before.damaged == nil
}

// end is the last time of which the file has everything.
func (f *File) end() time.Time { return f.covered[len(f.covered)-1].To }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// references are a set of numbers that are mostly in a row: a word of bits for each 64 of them.
type references map[uint64]uint64

func (r references) add(ref uint64)      { r[ref/64] |= 1 << (ref % 64) }
func (r references) has(ref uint64) bool { return r[ref/64]&(1<<(ref%64)) != 0 }

func (r references) remove(ref uint64) {
	if r[ref/64] &^= 1 << (ref % 64); r[ref/64] == 0 {
		delete(r, ref/64)
	}
}
