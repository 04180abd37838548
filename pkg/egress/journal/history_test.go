package journal

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/egress/portblocks"
)

// had is the oracle's knowledge of a pod's ports.
type had struct {
	portblocks.Assignment
	until time.Time // zero as long as the pod has them
}

// world is a node whose pods come and go, whose disk fails, and whose process is killed, at random. What is true is in pods; a moment
// is sure if a process ran from before it until a line said alive after it.
type world struct {
	t      *testing.T
	random *rand.Rand
	folder string
	j      *Journal
	pods   []had
	// opened are when processes began.
	opened []time.Time
	broken bool
	names  int
}

func (w *world) open() {
	j, err := Open(w.folder, Config{Node: "node-a", Size: files * 700, Logger: logr.Discard()})
	if err != nil {
		w.t.Fatal(err)
	}
	w.j = j
	w.opened = append(w.opened, precise(time.Now()))
	var now []portblocks.Assignment
	for _, h := range w.pods {
		if h.until.IsZero() {
			now = append(now, h.Assignment)
		}
	}
	if err := j.Resume(context.Background(), now); err != nil {
		w.t.Fatal(err)
	}
}

// breaks has each write fail from now on, or not any more: the file is open for reading only then.
func (w *world) breaks(now bool) {
	synctest.Wait() // the writer waits
	w.broken = now
	breakFile(w.t, w.j, filepath.Join(w.folder, fileName(w.j.store.number)), now)
}

