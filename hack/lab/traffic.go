//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// TrafficConfig says which servers are asked, how often, and which answers are right.
type TrafficConfig struct {
	// To are the servers. A host asks those of the families that it has.
	To []netip.AddrPort
	// Protocols are of tcp, udp, sctp and icmp; none means tcp and udp.
	Protocols []string
	// Rate is how many questions are asked per second, by all hosts together and
	// each in its turn; 0 means 100. What waits for an answer is left out: where
	// nothing is answered, fewer are asked.
	Rate int
	// Timeout is when a question counts as unanswered; 0 means 2 s.
	Timeout time.Duration
	// Check judges every question when it has ended, one at a time. An error says
	// what is wrong with it, and makes it a wrong one. A question without an answer
	// (Err) comes here too, and is counted as unanswered whatever Check says. Nil
	// finds nothing wrong.
	Check func(Question) error
}

// Question is one that was asked, and what came of it.
type Question struct {
	From    *Host
	Network string // tcp4, tcp6, udp4, udp6, sctp4, sctp6, icmp4 or icmp6
	To      netip.AddrPort
	// Opened is when the flow began. That of a kept flow is before Start, but for
	// its first question.
	Kept   bool
	Opened time.Time
	// Seen is the address that the server saw, at some time from Start to End: an answer to an
	// earlier question is never taken for that to this one. An answer on a kept TCP
	// flow is about Opened, when the server saw the connection.
	Seen       netip.Addr
	Start, End time.Time
	// Err is why there is no answer; nil when there is.
	Err error
}

func (q Question) String() string {
	flow := "a new flow"
	if q.Kept {
		flow = "the flow of " + q.Opened.Format(clock)
	}
	seen := "seen as " + q.Seen.String()
	if q.Err != nil {
		seen = "unanswered: " + q.Err.Error()
	}
	return fmt.Sprintf("%s to %s, %s to %s %s in %s: %s", q.Start.Format(clock), q.End.Format(clock), q.From.Name, q.Network, q.To, flow, seen)
}

const clock = "15:04:05.000"

// Traffic asks servers again and again which addresses they see the hosts from: every host, on
// every network, in new flows and in one that it keeps (TCP and UDP). A kept flow
// is opened anew when the connection broke, not for want of an answer.
type Traffic struct {
	cfg   TrafficConfig
	start time.Time
	stop  chan struct{}
	wg    sync.WaitGroup

	checking sync.Mutex // held while Check runs

	mu      sync.Mutex
	changed chan struct{} // closed when a question has ended
	streams []*stream
	next    int
	sum     Summary
	end     time.Time
}

// stream is one kind of question of one host.
type stream struct {
	from    *Host
	network string
	to      netip.AddrPort
	kept    bool

	// For the goroutine that has made it busy.
	flow   *Flow
	opened time.Time

	// Under the lock of the traffic.
	busy        bool
	answered    time.Time // start of the last question that was answered
	silentSince time.Time // start of the first that was not, since then
	unanswered  error     // of the last question; nil if it was answered
}

func (s *stream) String() string {
	flows := "new flows"
	if s.kept {
		flows = "kept flow"
	}
	return fmt.Sprintf("%s to %s %s, %s", s.from.Name, s.network, s.to, flows)
}

// StartTraffic begins to ask. It ends with Stop.
func StartTraffic(cfg TrafficConfig, from ...*Host) *Traffic {
	if len(cfg.Protocols) == 0 {
		cfg.Protocols = []string{"tcp", "udp"}
	}
	if cfg.Rate <= 0 {
		cfg.Rate = 100
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = Stretch(2 * time.Second)
	}
	t := &Traffic{cfg: cfg, start: time.Now(), stop: make(chan struct{}), changed: make(chan struct{})}
	t.Add(from...)
	t.wg.Go(t.run)
	return t
}

// Add has more hosts ask.
func (t *Traffic) Add(hosts ...*Host) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range hosts {
		for _, to := range t.cfg.To {
			if h.sameFamily(to.Addr()).IsValid() {
				t.addStreams(h, to)
			}
		}
	}
}

func (t *Traffic) addStreams(h *Host, to netip.AddrPort) {
	family := "4"
	if to.Addr().Is6() {
		family = "6"
	}
	for _, protocol := range t.cfg.Protocols {
		t.streams = append(t.streams, &stream{from: h, network: protocol + family, to: to})
		if protocol == "tcp" || protocol == "udp" {
			t.streams = append(t.streams, &stream{from: h, network: protocol + family, to: to, kept: true})
		}
	}
}

