package journal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2/textlogger"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/egress/tell"
)

// size is more than these tests write.
const size = 64 << 20

// open opens the journal of a folder, as the process that has no pods.
func open(t *testing.T, folder string, tell func(Report)) *Journal {
	t.Helper()
	j, err := Open(folder, Config{Node: "node-a", Size: size, Logger: logr.Discard(), Tell: tell})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// history reads a folder in which nothing may be wrong.
func history(t *testing.T, folder string) *History {
	t.Helper()
	h, problems, err := ReadAll([]string{folder}, nil)
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	return h
}

// lines returns all lines of a folder's files but the first ones, without their times.
func lines(t *testing.T, folder string) (all []string) {
	t.Helper()
	numbers, err := numbered(folder)
	must(t, err)
	for _, number := range numbers {
		text, err := os.ReadFile(filepath.Join(folder, fileName(number)))
		must(t, err)
		for _, l := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")[1:] {
			_, rest, _ := strings.Cut(l, " ")
			all = append(all, rest)
		}
	}
	return all
}

// TestJournal_WritesOnce what is told again, and the end of what it knows.
func TestJournal_WritesOnce(t *testing.T) {
	folder, ctx := filepath.Join(t.TempDir(), "state", "journal"), context.Background()
	j := open(t, folder, nil)
	a := assignment("web-0", 1024, time.Now())
	for range 3 {
		must(t, j.Assigned(ctx, a))
	}
	must(t, j.Released(ctx, assignment("web-9", 2048, time.Now()), time.Now()))
	a.Pod.UID = "another" // of a static pod's next mirror
	for range 3 {
		must(t, j.Released(ctx, a, time.Now()))
	}
	if got := lines(t, folder); len(got) != 2 || !strings.HasPrefix(got[0], "+ 1 shop/web-0 ") || got[1] != "- 1" {
		t.Errorf("lines: %q", got)
	}
	must(t, j.Close())
	if err := j.Assigned(ctx, a); !errors.Is(err, errClosed) {
		t.Errorf("after its end: %v", err)
	}
	info, err := os.Stat(filepath.Join(folder, fileName(1)))
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	if err := j.Close(); !errors.Is(err, errClosed) {
		t.Errorf("closed twice: %v", err)
	}
}

// TestJournal_IsLogged: the node's log has the same, in words of its own.
func TestJournal_IsLogged(t *testing.T) {
	var text strings.Builder
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&text)))
	j, err := Open(t.TempDir(), Config{Node: "node-a", Size: size, Logger: logger})
	must(t, err)
	a := assignment("web-0", 1024, at("03:12:00.123"))
	must(t, errors.Join(j.Assigned(t.Context(), a), j.Assigned(t.Context(), a), j.Released(t.Context(), a, at("04:00:00.000")), j.Close()))
	for _, want := range []string{
		`"Source ports assigned" pod="shop/web-0" uid="uid-of-web-0" podIP="10.128.0.11" service="shop/web" egressIP="203.0.113.10" ports="1024-1535" shared=false node="node-a" since="2026-11-27T03:12:00.123Z"`,
		`"Source ports released" pod="shop/web-0" uid="uid-of-web-0" podIP="10.128.0.11" service="shop/web" egressIP="203.0.113.10" ports="1024-1535" shared=false node="node-a" since="2026-11-27T03:12:00.123Z" until="2026-11-27T04:00:00.000Z"`,
	} {
		if strings.Count(text.String(), want) != 1 {
			t.Errorf("the log has not once %s:\n%s", want, &text)
		}
	}
}

// TestJournal_IsOfOneProcess: two would write over each other's lines.
func TestJournal_IsOfOneProcess(t *testing.T) {
	folder := t.TempDir()
	j, told := open(t, folder, nil), make(chan Report, 10)
	other, err := Open(folder, Config{Node: "node-a", Size: size, Tell: func(r Report) { told <- r }})
	must(t, err)
	if r := <-told; !errors.Is(r.Failing, errInUse) || !strings.Contains(r.Failing.Error(), folder) {
		t.Errorf("a second one: %v", r.Failing)
	}
	must(t, j.Close())
	if r := <-told; r.Failing != nil {
		t.Errorf("after the first one has ended: %v", r.Failing)
	}
	must(t, other.Close())
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	if _, err := Open(filepath.Join(file, "journal"), Config{Node: "node-a"}); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("below a file: %v", err)
	}
}

