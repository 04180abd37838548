package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/origin-node/hack/bench/figure"
	"github.com/openshift/origin-node/hack/bench/objects"
	"github.com/openshift/origin-node/hack/bench/tables"
	"github.com/openshift/origin-node/pkg/egress/holders"
)

// renewal is how often at most a node writes its Lease while nothing changes.
const renewal = 9 * time.Second

// visit measures the cluster in its size.
func (w *world) visit(ctx context.Context, at size) (rows []figure.Result, err error) {
	if err := w.resize(ctx, at); err != nil {
		return nil, err
	}
	t := &sheet{Settings: w.Settings, at: at}
	defer func() {
		for _, n := range w.nodes {
			err = errors.Join(err, n.stop())
		}
	}()
	for _, measure := range []func(context.Context, *sheet) error{w.starts, w.quiet, w.memory, w.follow, w.standIns} {
		if err := measure(ctx, t); err != nil {
			return nil, err
		}
	}
	return t.rows, nil
}

// holding and other are the nodes that hold egress IPs, and those that hold none.
func (w *world) holding(values func(n int) float64) []float64 { return w.of(true, values) }
func (w *world) other(values func(n int) float64) []float64   { return w.of(false, values) }

func (w *world) of(members bool, value func(n int) float64) (values []float64) {
	for i, n := range w.nodes {
		if n.member == members {
			values = append(values, value(i))
		}
	}
	return values
}

