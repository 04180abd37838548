package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/hack/bench/figure"
	"github.com/openshift/origin-node/hack/lab"
)

// metricsURL is kube-proxy's, by default.
const metricsURL = "http://127.0.0.1:10249"

// InPlace is the node's log message when the rules of egress SNAT are complete.
const InPlace = "Egress SNAT rules are in place"

// Program is a running program.
type Program struct {
	host    *lab.Host
	client  *http.Client
	process *exec.Cmd
	printed *output
	began   time.Time
	ended   <-chan struct{} // closed when it has ended
}

// Start starts a command of the host that runs a file. Its rules are complete when it has printed what is awaited, if
// anything.
func Start(host *lab.Host, command *exec.Cmd, file, awaited string) (*Program, error) {
	if err := evict(file); err != nil {
		return nil, err
	}
	p := &Program{
		host: host, process: command,
		printed: &output{awaited: []byte(awaited)},
		client:  &http.Client{Transport: &http.Transport{DialContext: host.DialContext}},
	}
	command.Stdout, command.Stderr = p.printed, p.printed
	p.began = time.Now()
	if awaited == "" {
		p.printed.at = &p.began
	}
	var err error
	p.ended, err = lab.Start(command)
	return p, err
}

// evict takes a file out of the kernel's memory, so that what a program has mapped of its own file is what it has
// used. A file that was just written lies there in larger pieces, which count for its first reader as a whole: 15 MB
// more for the same program.
func evict(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := file.Sync(); err != nil {
		return err
	}
	return unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED)
}

// Stop ends the program as a service manager does.
func (p *Program) Stop() error {
	const patience = 30 * time.Second
	p.client.CloseIdleConnections()
	if err := p.process.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(patience):
		return errors.Join(fmt.Errorf("%s did not end within %s", p.process, patience), p.process.Process.Kill())
	}
}

// Poll calls done until it returns true. It fails if the program ends meanwhile.
func (p *Program) Poll(ctx context.Context, what string, patience, pause time.Duration, done func(context.Context) bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for !done(ctx) {
		select {
		case <-tick.C:
		case <-p.ended:
			return fmt.Errorf("%s has ended; the end of its log:\n%s", p.process, p.printed)
		case <-ctx.Done():
			return fmt.Errorf("%s within %s: %w; the end of the log of %s:\n%s", what, patience, ctx.Err(), p.process, p.printed)
		}
	}
	return nil
}

// Complete returns how long after the start the rules were complete: after the proxier's first sync, which has all
// objects, and the awaited message.
func (p *Program) Complete(ctx context.Context) (time.Duration, error) {
	const patience, pause = 5 * time.Minute, 100 * time.Millisecond
	var at time.Time
	err := p.Poll(ctx, "no complete rules", patience, pause, func(ctx context.Context) bool {
		if at.IsZero() {
			at = p.synced(ctx)
		}
		return !at.IsZero() && p.printed.saidAt() != nil
	})
	if err != nil {
		return 0, err
	}
	if said := *p.printed.saidAt(); said.After(at) {
		at = said
	}
	return at.Sub(p.began), nil
}

// lastSync is the time of the IPv4 proxier's last successful sync. The health server cannot tell: for it the start
// of the loop is an update.
var lastSync = regexp.MustCompile(`(?m)^kubeproxy_sync_proxy_rules_last_timestamp_seconds\{ip_family="IPv4"\} (\S+)$`)

// synced returns when the IPv4 proxier synced last; zero if it has not.
func (p *Program) synced(ctx context.Context) time.Time {
	text, err := p.get(ctx, metricsURL+"/metrics")
	if err != nil {
		return time.Time{} // not listening yet
	}
	microseconds, err := number(lastSync, text, 1e6)
	if err != nil || microseconds == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(microseconds))
}

func (p *Program) get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := p.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, response.Status)
	}
	return text, err
}

// Quiet waits until the program has nothing more to do: until it has used hardly any CPU time between two looks,
// several times in a row.
func (p *Program) Quiet(ctx context.Context, look time.Duration) error {
	const patience, inARow = 3 * time.Minute, 3
	little := look / 30
	last, calm := time.Duration(-1), 0
	return p.Poll(ctx, "no rest", patience, look, func(context.Context) bool {
		now, err := p.CPU()
		if err != nil {
			return false // it has ended; poll reports it
		}
		if last >= 0 && now-last <= little {
			calm++
		} else {
			calm = 0
		}
		last = now
		return calm >= inARow
	})
}