// TestJournal_CountsLines, from 0 on, and also of what has ended that the process before has left, when that is known later than who has ports.
func TestJournal_CountsLines(t *testing.T) {
	tell.Metrics.Register()
	recordedLines.Reset()
	folder := t.TempDir()
	j, told := open(t, folder, nil), make(chan Report, 10)
	expect := func(want map[string]float64) {
		t.Helper()
		gathered, err := legacyregistry.DefaultGatherer.Gather()
		must(t, err)
		got := map[string]float64{}
		for _, family := range gathered {
			for _, m := range family.GetMetric() {
				if family.GetName() == "egress_snat_journal_lines_total" {
					got[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
				}
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("counted are %v, want %v", got, want)
		}
	}
	expect(map[string]float64{"assigned": 0, "released": 0})
	must(t, errors.Join(j.Resume(t.Context(), nil), j.Assigned(t.Context(), assignment("web-0", 1024, time.Now()))))
	other, err := Open(folder, Config{Node: "node-a", Size: size, Tell: func(r Report) { told <- r }})
	must(t, err)
	<-told // it waits until the first one has ended
	must(t, errors.Join(other.Resume(t.Context(), nil), j.Close()))
	<-told
	must(t, other.Close())
	expect(map[string]float64{"assigned": 1, "released": 1})
}

// TestJournal_NextSandbox: the next sandbox of a pod shares the same ports. The end of the one before, told later, is not its end.
func TestJournal_NextSandbox(t *testing.T) {
	folder, ctx := t.TempDir(), context.Background()
	j := open(t, folder, nil)
	before := assignment("web-0", portblocks.Shared.First, time.Now().Add(-time.Hour))
	before.Ports, before.Shared = portblocks.Shared, true
	next := before
	next.Since = time.Now().Add(-time.Minute)
	must(t, j.Resume(ctx, nil))
	must(t, j.Assigned(ctx, before))
	must(t, j.Assigned(ctx, next))
	must(t, j.Released(ctx, before, time.Now().Add(-2*time.Minute)))
	must(t, j.Close())
	h, problems, err := ReadAll([]string{folder}, nil)
	must(t, errors.Join(append(problems, err)...))
	answer, err := h.Who(netip.AddrPortFrom(before.EgressIP, portblocks.Shared.First), time.Now().Add(-time.Second))
	if err != nil || len(answer.Spans) != 1 || !answer.Spans[0].Until.IsZero() {
		t.Errorf("%+v, %v; want the next sandbox", answer, err)
	}
}

// TestJournal_GoesOn: the next process knows what has not ended, and says of what is gone that it does not know since when.
func TestJournal_GoesOn(t *testing.T) {
	folder, ctx := t.TempDir(), context.Background()
	j := open(t, folder, nil)
	stays, goes := assignment("stays", 1024, time.Now()), assignment("goes", 2048, time.Now())
	must(t, errors.Join(j.Resume(ctx, nil), j.Assigned(ctx, stays), j.Assigned(ctx, goes), j.Close()))
	closed := time.Now()
	time.Sleep(5 * time.Millisecond) // a time that no process knows of
	j = open(t, folder, nil)
	later := assignment("later", 4096, time.Now())
	must(t, errors.Join(j.Resume(ctx, []portblocks.Assignment{stays}), j.Assigned(ctx, later), j.Close()))
	got := lines(t, folder)
	for i, l := range got {
		got[i] = strings.Fields(l)[0]
	}
	if want := []string{"+", "+", "alive", "gap", "-", "+", "alive"}; !slices.Equal(got, want) {
		t.Errorf("lines: %q, want %q", got, want)
	}
	h := history(t, folder)
	between := precise(closed).Add(time.Millisecond)
	for port, want := range map[uint16]string{1024: "stays", 2048: ""} {
		answer, err := h.Who(netip.AddrPortFrom(stays.EgressIP, port), between)
		var unknown *UnknownError
		if want == "" && !errors.As(err, &unknown) || want != "" && (err != nil || answer.Spans[0].Pod.Name != want) {
			t.Errorf("%d while there was no process: %+v, %v", port, answer, err)
		}
	}
}

// TestJournal_ClockWasAhead: what an earlier process wrote while its clock was ahead does not say that anybody had anything until now.
func TestJournal_ClockWasAhead(t *testing.T) {
	folder, ctx := t.TempDir(), context.Background()
	j := open(t, folder, nil)
	had := assignment("had", 1024, time.Now())
	must(t, errors.Join(j.Resume(ctx, nil), j.Assigned(ctx, had), j.Close()))
	file, err := os.OpenFile(filepath.Join(folder, fileName(1)), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = fmt.Fprintf(file, "%s alive\n", timeText(time.Now().Add(time.Hour)))
	must(t, errors.Join(err, file.Close()))
	time.Sleep(20 * time.Millisecond)
	between := time.Now()
	time.Sleep(20 * time.Millisecond)
	j = open(t, folder, nil)
	must(t, errors.Join(j.Resume(ctx, nil), j.Close()))
	var unknown *UnknownError
	if answer, err := history(t, folder).Who(netip.AddrPortFrom(had.EgressIP, 1024), between); !errors.As(err, &unknown) {
		t.Errorf("%+v, %v", answer, err)
	}
}

// TestJournal_Rotates: there are so many files of such a size, each can be read alone, and what lasts is in each of them.
func TestJournal_Rotates(t *testing.T) {
	folder, ctx := t.TempDir(), context.Background()
	j, err := Open(folder, Config{Node: "node-a", Size: files * 2000, Logger: logr.Discard()})
	must(t, err)
	lasts := assignment("lasts", 1024, time.Now())
	must(t, j.Assigned(ctx, lasts))
	for i := range 300 {
		a := assignment(fmt.Sprintf("web-%d", i), 2048, time.Now())
		must(t, errors.Join(j.Assigned(ctx, a), j.Released(ctx, a, time.Now())))
	}
	must(t, j.Close())
	numbers, err := numbered(folder)
	must(t, err)
	entries, err := os.ReadDir(folder)
	if err != nil || len(numbers) != files || len(entries) != files {
		t.Fatalf("files %v, %v, %v", numbers, entries, err)
	}
	for _, number := range numbers {
		name := filepath.Join(folder, fileName(number))
		f, err := readFile(name, nil)
		must(t, err)
		if f.read > 2500 || f.damaged != nil {
			t.Errorf("%s has %d bytes, %v", name, f.read, f.damaged)
		}
		if got := f.spans[0]; got.Pod.Name != "lasts" || !got.Since.Equal(precise(lasts.Since)) {
			t.Errorf("%s begins with %+v", name, got)
		}
	}
	h := history(t, folder)
	if covered := h.nodes["node-a"].covered; len(covered) != 1 {
		t.Errorf("covered: %v", covered)
	}
	count := 0
	for _, s := range h.Spans() {
		if s.Pod.Name == "lasts" {
			count++
		}
	}
	if count != 1 {
		t.Errorf("what lasts is there %d times", count)
	}
}

// TestJournal_HealsWhatACrashLeft, and tells.
func TestJournal_HealsWhatACrashLeft(t *testing.T) {
	whole := assignment("whole", 1024, time.Now())
	for name, tt := range map[string]struct {
		rest   string
		next   bool // the journal goes on in another file
		answer bool
	}{
		"a torn line":         {"2026-11-27T03:12:00.123Z + 2 shop/torn uid", false, true},
		"a line without end":  {"2026-11-27T03:12:00.123Z alive", false, true},
		"zeros":               {strings.Repeat("\x00", 4096), false, true},
		"a line of something": {"something\n", true, true},
		"zeros, and a line":   {strings.Repeat("\x00", 4096) + "\n2026-11-27T03:12:00.123Z - 1\n", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			folder, ctx := t.TempDir(), context.Background()
			j := open(t, folder, nil)
			must(t, errors.Join(j.Assigned(ctx, whole), j.Close()))
			path := filepath.Join(folder, fileName(1))
			file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			must(t, err)
			_, err = file.WriteString(tt.rest)
			must(t, errors.Join(err, file.Close()))
			var told []Report
			j = open(t, folder, func(r Report) { told = append(told, r) })
			after := assignment("after", 2048, time.Now())
			must(t, errors.Join(j.Resume(ctx, []portblocks.Assignment{whole}), j.Assigned(ctx, after), j.Close()))
			if len(told) != 1 || told[0].Healed == nil || !strings.Contains(told[0].Healed.Error(), path) {
				t.Errorf("told: %v", told)
			}
			numbers, err := numbered(folder)
			if must(t, err); len(numbers) != map[bool]int{false: 1, true: 2}[tt.next] {
				t.Errorf("files: %v", numbers)
			}
			h, problems, err := ReadAll([]string{folder}, nil)
			if must(t, err); (len(problems) > 0) != tt.next {
				t.Errorf("problems: %v", problems)
			}
			for pod, port := range map[string]uint16{"whole": 1024, "after": 2048} {
				answer, err := h.Who(netip.AddrPortFrom(whole.EgressIP, port), precise(after.Since))
				if err != nil || answer.Spans[0].Pod.Name != pod {
					t.Errorf("%s: %+v, %v", pod, answer, err)
				}
			}
		})
	}
}

// TestJournal_IsThereWhenItIsSaid: a process is killed between two lines, and all that it was told is on the disk, is.
func TestJournal_IsThereWhenItIsSaid(t *testing.T) {
	if folder := os.Getenv("JOURNAL_OF_A_CHILD"); folder != "" {
		j := open(t, folder, nil)
		for i := 0; ; i++ {
			must(t, j.Assigned(context.Background(), assignment(fmt.Sprintf("web-%d", i), 1024, time.Now())))
			_, err := fmt.Fprintf(os.Stdout, "said %d\n", i)
			must(t, err)
		}
	}
	program, err := os.Executable()
	must(t, err)
	folder := t.TempDir()
	total := 0
	for range 5 {
		child := exec.Command(program, "-test.run", "^"+t.Name()+"$", "-test.v")
		child.Env = append(os.Environ(), "JOURNAL_OF_A_CHILD="+folder)
		out, err := child.StdoutPipe()
		must(t, errors.Join(err, child.Start()))
		last := -1
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			if _, err := fmt.Sscanf(scanner.Text(), "said %d", &last); err == nil && last == 200 {
				must(t, child.Process.Kill())
			}
		}
		if err := child.Wait(); err == nil || last < 200 {
			t.Fatalf("the child ended at %d: %v", last, err)
		}
		known := map[string]bool{}
		for _, s := range history(t, folder).Spans() {
			known[s.Pod.Name] = true
		}
		for i := range last + 1 {
			if !known[fmt.Sprintf("web-%d", i)] {
				t.Fatalf("web-%d is not in the journal", i)
			}
		}
		total += last + 1
	}
	t.Logf("%d lines said, all there", total)
	must(t, open(t, folder, nil).Close()) // the lock went with the process
}

// TestJournal_WaitsForRoom: a full disk is told, keeps nobody, and what waited is written in its order when there is room.
func TestJournal_WaitsForRoom(t *testing.T) {
	if os.Geteuid() != 0 {
		lab.Lacks(t, "needs root, to mount a small file system")
	}
	if mount := os.Getenv("JOURNAL_ON_A_FULL_DISK"); mount != "" {
		must(t, unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""))
		must(t, unix.Mount("tmpfs", mount, "tmpfs", 0, "size=64k"))
		fillsUp(t, mount)
		return
	}
	program, err := os.Executable()
	must(t, err)
	child := exec.Command(program, "-test.run", "^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), "JOURNAL_ON_A_FULL_DISK="+t.TempDir())
	child.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
	if out, err := child.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Fatalf("%v\n%s", err, out)
	}
}