// starts starts all nodes, on kernels without rules, and waits until they have all rules, and the pool all addresses.
func (w *world) starts(ctx context.Context, t *sheet) error {
	for _, n := range w.nodes {
		if err := tables.Empty(ctx, n.host); err != nil {
			return err
		}
	}
	if _, err := w.audit.read(); err != nil {
		return err
	}
	before, err := w.sent(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	for _, n := range w.nodes {
		if err := n.start(ctx, os.Getenv(binaryVariable)); err != nil {
			return err
		}
	}
	var complete []float64
	for _, n := range w.nodes {
		took, err := n.running.Complete(ctx)
		if err != nil {
			return err
		}
		complete = append(complete, took.Seconds())
	}
	if err := w.served(ctx, t.at); err != nil {
		return err
	}
	w.Log("all rules are there, and all addresses on nodes, after %s", time.Since(began).Round(time.Second))
	used, err := w.used(ctx)
	if err != nil {
		return err
	}
	w.Log("requests of %s: %v", objects.Node(len(w.nodes)-1), used[len(used)-1].asked)
	t.add("start, until all rules are there, all at once", "s", complete...)
	t.add("start, until all addresses are served, requests of a node", "requests", w.other(func(n int) float64 { return float64(used[n].asked.all()) })...)
	t.add("start, until all addresses are served, from the API server to a node", "MB", w.other(func(n int) float64 {
		return (used[n].received - before[w.nodes[n].host.V4]) / 1e6
	})...)
	return w.proper(used)
}

// served waits until the pool has all egress IPs, and all nodes follow.
func (w *world) served(ctx context.Context, at size) error {
	began := time.Now()
	_, err := w.nodes[0].follows(ctx, began, func(*node) (bool, error) {
		served := 0
		for _, n := range w.nodes {
			held, err := n.host.Held()
			if err != nil {
				return false, err
			}
			own := above(poolNetwork.Addr(), n.number)
			for _, ip := range held {
				if poolNetwork.Contains(ip) && ip != own {
					served++
				}
			}
		}
		return served == at.addresses, nil
	})
	if err != nil {
		return fmt.Errorf("%d addresses are not on the nodes of the pool: %w", at.addresses, err)
	}
	if _, err = w.allFollow(ctx, began, w.knowsMoved); err != nil {
		return err
	}
	_, err = w.allFollow(ctx, began, w.knowsChanged)
	return err
}

// knowsMoved tells whether a kernel sends its own pod's packets to the holder of the moved address.
func (w *world) knowsMoved(n *node) (bool, error) {
	to, err := n.leads(moved.pod(n.number, 0))
	if n == w.holder {
		return !to.IsValid(), err
	}
	return to == w.holder.host.V4, err
}

// knowsChanged tells whether a kernel knows its newest pod.
func (w *world) knowsChanged(n *node) (bool, error) {
	to, err := n.leads(changed.pod(n.number, w.replaced))
	return to == standInAddress(len(w.nodes)), err
}

// allFollow waits for all kernels.
func (w *world) allFollow(ctx context.Context, began time.Time, is func(*node) (bool, error)) (following, error) {
	took, errs := make([]time.Duration, len(w.nodes)), make([]error, len(w.nodes))
	var waiting sync.WaitGroup
	for i, n := range w.nodes {
		waiting.Go(func() { took[i], errs[i] = n.follows(ctx, began, is) })
	}
	waiting.Wait()
	f := following{began: began}
	for i, n := range w.nodes {
		group := &f.nodes
		switch {
		case n.member:
			group = &f.holders
		case n.silent:
			group = &f.silent
		}
		*group = max(*group, took[i].Seconds())
	}
	return f, errors.Join(errs...)
}

// proper returns an error if nodes have asked for what is no business of theirs.
func (w *world) proper(used []use) error {
	const business = "services endpointslices servicecidrs nodes leases events secrets" // of which one has the keys
	var errs []error
	for i, u := range used {
		for what, count := range u.asked {
			verb, resource, _ := strings.Cut(what, " ")
			if !strings.HasPrefix(resource, "/") && !slices.Contains(strings.Fields(business), resource) || verb == "list" && count > 1 {
				errs = append(errs, fmt.Errorf("%s: %d × %s", objects.Node(i), count, what))
			}
		}
	}
	return errors.Join(errs...)
}

// quiet measures what nodes use while nothing changes, while kubelets report, and while pods change.
func (w *world) quiet(ctx context.Context, t *sheet) error {
	for _, n := range w.nodes {
		if n.member {
			continue // the pool is never quiet
		}
		if err := n.running.Quiet(ctx, w.plan.look); err != nil {
			return err
		}
	}
	profiled := w.profile(ctx, t, "quiet")
	still, err := w.during(ctx, func() error { return figure.Sleep(ctx, w.plan.window) })
	profiled()
	if err != nil {
		return err
	}
	reporting := w.plan.reporting / time.Duration(t.at.nodes)
	reports, changes := int(w.plan.window/reporting), int(w.plan.window/w.plan.pace)
	reported, err := w.during(ctx, func() error { return w.report(ctx, reports, reporting) })
	if err != nil {
		return err
	}
	altered, err := w.during(ctx, func() error { return w.change(ctx, changes, w.plan.pace) })
	if err != nil {
		return err
	}
	all := together(still, reported, altered)
	w.Log("requests after the start: of a holder %v, of another node %v", all[0].asked, all[len(all)-1].asked)
	rate := func(from []use, value func(use) float64) func(int) float64 {
		return func(n int) float64 { return value(from[n]) / from[n].wall.Seconds() }
	}
	asked := func(u use) float64 { return float64(u.asked.all()) }
	received := func(u use) float64 { return u.received / 1e3 }
	cpu := func(u use) float64 { return figure.Milliseconds(u.cpu) }
	writes := func(u use) float64 { return float64(u.asked.leaseWrites()) }
	t.add("after the start, until all addresses are served, requests of a node", "1/s", w.other(rate(all, asked))...)
	t.add("after the start, requests of a holder", "1/s", w.holding(rate(all, asked))...)
	t.add("after the start, Lease writes of a node", "1/s", w.other(rate(all, writes))...)
	t.add("after the start, Lease writes of a holder", "1/s", w.holding(rate(all, writes))...)
	t.add("nothing changes, from the API server to a node", "kB/s", w.other(rate(still, received))...)
	t.add("nothing changes, CPU of a node", "ms/s", w.other(rate(still, cpu))...)
	t.add("nothing changes, CPU of a holder", "ms/s", w.holding(rate(still, cpu))...)
	// What something costs once, without what nodes use anyway.
	each := func(from []use, times int, value func(use) float64) func(int) float64 {
		return func(n int) float64 {
			idle := value(still[n]) / still[n].wall.Seconds() * from[n].wall.Seconds()
			return (value(from[n]) - idle) / float64(times)
		}
	}
	t.add("a kubelet reports, from the API server to a node", "kB", w.other(each(reported, reports, received))...)
	t.add("a kubelet reports, CPU of a node", "ms", w.other(each(reported, reports, cpu))...)
	t.add("a kubelet reports, CPU of a holder", "ms", w.holding(each(reported, reports, cpu))...)
	t.add("an EndpointSlice changes, from the API server to a node", "kB", w.other(each(altered, changes, received))...)
	t.add("an EndpointSlice changes, CPU of a node", "ms", w.other(each(altered, changes, cpu))...)
	t.add("an EndpointSlice changes, CPU of a holder", "ms", w.holding(each(altered, changes, cpu))...)
	t.total("requests after the start", "1/s", w, rate(all, asked))
	t.total("Lease writes after the start", "1/s", w, rate(all, writes))
	t.total("from the API server while nothing changes", "MB/s", w, func(n int) float64 { return rate(still, received)(n) / 1e3 })
	reporters := float64(t.at.nodes) / w.plan.reporting.Seconds()
	t.total("from the API server as often as kubelets report", "MB/s", w, func(n int) float64 { return each(reported, reports, received)(n) * reporters / 1e3 })
	return errors.Join(w.proper(all), w.renewed(all))
}

// together adds up what nodes have used in several times.
func together(parts ...[]use) []use {
	sum := make([]use, len(parts[0]))
	for i := range sum {
		sum[i].asked = requests{}
		for _, part := range parts {
			sum[i].wall += part[i].wall
			for what, count := range part[i].asked {
				sum[i].asked[what] += count
			}
		}
	}
	return sum
}

// profile begins to fetch a profile of a holder, as [program.Program.Profile] does.
func (w *world) profile(ctx context.Context, t *sheet, doing string) (wait func()) {
	name := fmt.Sprintf("scale-%d-%d-%s", t.at.nodes, t.at.addresses, doing)
	return w.nodes[0].running.Profile(ctx, name, fmt.Sprintf("profile?seconds=%.0f", w.plan.window.Seconds()))
}

// renewed returns an error if a node has written its Lease too often, although its addresses have not changed.
func (w *world) renewed(all []use) error {
	var errs []error
	for i, u := range all {
		most := 0
		if w.nodes[i].member {
			most = 2 + int(u.wall/renewal) // it takes time to count
		}
		if written := u.asked.leaseWrites(); written > most {
			errs = append(errs, fmt.Errorf("%s has written its Lease %d times in %s, want %d", objects.Node(i), written, u.wall, most))
		}
	}
	return errors.Join(errs...)
}

// total adds a row for all nodes of the cluster, if each uses as much as those that were measured.
func (t *sheet) total(name, unit string, w *world, value func(n int) float64) {
	holding, other := w.holding(value), w.other(value)
	sum := figure.Distribution(holding).Median()*float64(len(holding)) + figure.Distribution(other).Median()*float64(t.at.nodes-len(holding))
	t.add("calculated: all nodes, "+name, unit, sum)
}

// during returns what each node uses while something is done.
func (w *world) during(ctx context.Context, do func() error) ([]use, error) {
	before, err := w.used(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := do(); err != nil {
		return nil, err
	}
	after, err := w.used(ctx)
	if err != nil {
		return nil, err
	}
	for i := range after {
		after[i].wall = time.Since(began)
		after[i].cpu -= before[i].cpu
		after[i].received -= before[i].received
	}
	return after, nil
}

// memory says how much the processes have.
func (w *world) memory(_ context.Context, t *sheet) error {
	all := make([]memory, len(w.nodes))
	for i, n := range w.nodes {
		var err error
		if all[i], err = n.memory(); err != nil {
			return err
		}
	}
	t.add("resident memory of a node", "MiB", w.other(func(n int) float64 { return all[n].resident })...)
	t.add("resident memory of a holder", "MiB", w.holding(func(n int) float64 { return all[n].resident })...)
	t.add("peak memory of a node", "MiB", w.other(func(n int) float64 { return all[n].peak })...)
	t.add("peak memory of a holder", "MiB", w.holding(func(n int) float64 { return all[n].peak })...)
	return w.memoryOfAPIServer(t, "")
}

func (w *world) memoryOfAPIServer(t *sheet, with string) error {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(w.APIServer.PID()) + "/statm")
	if err != nil {
		return err
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	t.add("resident memory of the API server"+with, "MiB", float64(pages*os.Getpagesize())/(1<<20))
	return err
}

// follow measures how soon all kernels know new pods, and another holder.
func (w *world) follow(ctx context.Context, t *sheet) error {
	defer w.profile(ctx, t, "following")()
	var replaced, moves []following
	for range w.plan.moves {
		f, err := w.replace(ctx)
		if err != nil {
			return err
		}
		replaced = append(replaced, f)
	}
	for range w.plan.moves {
		f, err := w.move(ctx)
		if err != nil {
			return err
		}
		moves = append(moves, f)
	}
	t.follow("pods change", replaced)
	t.follow("an address moves", moves)
	return nil
}

// following is how long it took until kernels were as they should, in seconds.
type following struct {
	began time.Time
	// holders is for the last of the holders, nodes for that of the others, silent for the one that is told nothing directly.
	holders, nodes, silent float64
}

// follow adds rows for the several times that something happened.
func (t *sheet) follow(what string, all []following) {
	for _, row := range []struct {
		who   string
		value func(following) float64
	}{
		{"the kernels of nodes follow", func(f following) float64 { return f.nodes }},
		{"the kernels of holders follow", func(f following) float64 { return f.holders }},
		{"the kernel of a node follows that hears Leases alone", func(f following) float64 { return f.silent }},
	} {
		var values []float64
		for _, f := range all {
			values = append(values, row.value(f))
		}
		t.add(what+", until "+row.who, "s", values...)
	}
}

// replace replaces the pods of probe changed on all nodes at once, and waits until all kernels have the new ones.
func (w *world) replace(ctx context.Context) (following, error) {
	w.replaced++
	began := time.Now()
	slice := changed.slice(len(w.nodes), w.replaced)
	if _, err := w.client.DiscoveryV1().EndpointSlices(slice.Namespace).Update(ctx, slice, metav1.UpdateOptions{}); err != nil {
		return following{}, err
	}
	return w.allFollow(ctx, began, w.knowsChanged)
}

// move moves the address to another node of the pool, and waits until all kernels follow.
func (w *world) move(ctx context.Context) (following, error) {
	from, to := w.holder, w.nodes[0]
	if from == to {
		to = w.nodes[1]
	}
	w.holder = to
	began := time.Now()
	if err := w.MoveAddr(moved.egressIP, from.host, to.host); err != nil {
		return following{}, err
	}
	return w.allFollow(ctx, began, w.knowsMoved)
}

// standIns measures the same while as many watch the Leases as there are Nodes, and how soon all of them are told.
func (w *world) standIns(ctx context.Context, t *sheet) error {
	n := t.at.nodes - len(w.nodes)
	began := time.Now()
	all, err := startStandIns(ctx, n, w.Outside(), w.AdminConfig())
	if err != nil {
		return err
	}
	defer all.stop()
	w.Log("%d stand-ins watch after %s", n, time.Since(began).Round(time.Second))
	var moves []following
	var half, last []float64
	for range w.plan.moves {
		f, err := w.move(ctx)
		if err != nil {
			return err
		}
		times, err := w.told(ctx, all)
		if err != nil {
			return err
		}
		moves = append(moves, f)
		half, last = append(half, times[len(times)/2].Sub(f.began).Seconds()), append(last, times[len(times)-1].Sub(f.began).Seconds())
	}
	t.follow("an address moves while stand-ins watch", moves)
	t.add("an address moves, until half of the stand-ins are told of the Lease", "s", half...)
	t.add("an address moves, until all stand-ins are told of the Lease", "s", last...)
	return w.memoryOfAPIServer(t, " while stand-ins watch")
}

// told waits until all stand-ins were told of the address's holder, and returns when, in order.
func (w *world) told(ctx context.Context, all *standIns) (times []time.Time, err error) {
	const patience, pause = 2 * time.Minute, 20 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		epoch, err := w.announced(ctx)
		if err != nil {
			return nil, err
		}
		if epoch > 0 {
			times, missing, err := all.told(epoch)
			if err != nil || missing == 0 {
				return times, err
			}
		}
		if err := figure.Sleep(ctx, pause); err != nil {
			return nil, fmt.Errorf("stand-ins are not told within %s: %w", patience, err)
		}
	}
}

// announced returns the epoch that the moved address has in its holder's Lease; 0 if it is not there yet.
func (w *world) announced(ctx context.Context) (uint64, error) {
	lease, err := w.client.CoordinationV1().Leases(holders.DefaultNamespace).Get(ctx, objects.Node(w.holder.number), metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	said, err := holders.Announcing(lease)
	return said.Addresses[moved.egressIP], err
}
