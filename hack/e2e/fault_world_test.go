package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/status"
)

// The tests of faults each have a [watchedWorld]: a cluster with pods on all nodes, of three kinds.
// Whatever breaks, no pod may ever leave from another pod's address:
//
//	shop/web-N      always leave from the Service's external IPs, which never change
//	shop/plain-N    are behind no Service, so they always leave as their node
//	press/blog-N    leave from external IPs that change now and then, to one after another of 250
//
// The first two are the residents. If a test does not say otherwise, nothing of theirs
// goes unanswered or breaks either: faults of the control plane and of the node's process
// do not affect packets.
type watchedWorld struct {
	*world
	residents, blog *crowd
	// issue is how often the external IPs of press/blog have changed.
	issue int
}

// crowd is pods whose traffic is watched.
type crowd struct {
	*lab.Traffic
	changingIdentities
	pods []*lab.Host
}

// patience of the traffic: on a busy machine an answer may take long, but it comes.
const answered = 15 * time.Second

var (
	webIPs = []string{"203.0.113.10", "2001:db8:113::10"}
	press  = map[string]string{"app": "blog"}
)

// newWatchedWorld makes one whose traffic runs until the test ends.
func newWatchedWorld(t *testing.T, s settings) *watchedWorld {
	t.Helper()
	w := &watchedWorld{world: newWorld(t, s), residents: &crowd{}, blog: &crowd{}}
	w.residents.pods = w.shop(webIPs...)
	w.residents.next(webIPs, w.residents.pods...)
	for i, m := range w.members {
		plain := w.runPod("shop", fmt.Sprintf("plain-%d", i+1), m, nil)
		w.residents.next([]string{m.Host.V4.String(), m.Host.V6.String()}, plain)
		w.residents.pods = append(w.residents.pods, plain)
	}
	w.blog.pods = w.settleBlog()
	w.blog.next(w.blogIPs(), w.blog.pods...)
	w.atRest()
	w.residents.start(w.world, 80)
	w.blog.start(w.world, 60)
	return w
}

// settleBlog makes press/blog with a pod on each node.
func (w *watchedWorld) settleBlog() (pods []*lab.Host) {
	w.Helper()
	_, err := w.CreateNamespace(w.Context(), "press")
	w.must(err)
	_, err = w.CreateService(w.Context(), cluster.NewService("press", "blog", press, w.blogIPs(), tcp80, udp80))
	w.must(err)
	for i, m := range w.members {
		pods = append(pods, w.runPod("press", fmt.Sprintf("blog-%d", i+1), m, press))
	}
	w.bound("press", "blog", len(pods))
	return pods
}

// blogIPs are the external IPs of press/blog: of 250 issues that follow each other no two have the same.
func (w *watchedWorld) blogIPs() []string {
	return []string{fmt.Sprintf("198.51.100.%d", 1+w.issue%250), fmt.Sprintf("2001:db8:113:b::%x", 1+w.issue)}
}

// publish gives press/blog other external IPs, which its pods may be seen as from now on.
func (w *watchedWorld) publish() {
	w.Helper()
	w.issue++
	w.blog.next(w.blogIPs(), w.blog.pods...)
	w.eventually(func() error { return w.publishAgain(w.Context()) }) // an API server may be busy starting
}

// publishAgain writes the last issue's external IPs to the API server.
func (w *watchedWorld) publishAgain(ctx context.Context) error {
	return w.patch(ctx, "press", "blog", map[string]any{"spec": map[string]any{"externalIPs": w.blogIPs()}})
}

// published waits until all these nodes, or all there are, act on the last publish, after
// which no pod on them may use an earlier address.
func (w *watchedWorld) published(members ...*member) {
	w.Helper()
	if len(members) == 0 {
		members = w.members
	}
	w.atRest(members...)
	for _, m := range members {
		w.blog.settle(w.podsOn(w.blog, m)...)
	}
}