// reports are those of a Journal.
type reports chan Report

func (r reports) next(t *testing.T) Report {
	t.Helper()
	select {
	case report := <-r:
		return report
	case <-time.After(20 * time.Second):
		t.Fatal("nothing is told")
	}
	return Report{}
}

func fillsUp(t *testing.T, disk string) {
	ctx, folder := context.Background(), filepath.Join(disk, "journal")
	told := reports(make(chan Report, 10))
	j := open(t, folder, func(r Report) { told <- r })
	must(t, j.Assigned(ctx, assignment("before", 1024, time.Now())))
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	// The rest of the last page takes some lines.
	var full error
	names := []string{"before"}
	var meanwhile []portblocks.Assignment
	for i := 0; full == nil || len(meanwhile) < 300; i++ {
		a := assignment(fmt.Sprintf("web-%d", i), uint16(2048+512*(i%100)), time.Now())
		began := time.Now()
		err := j.Assigned(ctx, a)
		if full != nil {
			meanwhile = append(meanwhile, a)
			if !errors.Is(err, unix.ENOSPC) || time.Since(began) > time.Second {
				t.Fatalf("after %s: %v", time.Since(began), err)
			}
		}
		names, full = append(names, a.Pod.Name), errors.Join(full, err)
	}
	if err := j.Released(ctx, meanwhile[3], time.Now()); !errors.Is(err, unix.ENOSPC) {
		t.Error(err)
	}
	if r := told.next(t); !errors.Is(r.Failing, unix.ENOSPC) {
		t.Errorf("told: %+v", r)
	}
	history(t, folder) // what is there is whole
	must(t, os.Remove(ballast))
	if r := told.next(t); r != (Report{}) {
		t.Errorf("told: %+v", r)
	}
	must(t, j.Close())
	var got []string
	for _, l := range lines(t, folder) {
		if words := strings.Fields(l); words[0] == "+" {
			got = append(got, strings.TrimPrefix(words[2], "shop/"))
		}
	}
	if !slices.Equal(got, names) {
		t.Errorf("written %q, want %q", got, names)
	}
	if covered := history(t, folder).nodes["node-a"].covered; len(covered) != 1 {
		t.Errorf("it says that something is missing: %v", covered)
	}
	opensFull(t, disk)
}