// Remove has hosts ask no more, closes their flows and returns when their last
// questions have ended. A pod leaves here before it is removed.
func (t *Traffic) Remove(hosts ...*Host) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var leaving []*stream
	t.streams = slices.DeleteFunc(t.streams, func(s *stream) bool {
		leaves := slices.Contains(hosts, s.from)
		if leaves {
			leaving = append(leaving, s)
		}
		return leaves
	})
	for _, s := range leaving {
		for s.busy {
			t.wait(context.Background())
		}
		s.close()
	}
}

func (s *stream) close() {
	if s.flow != nil {
		_ = s.flow.Close()
		s.flow = nil
	}
}

// wait waits until a question has ended, without the lock.
func (t *Traffic) wait(ctx context.Context) {
	changed := t.changed
	t.mu.Unlock()
	defer t.mu.Lock()
	select {
	case <-changed:
	case <-ctx.Done():
	}
}

// Round returns when every host has been answered, on every network, in a new
// flow and in its kept one, to a question asked after the call. An error names
// those that had no answer when ctx ended, and why their last questions had none.
func (t *Traffic) Round(ctx context.Context) error {
	start := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		var missing []string
		for _, s := range t.streams {
			if s.answered.Before(start) {
				text := s.String()
				if s.unanswered != nil {
					text += fmt.Sprintf(" (%v)", s.unanswered)
				}
				missing = append(missing, text)
			}
		}
		if len(missing) == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("traffic: no answer in %s: %s: %w",
				time.Since(start).Round(time.Millisecond), strings.Join(missing, "; "), ctx.Err())
		}
		t.wait(ctx)
	}
}

// Stop ends the traffic and returns when the last questions have ended.
func (t *Traffic) Stop() Summary {
	t.mu.Lock()
	if t.end.IsZero() {
		close(t.stop)
		t.end = time.Now()
	}
	t.mu.Unlock()
	t.wg.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.streams {
		s.close()
	}
	return t.summary()
}

func (t *Traffic) run() {
	tick := time.NewTicker(time.Second / time.Duration(t.cfg.Rate))
	defer tick.Stop()
	for {
		select {
		case <-t.stop:
			return
		case <-tick.C:
			if s := t.nextIdle(); s != nil {
				t.wg.Go(func() { t.ask(s) })
			}
		}
	}
}

// nextIdle returns the next stream that waits for no answer, and makes it busy.
func (t *Traffic) nextIdle() *stream {
	t.mu.Lock()
	defer t.mu.Unlock()
	for range t.streams {
		t.next = (t.next + 1) % len(t.streams)
		if s := t.streams[t.next]; !s.busy {
			s.busy = true
			return s
		}
	}
	return nil
}

// ask asks one question and accounts for it.
func (t *Traffic) ask(s *stream) {
	ctx, cancel := context.WithTimeout(context.Background(), t.cfg.Timeout)
	defer cancel()
	q := Question{From: s.from, Network: s.network, To: s.to, Kept: s.kept, Start: time.Now()}
	q.Opened = q.Start
	broke := false
	if s.kept {
		q.Seen, q.Err = s.askKept(ctx)
		q.Opened = s.opened
		if broke = s.broken(q.Err); broke {
			s.close()
		}
	} else {
		q.Seen, q.Err = s.askNew(ctx)
	}
	q.End = time.Now()

	wrong := t.check(q)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sum.count(q, wrong, broke)
	t.sum.note(s, s.tell(q))
	s.busy = false
	close(t.changed)
	t.changed = make(chan struct{})
}

func (t *Traffic) check(q Question) error {
	if t.cfg.Check == nil {
		return nil
	}
	t.checking.Lock()
	defer t.checking.Unlock()
	return t.cfg.Check(q)
}

// tell notes whether a question was answered, and returns for how long none was.
func (s *stream) tell(q Question) (silence time.Duration) {
	if q.Err != nil {
		if s.silentSince.IsZero() {
			s.silentSince = q.Start
		}
		s.unanswered = q.Err
		return q.End.Sub(s.silentSince)
	}
	s.answered, s.unanswered = q.Start, nil
	if !s.silentSince.IsZero() {
		silence = q.End.Sub(s.silentSince)
		s.silentSince = time.Time{}
	}
	return silence
}

