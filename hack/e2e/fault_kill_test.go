package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
	"github.com/openshift/origin-node/pkg/wake"
)

// TestKill_AgainAndAgain: at random moments of its start and of its
// writes, while Services change all the time.
func TestKill_AgainAndAgain(t *testing.T) {
	t.Run("iptables", func(t *testing.T) { killedAgainAndAgain(t, by(t, 10, 20, 100), settings{}) })
	t.Run("nftables", func(t *testing.T) {
		belongsTo(t, usual)
		killedAgainAndAgain(t, by(t, 10, 10, 100), settings{nftables: true})
	})
}

// TestKill_DuringAWrite: by its own iptables-restore, before that writes a
// change, and after it, when the flows that the change ends have not been seen to.
func TestKill_DuringAWrite(t *testing.T) {
	belongsTo(t, usual)
	w := newWatchedWorld(t, settings{})
	victim := w.members[1]
	for _, moment := range []struct {
		name          string
		before, after string // what the shell does that calls iptables-restore
		written       bool
	}{
		{"before the write", "kill -9 $PPID; exit 1", "", false},
		{"after the write", "", "kill -9 $PPID", true},
	} {
		for i, family := range families {
			w.round(w.blog) // so that there are flows that the change ends
			w.issue++
			w.blog.next(w.blogIPs(), w.blog.pods...)
			tool := []string{"iptables-restore", "ip6tables-restore"}[i]
			change := "--to-source " + w.blogIPs()[i]
			script := fmt.Sprintf("#!/bin/sh\npayload=$(cat)\ncase $payload in *%q*) %s ;; esac\nprintf '%%s\\n' \"$payload\" | PATH=%s %s \"$@\" || exit\ncase $payload in *%q*) %s ;; esac\n",
				change, moment.before, w.Path(), tool, change, moment.after)
			w.must(os.WriteFile(filepath.Join(victim.BinDir, tool), []byte(script), 0o700))
			w.must(w.publishAgain(t.Context()))
			if status := victim.Exit(); status != -1 {
				t.Fatalf("%s of %s: the node ended with status %d, want it killed", moment.name, family, status)
			}
			w.must(os.Remove(filepath.Join(victim.BinDir, tool)))
			w.published(w.members[0], w.members[2])
			objects, err := w.objects()
			w.must(err)
			if err := victim.CheckPlan(objects, family); (err == nil) != moment.written {
				t.Errorf("%s of %s: the kernel holds the change: %t, want %t: %v", moment.name, family, err == nil, moment.written, err)
			}
			if w.strays(w.blog) == nil {
				t.Errorf("%s of %s: no flow uses the old address, so the test shows nothing", moment.name, family)
			}
			began := time.Now()
			victim.Anew()
			w.published()
			t.Logf("killed %s of %s: all well %s after the next start", moment.name, family, since(began))
		}
	}
	w.calm("killed in writes")
}

func killedAgainAndAgain(t *testing.T, times int, s settings) {
	w := newWatchedWorld(t, s)
	toggled := w.newToggledService()
	victims := w.members[1:] // the first is what they are compared with
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	upTo := func(d time.Duration) time.Duration { return time.Duration(random.Int64N(int64(d))) }

	start := restart(victims[0])
	var moments moments
	made := 0
	for killed := 0; killed < times; {
		changes := w.changeAllTheTime(toggled)
		for range 3 { // during the start
			victim := victims[killed%len(victims)]
			began := time.Now()
			moments.kill(w, victim)
			victim.Start()
			time.Sleep(time.Until(began.Add(upTo(start * 5 / 4))))
			moments.kill(w, victim)
			victim.Start()
			killed += 2
		}
		for range 3 { // some time after a change
			victim := victims[killed%len(victims)]
			victim.Ready()
			changes.await(t)
			time.Sleep(upTo(400 * time.Millisecond))
			moments.kill(w, victim)
			victim.Start()
			killed++
		}
		made += changes.end(t)
		// The last word is that toggled is not bound: no later change can hide what was left.
		if toggled.bound {
			w.must(toggled.turn(t.Context(), w))
		}
		victim := victims[killed%len(victims)]
		time.Sleep(upTo(400 * time.Millisecond))
		moments.kill(w, victim)
		victim.Start()
		killed++
		w.published()
		toggled.settle(toggled.pods...)
		w.round(toggled.crowd)
		w.eventually(func() error { return w.strays(toggled.crowd, w.blog) })
	}
	t.Logf("%d changes, a start takes %s; %d kills: %s", made, start.Round(time.Millisecond), moments.kills, moments)
	if least := by(t, 0, 0, times/20); moments.writing < least || moments.behind < least {
		t.Errorf("this says too little: want at least %d kills while a program ran, and with a change not in the kernel", least)
	}
	if sum := toggled.Stop(); sum.Wrong > 0 {
		t.Errorf("press/toggled was seen from a wrong address: %s", sum)
	}
	w.calm("killed again and again")
	for _, victim := range victims {
		w.leftovers(victim, w.members[0])
	}
}

