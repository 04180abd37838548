package program

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// self is this process as a program.
func self() *Program { return &Program{process: &exec.Cmd{Process: &os.Process{Pid: os.Getpid()}}} }

func TestProgramCPU_SameAsTheKernelReports(t *testing.T) {
	if err := exec.CommandContext(t.Context(), "sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done").Run(); err != nil {
		t.Fatal(err)
	}
	var own, children syscall.Rusage
	if err := errors.Join(syscall.Getrusage(syscall.RUSAGE_SELF, &own), syscall.Getrusage(syscall.RUSAGE_CHILDREN, &children)); err != nil {
		t.Fatal(err)
	}
	// The two times of children are rounded down to 10 ms.
	const rounding = 20 * time.Millisecond
	user, system, err := self().ChildrenCPU()
	if wantUser, wantSystem := time.Duration(children.Utime.Nano()), time.Duration(children.Stime.Nano()); err != nil ||
		(user-wantUser).Abs() > rounding || (system-wantSystem).Abs() > rounding || wantUser < wantSystem+2*rounding {
		t.Errorf("children: %s and %s, %v; want %s and %s, far apart", user, system, err, wantUser, wantSystem)
	}
	want := time.Duration(own.Utime.Nano() + own.Stime.Nano() + children.Utime.Nano() + children.Stime.Nano())
	got, err := self().CPU()
	if err != nil || got < want-rounding || got > want+rounding {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	if want < 2*rounding {
		t.Errorf("%s is too little for a comparison", want)
	}
}

func TestProgramMemory_GrowsWithMappedMemory(t *testing.T) {
	before, anonymousBefore, err := self().Memory()
	if err != nil {
		t.Fatal(err)
	}
	const more = 64 << 20
	memory, err := syscall.Mmap(-1, 0, more, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_POPULATE)
	if err != nil {
		t.Fatal(err)
	}
	after, anonymous, err := self().Memory()
	if err != nil || after-before < more*3/4 || after-before > more*3/2 {
		t.Errorf("%.0f bytes more, %v; want %d", after-before, err, more)
	}
	if grown := anonymous - anonymousBefore; grown < more*3/4 || anonymous >= after {
		t.Errorf("%.0f anonymous bytes more, %.0f of %.0f; want %d, and less than all", grown, anonymous, after, more)
	}
	if err := syscall.Munmap(memory); err != nil {
		t.Error(err)
	}
}

func TestNumber_FromMetricsAndProfiles(t *testing.T) {
	scraped := []byte(`kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"} 1.795216512345e+09
kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv6"} 0
# HeapAlloc = 12345
`)
	if got, err := number(lastSync, scraped, 1); got != 1795216512.345 || err != nil {
		t.Errorf("last sync %f, %v", got, err)
	}
	if got, err := number(heapAlloc, scraped, 2); got != 24690 || err != nil {
		t.Errorf("heap %f, %v", got, err)
	}
	if _, err := number(vmRSS, scraped, 1); err == nil {
		t.Error("a missing number is no error")
	}
}

func TestOutput_FindsTextThatComesInPieces(t *testing.T) {
	o := &output{awaited: []byte("in place")}
	for _, text := range []string{"not yet ", "in pl", "ace"} {
		if o.saidAt() != nil {
			t.Errorf("found before %q", text)
		}
		if _, err := o.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if o.saidAt() == nil || o.String() != "not yet in place" {
		t.Errorf("%q, found at %v", o, o.saidAt())
	}
}