// opensFull: a process begins although the disk is full.
func opensFull(t *testing.T, disk string) {
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	told, folder := reports(make(chan Report, 10)), filepath.Join(disk, "another", "journal")
	j := open(t, folder, func(r Report) { told <- r })
	if r := told.next(t); !errors.Is(r.Failing, unix.ENOSPC) {
		t.Errorf("told: %+v", r)
	}
	a := assignment("web-0", 1024, time.Now())
	if err := j.Assigned(context.Background(), a); !errors.Is(err, unix.ENOSPC) {
		t.Error(err)
	}
	must(t, os.Remove(ballast))
	if r := told.next(t); r != (Report{}) {
		t.Errorf("told: %+v", r)
	}
	must(t, j.Close())
	if got := history(t, folder).Spans(); len(got) != 1 || got[0].Pod.Name != "web-0" {
		t.Errorf("written: %+v", got)
	}
}

// TestJournal_GivesUpTooMany: memory has an end. Then the journal says of which time it has not everything, and knows who has ports.
func TestJournal_GivesUpTooMany(t *testing.T) {
	folder := t.TempDir()
	j := open(t, folder, nil)
	ctx, cancel := context.WithCancel(context.Background())
	must(t, errors.Join(j.Resume(ctx, nil), j.Assigned(ctx, assignment("before", 1024, time.Now()))))
	breakFile(t, j, filepath.Join(folder, fileName(1)), true)
	cancel() // nobody waits
	for i := range mostWaiting/2 + 10 {
		a := assignment(fmt.Sprintf("web-%d", i), 2048, time.Now())
		if err := errors.Join(j.Assigned(ctx, a), j.Released(ctx, a, time.Now())); err == nil {
			t.Fatal("it says that it is on the disk")
		}
	}
	lasts := assignment("lasts", 4096, time.Now())
	_ = j.Assigned(ctx, lasts)
	must(t, j.Close())
	h := history(t, folder)
	if covered := h.nodes["node-a"].covered; len(covered) < 2 {
		t.Errorf("covered: %v", covered)
	}
	for pod, port := range map[string]uint16{"before": 1024, "lasts": 4096} {
		answer, err := h.Who(netip.AddrPortFrom(lasts.EgressIP, port), precise(lasts.Since))
		if err != nil || answer.Spans[0].Pod.Name != pod {
			t.Errorf("%s: %+v, %v", pod, answer, err)
		}
	}
	var unknown *UnknownError
	if _, err := h.Who(netip.AddrPortFrom(lasts.EgressIP, 2048), precise(lasts.Since.Add(-time.Second))); !errors.As(err, &unknown) {
		t.Errorf("what was given up: %v", err)
	}
}