// restart returns how long a node takes from its start to its first complete sync.
func restart(m *member) time.Duration {
	m.Kill()
	began := time.Now()
	m.AnewReady()
	return time.Since(began)
}

// toggledService is a Service whose pods are bound and unbound in turn.
type toggledService struct {
	*crowd
	egressIPs []string
	bound     bool
}

func (w *watchedWorld) newToggledService() *toggledService {
	w.Helper()
	labels := map[string]string{"app": "toggled"}
	g := &toggledService{crowd: &crowd{}, egressIPs: []string{"203.0.113.77", "2001:db8:113::77"}, bound: true}
	_, err := w.CreateService(w.Context(), cluster.NewService("press", "toggled", labels, g.egressIPs, tcp80, udp80))
	w.must(err)
	for i, m := range w.members {
		g.pods = append(g.pods, w.runPod("press", fmt.Sprintf("toggled-%d", i+1), m, labels))
	}
	g.next(g.egressIPs, g.pods...)
	w.bound("press", "toggled", len(g.pods))
	w.atRest()
	g.start(w.world, 60)
	return g
}

// turn binds the pods, or does not any more.
func (g *toggledService) turn(ctx context.Context, w *watchedWorld) error {
	g.bound = !g.bound
	for _, pod := range g.pods {
		identity := g.egressIPs
		if !g.bound {
			identity = []string{pod.Node.V4.String(), pod.Node.V6.String()}
		}
		g.next(identity, pod)
	}
	return w.patch(ctx, "press", "toggled", map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{"network.openshift.io/egress-snat": fmt.Sprint(g.bound)},
	}})
}

// changes are being made.
type changes struct {
	*repetition
	made wake.Signal // after each
	errs []error
	n    int
}

// changeAllTheTime changes press/blog and press/toggled in turn, until it is ended.
func (w *watchedWorld) changeAllTheTime(g *toggledService) *changes {
	c := &changes{made: wake.New()}
	ctx := w.Context()
	c.repetition = repeatedly(300*time.Millisecond, func() {
		if c.n++; c.n%2 == 0 {
			c.errs = append(c.errs, g.turn(ctx, w))
		} else {
			w.issue++
			w.blog.next(w.blogIPs(), w.blog.pods...)
			c.errs = append(c.errs, w.publishAgain(ctx))
		}
		c.made.Send()
	})
	return c
}

// await returns when the next change has been made.
func (c *changes) await(t *testing.T) {
	t.Helper()
	select {
	case <-c.made: // an earlier change
	default:
	}
	select {
	case <-c.made:
	case <-time.After(soon):
		t.Fatal("no change is made")
	}
}

// end returns how many there were.
func (c *changes) end(t *testing.T) int {
	t.Helper()
	c.repetition.end()
	if err := errors.Join(c.errs...); err != nil {
		t.Fatal(err)
	}
	return c.n
}

// moments is what processes were doing when they were killed.
type moments struct{ kills, starting, writing, behind int }