// breakFile opens the file of a journal again, under the same descriptor, for reading or for writing only.
func breakFile(t *testing.T, j *Journal, name string, now bool) {
	t.Helper()
	j.mu.Lock() // the writer has it before it touches the file
	defer j.mu.Unlock()
	file := j.store.file
	again, err := os.OpenFile(name, map[bool]int{true: os.O_RDONLY, false: os.O_WRONLY}[now], 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(unix.Dup3(int(again.Fd()), int(file.Fd()), unix.O_CLOEXEC), again.Close()); err != nil {
		t.Fatal(err)
	}
}

// checkCut checks that nothing wrong is said where a copy of a file is cut short.
func (w *world) checkCut() {
	numbers, err := numbered(w.folder)
	if err != nil {
		w.t.Fatal(err)
	}
	cut, all := w.random.IntN(len(numbers)), []*File{}
	for i, number := range numbers {
		name := filepath.Join(w.folder, fileName(number))
		text, err := os.ReadFile(name)
		if err != nil {
			w.t.Fatal(err)
		}
		if i == cut {
			text = text[:w.random.IntN(len(text))]
		}
		f, err := Read(name, bytes.NewReader(text), nil)
		if err != nil && i != cut {
			w.t.Fatal(err)
		}
		if err == nil {
			all = append(all, f)
		}
	}
	h := Join(all)
	for range 20 {
		w.ask(h, netip.MustParseAddrPort("203.0.113.10:1024"), w.opened[0].Add(time.Duration(w.random.Int64N(int64(time.Since(w.opened[0]))))), false)
	}
}

// crash ends the process without a last line, or with a part of one.
func (w *world) crash() {
	w.breaks(true)
	_ = w.j.Close()
	w.broken = false
	if w.random.IntN(3) == 0 { // it has begun a file, to which it could not write what waits
		if err := errors.Join(w.j.store.begin(time.Now(), w.j.store.assignments(), time.Time{}), w.j.store.close()); err != nil {
			w.t.Fatal(err)
		}
	}
	if w.random.IntN(2) == 0 {
		name := filepath.Join(w.folder, fileName(w.j.store.number))
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
		text := appendAssigned(nil, 999, assignment("torn", 1024, time.Now()))
		if err == nil {
			_, err = file.Write(text[:1+w.random.IntN(len(text)-2)])
		}
		if err = errors.Join(err, file.Close()); err != nil {
			w.t.Fatal(err)
		}
	}
}

// step does something at random.
func (w *world) step() {
	time.Sleep(time.Duration(1+w.random.IntN(20_000)) * time.Millisecond)
	switch n := w.random.IntN(100); {
	case n < 40:
		w.assign()
	case n < 75:
		w.release(true)
	case n < 80:
		time.Sleep(2 * beat)
	case n < 85:
		w.breaks(!w.broken)
	case n < 90:
		w.restart(w.crash)
	case n < 95:
		w.restart(func() {
			if err := w.j.Close(); err != nil && !w.broken {
				w.t.Fatal(err)
			}
			w.broken = false
		})
	}
}

// restart ends the process by a function. Pods end while there is none.
func (w *world) restart(end func()) {
	end()
	for range w.random.IntN(3) {
		time.Sleep(time.Second)
		w.release(false)
	}
	time.Sleep(time.Second)
	w.open()
}

func (w *world) assign() {
	block := w.random.IntN(5)
	w.names++
	a := assignment(fmt.Sprintf("web-%d", w.names), uint16(1024+512*(block/2)), precise(time.Now()))
	if block%2 == 1 {
		a.EgressIP = netip.MustParseAddr("203.0.113.11")
	}
	if block == 4 {
		a = sharing(a.Pod.Name, a.Since)
	}
	for _, h := range w.pods {
		if h.until.IsZero() && !a.Shared && h.EgressIP == a.EgressIP && h.Ports == a.Ports {
			return
		}
	}
	w.pods = append(w.pods, had{Assignment: a})
	w.said(w.j.Assigned(context.Background(), a))
}

// said takes what came of a line. The next file is whole, so that it can be written although this one is broken.
func (w *world) said(err error) {
	if err != nil && !w.broken {
		w.t.Fatal(err)
	}
	w.broken = err != nil
}

func (w *world) release(told bool) {
	var running []int
	for i, h := range w.pods {
		if h.until.IsZero() {
			running = append(running, i)
		}
	}
	if len(running) == 0 {
		return
	}
	h := &w.pods[running[w.random.IntN(len(running))]]
	h.until = precise(time.Now())
	if !told {
		return
	}
	w.said(w.j.Released(context.Background(), h.Assignment, h.until))
}

// sure are the times of which the files have to know everything: from the beginning of a process, or of the first file that is left,
// until it said alive for the last time.
func (w *world) sure() (periods []Period) {
	names, _ := filepath.Glob(filepath.Join(w.folder, "*"+suffix))
	slices.Sort(names)
	var lives []time.Time
	var first time.Time
	for i, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			w.t.Fatal(err)
		}
		for number, l := range strings.Split(string(text), "\n") {
			words := strings.Fields(l)
			if number == 0 && i == 0 {
				first, _ = time.Parse(timeForm, words[3])
			}
			if len(words) == 2 && words[1] == "alive" {
				live, _ := time.Parse(timeForm, words[0])
				lives = append(lives, live)
			}
		}
	}
	for i, from := range w.opened {
		to := time.Time{}
		for _, live := range lives {
			if live.After(to) && (i == len(w.opened)-1 || live.Before(w.opened[i+1])) {
				to = live
			}
		}
		if from = later(from, first); to.After(from) {
			periods = append(periods, Period{from, to})
		}
	}
	return periods
}

// check asks for random ports and times.
func (w *world) check(h *History) (sure, unsure int) {
	periods := w.sure()
	for range 40 {
		asked := netip.AddrPortFrom(netip.MustParseAddr([]string{"203.0.113.10", "203.0.113.11"}[w.random.IntN(2)]),
			[]uint16{1024, 1535, 1536, 2047, 2048, 61440, 65535}[w.random.IntN(7)])
		begin := w.opened[0].Add(-time.Minute)
		when := begin.Add(time.Duration(w.random.Int64N(int64(time.Since(begin))))).Truncate(time.Millisecond)
		if w.random.IntN(3) == 0 && len(w.pods) > 0 { // at the very moment of a change
			of := w.pods[w.random.IntN(len(w.pods))]
			if when = of.Since; w.random.IntN(2) == 0 && !of.until.IsZero() {
				when = of.until
			}
		}
		if w.ask(h, asked, when, slices.ContainsFunc(periods, func(p Period) bool { return p.contains(when) })) {
			sure++
		} else {
			unsure++
		}
	}
	return sure, unsure
}