// podsOn are the pods of the crowd that are on a node.
func (w *watchedWorld) podsOn(c *crowd, m *member) (pods []*lab.Host) {
	for _, pod := range c.pods {
		if pod.Node == m.Host {
			pods = append(pods, pod)
		}
	}
	return pods
}

// round waits until everybody has had an answer in a new flow and in his kept one.
func (w *watchedWorld) round(crowds ...*crowd) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), soon)
	defer cancel()
	for _, c := range crowds {
		w.must(c.Round(ctx))
	}
}

// strays returns an error if a node tracks a flow with a source address that its pod has no longer. A node
// at rest has none.
func (w *watchedWorld) strays(crowds ...*crowd) error {
	w.Helper()
	for _, m := range w.members {
		for _, tool := range [][]string{{"-f", "ipv4"}, {"-f", "ipv6"}} {
			out, err := m.Host.Command(w.Context(), "conntrack", append([]string{"-L"}, tool...)...).Output()
			if err != nil {
				return fmt.Errorf("conntrack -L on %s: %w", m.Name, err)
			}
			for line := range strings.Lines(string(out)) {
				for _, c := range crowds {
					if err := c.checkFlow(line); err != nil {
						return fmt.Errorf("%s tracks %s: %w", m.Name, strings.TrimSpace(line), err)
					}
				}
			}
		}
	}
	return nil
}

// calm ends the traffic, and fails if a pod used a wrong address or a resident's traffic was disturbed.
func (w *watchedWorld) calm(what string) {
	w.Helper()
	w.round(w.residents, w.blog)
	residents, blog := w.residents.Stop(), w.blog.Stop()
	w.must(w.strays(w.residents, w.blog))
	if residents.Wrong+residents.Unanswered+residents.Broken > 0 {
		w.Errorf("the residents' traffic was disturbed: %s", residents)
	}
	// Each change ends the flows that blog's pods keep, four each, and an answer may be on its way.
	if ended := 4 * len(w.blog.pods) * w.issue; blog.Wrong > 0 || blog.Unanswered > ended || blog.Broken > ended {
		w.Errorf("press/blog used a wrong address, or more of its flows ended than its %d changes end: %s", w.issue, blog)
	}
	w.report(what, residents, blog)
}

// report logs a line for people.
func (w *watchedWorld) report(what string, sums ...lab.Summary) {
	w.Helper()
	for _, sum := range sums {
		line, _, _ := strings.Cut(sum.String(), "\n")
		what += "; " + line
	}
	w.Log(what)
}

// start begins the crowd's traffic to the outside.
func (c *crowd) start(w *world, rate int) {
	w.Helper()
	c.Traffic = lab.StartTraffic(lab.TrafficConfig{To: w.outside(), Rate: rate, Timeout: answered, Check: c.check}, c.pods...)
	w.Cleanup(func() { c.Stop() })
}

// patch changes a Service.
func (w *world) patch(ctx context.Context, namespace, service string, change any) error {
	text, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = w.Client().CoreV1().Services(namespace).Patch(ctx, service, types.MergePatchType, text, metav1.PatchOptions{})
	return err
}

// atRest waits until the nodes, all if none is named, hold the plan and have done all that
// goes with it: flows with another source address are gone, too.
func (w *world) atRest(members ...*member) {
	w.Helper()
	if len(members) == 0 {
		members = w.members
	}
	w.settled(members...)
	now := time.Now()
	w.eventually(func() error {
		for _, m := range members {
			// A sync ends with the flows, so one that has ended since has seen to them.
			if err := m.syncedSince(w.Context(), now); err != nil {
				return err
			}
		}
		return nil
	})
	w.settled(members...)
}

