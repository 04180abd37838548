package figure

import (
	"time"

	"golang.org/x/sys/unix"
)

// Spent is what something took.
type Spent struct{ CPU, Wall time.Duration }

// Time runs fn and returns what it took, with CPU time as the clock tells it.
func Time(clock func() (time.Duration, error), fn func() error) (spent Spent, err error) {
	before, err := clock()
	if err != nil {
		return spent, err
	}
	start := time.Now()
	if err := fn(); err != nil {
		return spent, err
	}
	spent.Wall = time.Since(start)
	after, err := clock()
	spent.CPU = after - before
	return spent, err
}

// ThreadCPU is the CPU time of this thread.
func ThreadCPU() (time.Duration, error) { return read(unix.CLOCK_THREAD_CPUTIME_ID) }

// CPUOf is the CPU time of a process without its children; 0 is this one.
func CPUOf(pid int) (time.Duration, error) {
	const processClock = 2 // CPUCLOCK_SCHED of a whole process, see clock_getcpuclockid(3)
	return read(int32(^pid<<3 | processClock))
}

func read(clock int32) (time.Duration, error) {
	var t unix.Timespec
	err := unix.ClockGettime(clock, &t)
	return time.Duration(t.Nano()), err
}

// Milliseconds is a time as a number.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