// kill kills a node's process, and forgets its log.
func (m *moments) kill(w *watchedWorld, victim *member) {
	w.Helper()
	running := children(victim.PID())
	victim.Kill()
	m.kills++
	if !strings.Contains(victim.Printed.String(), inPlace) {
		m.starting++
	}
	victim.Printed.Reset()
	if running > 0 {
		m.writing++
	}
	objects, err := w.objects()
	w.must(err)
	if victim.CheckPlan(objects, families...) != nil {
		m.behind++
	}
}

func (m moments) String() string {
	return fmt.Sprintf("%d during the start, %d while a program like iptables-restore ran, %d with a change not in the kernel yet",
		m.starting, m.writing, m.behind)
}

// children is how many a process has.
func children(pid int) (count int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		text, _ := os.ReadFile(task) // of a thread that has ended
		count += len(strings.Fields(string(text)))
	}
	return count
}

// leftovers fails the test if a node holds rules of ours that it should not hold, or chains, rules of the
// proxier or files that another node does not have. The proxier has the same to do on both; we may not.
func (w *watchedWorld) leftovers(m, model *member) {
	w.Helper()
	w.settled(m)
	for _, family := range families {
		w.eventually(func() error {
			if diff := cmp.Diff(proxiers(model, family), proxiers(m, family)); diff != "" {
				return fmt.Errorf("%s, %s: not as %s (-want +got):\n%s", m.Name, family, model.Name, diff)
			}
			return nil
		})
	}
	names := func(m *member) (names []string) {
		entries, err := os.ReadDir(m.File("."))
		w.must(err)
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
		return names
	}
	if diff := cmp.Diff(names(model), names(m)); diff != "" {
		w.Errorf("%s: files, not as %s (-want +got):\n%s", m.Name, model.Name, diff)
	}
}

// programmed are the lines of what the node's process is responsible for in the kernel, sorted.
func programmed(m *member, family v1.IPFamily) (lines []string) {
	self := strings.NewReplacer(m.Host.V4.String()+"/", "self/", m.Host.V6.String()+"/", "self/")
	for line := range strings.Lines(m.Save(family)) {
		if strings.HasSuffix(line, "-j KUBE-NODEPORTS\n") {
			line = self.Replace(line)
		}
		if strings.Contains(line, "KUBE-") || strings.Contains(line, iptables.ChainPrefix) {
			line, _, _ = strings.Cut(line, " [") // counters
			lines = append(lines, marks.ReplaceAllString(strings.TrimSpace(line), "${1}"))
		}
	}
	slices.Sort(lines)
	return append(lines, m.elements(family)...)
}

// proxiers are those of the lines that are the proxier's, but the one that a start which finds the fast path's settings has not.
func proxiers(m *member, family v1.IPFamily) []string {
	return slices.DeleteFunc(programmed(m, family), func(line string) bool {
		return strings.Contains(line, iptables.ChainPrefix) || strings.Contains(line, "ct_state_invalid_dropped_pkts")
	})
}

// marks are the chains that writes leave; each has a number of its own.
var marks = regexp.MustCompile("(" + iptables.ChainPrefix + "AT-)[0-9A-F]{8}")

// elements are the rules and elements of the nftables proxier's table, sorted.
func (m *member) elements(family v1.IPFamily) (elements []string) {
	if m.Backend != reconcile.NFTables {
		return nil
	}
	protocol, self := "ip", m.Host.V4
	if family == v1.IPv6Protocol {
		protocol, self = "ip6", m.Host.V6
	}
	text, err := m.Host.Run(context.Background(), "nft", "--stateless", "list", "table", protocol, "kube-proxy")
	if err != nil {
		return []string{err.Error()}
	}
	text = strings.NewReplacer("elements = {", "\n", ",", "\n", " }", "\n").Replace(text)
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == self.String() {
			line = "self"
		}
		// A pod that asks itself is a matter of its own node alone, and what becomes of addresses of
		// no Service is written with full syncs only, so not by a node that got to know the
		// ServiceCIDRs after its first.
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] == fields[2] || strings.Contains(line, "Drop traffic to unallocated ClusterIPs") {
			continue
		}
		elements = append(elements, line)
	}
	slices.Sort(elements)
	return elements
}