// CPU is the time that the process has used, and its children that have ended.
func (p *Program) CPU() (time.Duration, error) {
	own, err := figure.CPUOf(p.process.Process.Pid)
	if err != nil {
		return 0, err
	}
	user, system, err := p.ChildrenCPU()
	return own + user + system, err
}

// ChildrenCPU is what the children that have ended used, by themselves and in the kernel.
func (p *Program) ChildrenCPU() (user, system time.Duration, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.process.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	return childrenCPU(stat)
}

// childrenCPU reads cutime and cstime of /proc/PID/stat (proc_pid_stat(5)).
func childrenCPU(stat []byte) (user, system time.Duration, err error) {
	const tick = 10 * time.Millisecond // 1 / USER_HZ
	const cutime, cstime = 16 - 3, 17 - 3
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // the name before may have blanks
	if len(fields) <= cstime {
		return 0, 0, fmt.Errorf("/proc/PID/stat is %q", stat)
	}
	var counts [2]int64
	for i := range counts {
		if counts[i], err = strconv.ParseInt(fields[cutime+i], 10, 64); err != nil {
			return 0, 0, err
		}
	}
	return time.Duration(counts[0]) * tick, time.Duration(counts[1]) * tick, nil
}

var vmHWM = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)

// Peak returns the most that was resident at any time, in bytes.
func (p *Program) Peak() (float64, error) {
	text, err := p.status()
	if err != nil {
		return 0, err
	}
	return number(vmHWM, text, 1<<10)
}

func (p *Program) status() ([]byte, error) {
	return os.ReadFile(fmt.Sprintf("/proc/%d/status", p.process.Process.Pid))
}

var (
	vmRSS   = regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB$`)
	rssAnon = regexp.MustCompile(`(?m)^RssAnon:\s+(\d+) kB$`)
)

// Memory returns how much of the process is resident, and how much of that is anonymous, in bytes. The rest is pages
// of the program's file, which the kernel takes away when it needs memory.
func (p *Program) Memory() (resident, anonymous float64, err error) {
	text, err := p.status()
	if err != nil {
		return 0, 0, err
	}
	resident, err = number(vmRSS, text, 1<<10)
	if err != nil {
		return 0, 0, err
	}
	anonymous, err = number(rssAnon, text, 1<<10)
	return resident, anonymous, err
}

var heapAlloc = regexp.MustCompile(`(?m)^# HeapAlloc = (\d+)$`)

// Heap is the live heap after a garbage collection, in bytes.
func (p *Program) Heap(ctx context.Context) (float64, error) {
	text, err := p.get(ctx, metricsURL+"/debug/pprof/heap?gc=1&debug=1")
	if err != nil {
		return 0, err
	}
	return number(heapAlloc, text, 1)
}

// Profile begins to fetch a profile if the environment variable PROFILE names a directory for it. wait returns when it
// is there. Values of such a run do not count.
func (p *Program) Profile(ctx context.Context, name, query string) (wait func()) {
	dir := os.Getenv("PROFILE")
	if dir == "" {
		return func() {}
	}
	kind, _, _ := strings.Cut(query, "?")
	file := filepath.Join(dir, strings.ReplaceAll(name, "/", "-")+"-"+kind+".pprof")
	done := make(chan struct{})
	go func() {
		defer close(done)
		text, err := p.get(ctx, metricsURL+"/debug/pprof/"+query)
		if err != nil {
			text = []byte(err.Error())
		}
		_ = os.WriteFile(file, text, 0o600) // a missing file is noticed
	}()
	return func() { <-done }
}

func number(pattern *regexp.Regexp, text []byte, unit float64) (float64, error) {
	match := pattern.FindSubmatch(text)
	if match == nil {
		return 0, fmt.Errorf("no match of %s in the answer", pattern)
	}
	value, err := strconv.ParseFloat(string(match[1]), 64)
	return value * unit, err
}

// output keeps the end of what is printed, and the time of an awaited text.
type output struct {
	awaited []byte

	mu  sync.Mutex
	end []byte
	at  *time.Time
}

func (o *output) Write(p []byte) (int, error) {
	const most = 8 << 10
	o.mu.Lock()
	defer o.mu.Unlock()
	o.end = append(o.end, p...)
	if o.at == nil && bytes.Contains(o.end, o.awaited) {
		now := time.Now()
		o.at = &now
	}
	if len(o.end) > most {
		o.end = o.end[len(o.end)-most/2:]
	}
	return len(p), nil
}

// saidAt is when the awaited text was printed; nil if it was not.
func (o *output) saidAt() *time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.at
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(bytes.TrimSpace(o.end))
}