// TestJournal_ComesBack when somebody removes its file: the next line is in a new one, which says that something is missing.
func TestJournal_ComesBack(t *testing.T) {
	folder, ctx := t.TempDir(), context.Background()
	j := open(t, folder, nil)
	must(t, j.Assigned(ctx, assignment("before", 1024, time.Now())))
	must(t, os.Remove(filepath.Join(folder, fileName(1))))
	must(t, j.Assigned(ctx, assignment("after", 2048, time.Now())))
	must(t, j.Close())
	if got := history(t, folder).Spans(); len(got) != 2 {
		t.Errorf("known: %+v", got)
	}
}

// TestJournal_FolderIsRemoved: it is made again, is this process's alone, and has what pods have.
func TestJournal_FolderIsRemoved(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "journal")
	j := open(t, folder, nil)
	first, second := assignment("web-0", 1024, time.Now()), assignment("web-1", 2048, time.Now())
	must(t, errors.Join(j.Resume(t.Context(), nil), j.Assigned(t.Context(), first)))
	must(t, os.RemoveAll(folder))
	for until := time.Now().Add(20 * time.Second); j.Assigned(t.Context(), second) != nil; {
		if time.Now().After(until) {
			t.Fatal("it is not written again")
		}
	}
	if got := history(t, folder).Spans(); len(got) != 2 {
		t.Errorf("written: %+v, want what both pods have", got)
	}
	told := make(chan Report, 10)
	other, err := Open(folder, Config{Node: "node-a", Size: size, Tell: func(r Report) { told <- r }})
	must(t, err)
	if r := <-told; !errors.Is(r.Failing, errInUse) {
		t.Errorf("another process: %v, want %v", r.Failing, errInUse)
	}
	must(t, errors.Join(j.Close(), other.Close()))
}

// TestJournal_IsReadWhileItIsWritten: who asks on a node does not stop it, and never sees half a line.
func TestJournal_IsReadWhileItIsWritten(t *testing.T) {
	folder, ctx := t.TempDir(), context.Background()
	j, err := Open(folder, Config{Node: "node-a", Size: files * 4000, Logger: logr.Discard()})
	must(t, err)
	var writers sync.WaitGroup
	for writer := range 8 {
		writers.Go(func() {
			for i := range 100 {
				a := assignment(fmt.Sprintf("web-%d-%d", writer, i), uint16(1024+512*writer), time.Now())
				if err := errors.Join(j.Assigned(ctx, a), j.Released(ctx, a, time.Now())); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	for reads := 0; ; reads++ {
		select {
		case <-done:
			must(t, j.Close())
			if t.Logf("read %d times", reads); reads == 0 {
				t.Error("it was never read")
			}
			return
		default:
			history(t, folder)
		}
	}
}