// syncedSince returns an error unless the node says that its last sync succeeded, after a time.
func (m *member) syncedSince(ctx context.Context, since time.Time) error {
	snapshot, err := status.NewClient(m.Socket()).Snapshot(ctx)
	if err != nil {
		return err
	}
	if problems := snapshot.Problems(); len(problems) > 0 {
		return fmt.Errorf("%s: %s", m.Name, strings.Join(problems, "; "))
	}
	for _, f := range snapshot.Families {
		// A node without problems that has never synced a family has no proxier of it.
		if !f.LastSync.IsZero() && !f.LastSync.After(since) {
			return fmt.Errorf("%s: the last sync of %s was at %s, before %s", m.Name, f.Family, f.LastSync, since)
		}
	}
	return nil
}

// inPlace is what a node says after its first complete sync.
const inPlace = "Egress SNAT rules are in place"

// since is the time since then, for people.
func since(then time.Time) time.Duration { return time.Since(then).Round(10 * time.Millisecond) }

// repetition is something that is done again and again.
type repetition struct {
	stop context.CancelFunc
	wg   sync.WaitGroup
}

// repeatedly does something now and after each period.
func repeatedly(period time.Duration, do func()) *repetition {
	ctx, cancel := context.WithCancel(context.Background())
	r := &repetition{stop: cancel}
	r.wg.Go(func() {
		tick := time.NewTicker(period)
		defer tick.Stop()
		for ctx.Err() == nil {
			do()
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	})
	return r
}

// end returns when it is not done any more.
func (r *repetition) end() {
	r.stop()
	r.wg.Wait()
}

// changingIdentities are the addresses that pods may use, one after another. They are for traffic during
// which addresses change: a new one is seen only after it was given, and a pod that has used the new one
// never uses the old one again.
type changingIdentities struct {
	mu sync.Mutex
	of map[*lab.Host]*podIdentities
	// excused is when somebody broke the rules: flows that begin after it may have any address, until
	// judged, which is zero as long as that lasts.
	excused, judged time.Time
	// keptToo: earlier flows may, too.
	keptToo bool
	// strange counts the wrong answers since then by the address seen; strangest is when the last question
	// with a wrong answer was asked.
	strange   map[netip.Addr]int
	strangest time.Time
}

// podIdentities is the identities of a pod in each IP family, the last one being the present one.
type podIdentities struct {
	v4, v6 []netip.Addr
	// settled is since when nothing but the present identity is right; zero while older ones
	// may be seen still.
	settled time.Time
	// seen is when an answer came that showed an identity, by the kind of question and the
	// number of the identity: the first such time. Where a pod had an identity several times, the
	// number is the lowest that is possible.
	seen map[string]map[int]time.Time
}

// next gives pods a new identity, an address of each IP family. The old ones may be seen until
// settle.
func (g *changingIdentities) next(addrs []string, pods ...*lab.Host) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.of == nil {
		g.of = map[*lab.Host]*podIdentities{}
	}
	for _, pod := range pods {
		was := g.of[pod]
		if was == nil {
			was = &podIdentities{seen: map[string]map[int]time.Time{}}
			g.of[pod] = was
			defer func() { was.settled = time.Now() }() // there is nothing else that it could be
		}
		was.settled = time.Time{}
		for _, text := range addrs {
			addr := netip.MustParseAddr(text)
			if addr.Is4() {
				was.v4 = append(was.v4, addr)
			} else {
				was.v6 = append(was.v6, addr)
			}
		}
	}
}

// settle ends the time in which pods may be seen as before.
func (g *changingIdentities) settle(pods ...*lab.Host) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, pod := range pods {
		g.of[pod].settled = time.Now()
	}
}

// excuse accepts and counts answers with any address from now on, in new flows or in kept ones, too.
func (g *changingIdentities) excuse(keptToo bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.keptToo = keptToo
	g.excused, g.judged, g.strange, g.strangest = time.Now(), time.Time{}, map[netip.Addr]int{}, time.Time{}
}

