package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/kernel"
)

// BenchmarkWho asks who had a port at a time, of the journals of 20 nodes over 30 days, with 10,000 pods that live a day each: 300,000
// lives. An operation is all that 'openshift egress who --journal' does; the target is 1 s.
func BenchmarkWho(b *testing.B) {
	const nodes, pods, days = 20, 10_000, 30
	folder := b.TempDir()
	begin := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	size, lives := 0, 0
	for node := range nodes {
		text, n := month(fmt.Sprintf("node-%d", node), node, pods/nodes, days, begin)
		size, lives = size+len(text), lives+n
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("node-%d%s", node, suffix)), text, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	b.Logf("%d lives in %d files of %d bytes", lives, nodes, size)
	asked := netip.MustParseAddrPort("203.0.113.10:1500")
	at := begin.Add(days * 12 * time.Hour).Add(time.Hour)
	before, ops := processorTime(b), 0
	for b.Loop() {
		ops++
		h, problems, err := ReadAll([]string{folder}, About(asked))
		if err != nil || len(problems) > 0 {
			b.Fatal(err, problems)
		}
		if answer, err := h.Who(asked, at); err != nil || len(answer.Spans) != 1 {
			b.Fatalf("%+v, %v", answer, err)
		}
	}
	b.ReportMetric(float64(size), "bytes")
	b.ReportMetric((processorTime(b)-before).Seconds()/float64(ops), "cpu-s/op")
}

// processorTime is what the process has used: others may use the machine, too.
func processorTime(b *testing.B) time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// month returns the journal of a node with so many pods that live a day each.
func month(node string, number, pods, days int, begin time.Time) (text []byte, lives int) {
	type event struct {
		at   time.Time
		line []byte
	}
	var events []event
	for pod := range pods {
		block := number*pods + pod
		for day := range days {
			since := begin.AddDate(0, 0, day).Add(time.Duration(pod) * 24 * time.Hour / time.Duration(pods))
			a := assignment(fmt.Sprintf("frontend-7d9f8b6c5d-%05x", lives), uint16(1024+512*(block%118)), since)
			a.Pod.UID = fmt.Sprintf("6f1c2e7a-0b5e-4a53-%04x-%012x", number, lives)
			a.EgressIP = netip.AddrFrom4([4]byte{203, 0, 113, byte(10 + block/118)})
			lives++
			ref := uint64(lives)
			events = append(events, event{since, appendAssigned(nil, ref, a)}, event{since.Add(23 * time.Hour), appendReleased(nil, since.Add(23*time.Hour), ref, time.Time{})})
		}
	}
	for beats := range days * 24 * 60 {
		at := begin.Add(time.Duration(beats) * time.Minute)
		events = append(events, event{at, appendAlive(nil, at)})
	}
	slices.SortStableFunc(events, func(a, b event) int { return a.at.Compare(b.at) })
	text = header{node: node, from: begin}.appendTo(nil)
	for _, e := range events {
		text = append(text, e.line...)
	}
	return text, lives
}

// BenchmarkAssigned is how long a pod waits for its line; beside it how long a write of the same line and a sync take on this disk.
func BenchmarkAssigned(b *testing.B) {
	for _, together := range []int{1, 20} {
		b.Run(fmt.Sprintf("pods=%d", together), func(b *testing.B) { benchmarkAssigned(b, together) })
	}
	b.Run("disk alone", func(b *testing.B) {
		file, err := os.Create(filepath.Join(b.TempDir(), "file"))
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		line := appendAssigned(nil, 1, assignment("web-0", 1024, time.Now()))
		var took []time.Duration
		for b.Loop() {
			began := time.Now()
			if _, err := file.Write(line); errors.Join(err, dataSync(file)) != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(began))
		}
		report(b, took)
	})
}

func benchmarkAssigned(b *testing.B, together int) {
	folder := b.TempDir()
	j, err := Open(folder, Config{Node: "node-a", Size: size, Logger: logr.Discard()})
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	var took []time.Duration
	lives := 0
	for b.Loop() {
		waits := make(chan time.Duration, together)
		for pod := range together {
			lives++
			a := benchPod(lives, pod)
			go func() {
				began := time.Now()
				if err := j.Assigned(ctx, a); err != nil {
					b.Error(err)
				}
				waits <- time.Since(began)
			}()
		}
		for range together {
			took = append(took, <-waits)
		}
		b.StopTimer()
		for pod := range together {
			if err := j.Released(ctx, benchPod(lives-together+1+pod, pod), time.Now()); err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
	}
	report(b, took)
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(folder, fileName(j.store.number)))
	if err != nil {
		b.Fatal(err)
	}
	if ends := bytes.Count(text, []byte(" - ")); ends > 0 {
		b.ReportMetric(float64(len(text))/float64(ends), "bytes/life")
	}
}

func benchPod(number, block int) portblocks.Assignment {
	a := assignment(fmt.Sprintf("frontend-7d9f8b6c5d-%05x", number), 0, time.Now())
	a.Pod.UID = fmt.Sprintf("6f1c2e7a-0b5e-4a53-9a3e-%012x", number)
	a.Ports = kernel.Ports{First: uint16(1024 + 512*block), Last: uint16(1024 + 512*block + 511)}
	return a
}

// report reports how long a pod waits.
func report(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
}