// ask compares an answer with what is true. If must, there has to be one.
func (w *world) ask(h *History, asked netip.AddrPort, when time.Time, must bool) (answered bool) {
	var truth []string
	for _, p := range w.pods {
		if p.EgressIP == asked.Addr() && p.Ports.Contains(asked.Port()) && !when.Before(p.Since) && (p.until.IsZero() || when.Before(p.until)) {
			truth = append(truth, p.Pod.UID)
		}
	}
	slices.Sort(truth)
	answer, err := h.Who(asked, when)
	var got []string
	for _, s := range answer.Spans {
		got = append(got, s.Pod.UID)
	}
	slices.Sort(got)
	var nobody *NobodyError
	var unknown *UnknownError
	wrong := func(what string) {
		text := ""
		names, _ := filepath.Glob(filepath.Join(w.folder, "*"+suffix))
		for _, name := range names {
			lines, _ := os.ReadFile(name)
			text += name + ":\n" + string(lines)
		}
		w.t.Fatalf("%s: who had %s at %s? True: %v. Said: %v, missing %q, %v. Sure: %v\n%s", what, asked, when.Format(timeForm), truth, got, answer.Missing, err, must, text)
	}
	switch {
	case errors.As(err, &unknown):
		if must && (len(truth) > 0 || !portblocks.Shared.Contains(asked.Port())) { // shared ports may be those of a pod without a line
			wrong("it does not know")
		}
		return false
	case errors.As(err, &nobody):
		if len(truth) > 0 || portblocks.Shared.Contains(asked.Port()) {
			wrong("it says nobody")
		}
	case err != nil:
		wrong("it fails")
	case answer.Shared && (must || len(answer.Missing) == 0) && !slices.Equal(got, truth), !answer.Shared && !slices.Equal(got, truth):
		wrong("it is wrong")
	case !isPart(got, truth):
		wrong("it guesses")
	}
	return true
}

func isPart(part, all []string) bool {
	return !slices.ContainsFunc(part, func(one string) bool { return !slices.Contains(all, one) })
}

// fastFolder returns a folder whose files are in memory, where there is one: this test writes much.
func fastFolder(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat("/dev/shm"); err == nil {
		t.Setenv("TMPDIR", "/dev/shm")
	}
	return t.TempDir()
}

var histories = flag.Int("histories", 2000, "How many histories TestHistory_IsTrue makes: all of these seeds.")

// TestHistory_IsTrue: in random histories, with restarts, kills, cut lines and disks that fail, no answer is ever wrong, and of a time
// that is sure there always is one; also by the last file alone.
func TestHistory_IsTrue(t *testing.T) {
	base := fastFolder(t)
	sure, unsure := 0, 0
	for seed := range *histories {
		synctest.Test(t, func(t *testing.T) {
			w := &world{t: t, random: rand.New(rand.NewPCG(uint64(seed), 34)), folder: filepath.Join(base, fmt.Sprint(seed))}
			w.open()
			for range 10 + w.random.IntN(30) {
				w.step()
			}
			if w.broken {
				w.breaks(false)
			}
			if err := w.j.Close(); err != nil {
				t.Fatal(err)
			}
			h, problems, err := ReadAll([]string{w.folder}, nil)
			if err != nil || len(problems) > 0 {
				t.Fatal(err, problems)
			}
			known, unknown := w.check(h)
			sure, unsure = sure+known, unsure+unknown
			last, err := readFile(filepath.Join(w.folder, fileName(w.j.store.number)), nil)
			if err != nil {
				t.Fatal(err)
			}
			w.checkCut()
			alone := Join([]*File{last})
			for range 20 {
				w.ask(alone, netip.MustParseAddrPort("203.0.113.10:1024"), last.from.Add(time.Duration(w.random.IntN(100_000))*time.Millisecond), false)
			}
			if err := os.RemoveAll(w.folder); err != nil {
				t.Fatal(err)
			}
		})
		if t.Failed() {
			t.Fatalf("history %d", seed)
		}
	}
	t.Logf("%d histories: %d answers, %d times it was not certain", *histories, sure, unsure)
	if sure < unsure {
		t.Errorf("%d answers, and %d times it was not certain: the test asks in vain", sure, unsure)
	}
}