// judge ends that, for questions from now on, and returns what was counted.
func (g *changingIdentities) judge() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.judged = time.Now()
	if len(g.strange) == 0 {
		return "no answer was wrong"
	}
	var counts []string
	for addr, count := range g.strange {
		counts = append(counts, fmt.Sprintf("%d answers to %s", count, addr))
	}
	slices.Sort(counts)
	return fmt.Sprintf("%s, which was wrong, the last one asked after %s", strings.Join(counts, ", "), g.strangest.Sub(g.excused).Round(10*time.Millisecond))
}

// isExcused returns whether any answer is accepted.
func (g *changingIdentities) isExcused(q lab.Question) bool {
	return !g.excused.IsZero() && (g.judged.IsZero() || q.Start.Before(g.judged)) && (g.keptToo || !q.Opened.Before(g.excused))
}

// check is for lab.TrafficConfig. What is not answered is counted and no more.
func (g *changingIdentities) check(q lab.Question) error {
	if q.Err != nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	pod := g.of[q.From]
	identities := pod.v4
	if q.To.Addr().Is6() {
		identities = pod.v6
	}
	present := identities[len(identities)-1]
	if g.isExcused(q) {
		g.note(q, present)
		return nil
	}
	switch {
	case !slices.Contains(identities, q.Seen):
		return fmt.Errorf("want %s", present)
	case q.Seen != present && !pod.settled.IsZero() && q.Start.After(pod.settled):
		return fmt.Errorf("want %s, since %s", present, pod.settled.Format(time.TimeOnly))
	case q.Kept && strings.HasPrefix(q.Network, "tcp"):
		return nil // its address was chosen when it connected
	}
	return pod.inOrder(q, identities)
}

// note notes an answer that need not be right.
func (g *changingIdentities) note(q lab.Question, right netip.Addr) {
	if q.Seen == right {
		return
	}
	g.strange[q.Seen]++
	if q.Start.After(g.strangest) {
		g.strangest = q.Start
	}
}

// inOrder returns an error if an answer that had come before q was asked showed a later identity.
func (p *podIdentities) inOrder(q lab.Question, identities []netip.Addr) error {
	kind := fmt.Sprint(q.Network, q.Kept)
	if p.seen[kind] == nil {
		p.seen[kind] = map[int]time.Time{}
	}
	first := 0
	for i, at := range p.seen[kind] {
		if i > first && at.Before(q.Start) {
			first = i
		}
	}
	now := slices.Index(identities[first:], q.Seen)
	if now < 0 {
		return fmt.Errorf("it was seen as %s at %s, and does not go back", identities[first], p.seen[kind][first].Format("15:04:05.000"))
	}
	now += first
	if at, known := p.seen[kind][now]; !known || q.End.Before(at) {
		p.seen[kind][now] = q.End
	}
	return nil
}

// checkFlow judges a line of conntrack -L.
func (g *changingIdentities) checkFlow(line string) error {
	var src, dst []netip.Addr // of the original direction and of the reply
	for _, field := range strings.Fields(line) {
		if text, ok := strings.CutPrefix(field, "src="); ok {
			src = append(src, netip.MustParseAddr(text))
		}
		if text, ok := strings.CutPrefix(field, "dst="); ok {
			dst = append(dst, netip.MustParseAddr(text))
		}
	}
	if len(src) != 2 || len(dst) != 2 || lab.ClusterV4.Contains(dst[0]) || lab.ClusterV6.Contains(dst[0]) {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for pod, podIdentities := range g.of {
		for _, side := range []struct {
			addr       netip.Addr
			identities []netip.Addr
		}{{pod.V4, podIdentities.v4}, {pod.V6, podIdentities.v6}} {
			// A pod's own address means that no rule has met the flow, not even the network plugin's.
			want := side.identities[len(side.identities)-1]
			plain := want == pod.Node.V4 || want == pod.Node.V6
			if src[0] == side.addr && dst[1] != want && (!plain || dst[1] != side.addr) {
				return fmt.Errorf("its source is %s, want %s", dst[1], want)
			}
		}
	}
	return nil
}