// broken reports whether the kept flow ended with a question. UDP knows no end.
func (s *stream) broken(err error) bool {
	return s.flow != nil && s.flow.lines != nil && err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

func (s *stream) askKept(ctx context.Context) (netip.Addr, error) {
	if s.flow == nil {
		s.opened = time.Now()
		flow, err := s.from.dial(ctx, s.network, s.to, 0)
		if err != nil {
			return netip.Addr{}, err
		}
		s.flow = flow
	}
	return s.flow.Ask(ctx)
}

// askNew asks from the next port that is not in use.
func (s *stream) askNew(ctx context.Context) (netip.Addr, error) {
	for {
		seen, err := s.from.Ask(ctx, s.network, s.to, nextPort())
		if !errors.Is(err, unix.EADDRINUSE) || ctx.Err() != nil {
			return seen, err
		}
	}
}

var ports atomic.Uint32

// nextPort returns source ports below Linux's own range in turn: one that is random
// may have been used just before, and conntrack takes the new flow for the old.
func nextPort() uint16 {
	const first, end = 1024, 32768
	return uint16(first + ports.Add(1)%(end-first))
}

// detailed is how many questions of a kind a Summary tells in detail.
const detailed = 10

// Summary is what became of the questions that ended.
type Summary struct {
	Duration time.Duration
	// Answered and Unanswered are all; a wrong one is one of these too.
	Answered, Unanswered, Wrong int
	// Broken counts kept TCP flows that ended: reset, or given up by the kernel.
	Broken int
	// Slowest is the time that the slowest answer took.
	Slowest time.Duration
	// Silence is the longest time in which a host had no answer to one kind of
	// question, from the first unanswered one to the next answer, and Silent whose.
	Silence time.Duration
	Silent  string
	// WrongOnes, UnansweredOnes and BrokenOnes tell the first ten in words.
	WrongOnes, UnansweredOnes, BrokenOnes []string
}

// Summary returns what became of the questions so far.
func (t *Traffic) Summary() Summary {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.summary()
}

func (t *Traffic) summary() Summary {
	sum := t.sum
	sum.WrongOnes, sum.UnansweredOnes = slices.Clone(sum.WrongOnes), slices.Clone(sum.UnansweredOnes)
	sum.BrokenOnes = slices.Clone(sum.BrokenOnes)
	end := t.end
	if end.IsZero() {
		end = time.Now()
	}
	sum.Duration = end.Sub(t.start)
	return sum
}

func (sum *Summary) count(q Question, wrong error, broke bool) {
	if q.Err != nil {
		sum.Unanswered++
		tell(&sum.UnansweredOnes, q.String())
	} else {
		sum.Answered++
		sum.Slowest = max(sum.Slowest, q.End.Sub(q.Start))
	}
	if wrong != nil {
		sum.Wrong++
		tell(&sum.WrongOnes, fmt.Sprintf("%s: %v", q, wrong))
	}
	if broke {
		sum.Broken++
		tell(&sum.BrokenOnes, q.String())
	}
}

func (sum *Summary) note(s *stream, silence time.Duration) {
	if silence > sum.Silence {
		sum.Silence, sum.Silent = silence, s.String()
	}
}

func tell(ones *[]string, one string) {
	if len(*ones) < detailed {
		*ones = append(*ones, one)
	}
}

// String is a line of figures, and a line for each question told in detail.
func (sum Summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d answers in %s, the slowest after %s; %d wrong, %d unanswered, %d kept flows broken",
		sum.Answered, sum.Duration.Round(time.Millisecond), sum.Slowest.Round(time.Millisecond), sum.Wrong, sum.Unanswered, sum.Broken)
	if sum.Silence > 0 {
		fmt.Fprintf(&b, "; silent for at most %s (%s)", sum.Silence.Round(time.Millisecond), sum.Silent)
	}
	for _, kind := range []struct {
		name string
		ones []string
	}{{"wrong", sum.WrongOnes}, {"unanswered", sum.UnansweredOnes}, {"broken", sum.BrokenOnes}} {
		for _, one := range kind.ones {
			fmt.Fprintf(&b, "\n%s: %s", kind.name, one)
		}
	}
	return b.String()
}
