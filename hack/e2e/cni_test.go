package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/cni/libcni"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/cni"
)

// inEachWay runs a test in a world for each way in which rules are written, several at the same time: most of its time is one program
// waiting for another.
func inEachWay(t *testing.T, test func(r *cniRuntime)) {
	for name, s := range map[string]settings{"legacy": {backend: lab.Legacy}, "nft": {backend: lab.NFT}, "nftables": {backend: lab.NFT, nftables: true}} {
		t.Run(name, func(t *testing.T) {
			if s.backend == lab.Legacy {
				belongsTo(t, usual)
			}
			t.Parallel()
			test(newCNIWorld(t, s))
		})
	}
}

// TestCNI_FirstPackets: a pod that speaks as soon as its network is there leaves from where it should, with EndpointSlices
// that are late; and so does the next one that has its address. Without the plugin neither does.
func TestCNI_FirstPackets(t *testing.T) {
	inEachWay(t, func(r *cniRuntime) {
		r.scenario("without the plugin", func() { r.leaks(by(t, 1, 3, 30)) })
		r.scenario("starts", func() { r.starts(by(t, 6, 20, 1000)) })
		r.scenario("one address", func() { r.alternates(by(t, 4, 20, 500)) })
		r.scenario("kills", func() { r.kills(by(t, 2, 6, 50)) })
		r.scenario("still bound", r.stillBound)
	})
}

// leaks does what alternates does, without the plugin. It expects that all first packets are wrong: if they were not, the
// other scenarios could not tell.
func (r *cniRuntime) leaks(n int) {
	r.Helper()
	list := r.listWithout(197, 197)
	for i := range n {
		ours := r.start(list, r.create("shop", fmt.Sprintf("leaks-%d", i), web))
		r.firstPackets(ours) // from the node's address
		r.sliced(ours)
		r.awaitRulesFor(ours.ips)
		r.end(list, ours)
		stranger := r.start(list, r.create("bank", fmt.Sprintf("wears-%d", i), web))
		r.firstPackets(stranger, r.ips(10)...) // from the address of the pod before
		r.end(list, stranger)
		r.delete(ours.pod)
		r.delete(stranger.pod)
		r.awaitNoRulesFor(ours.ips)
	}
}

// stillBound: the address of a pod that started without the plugin is nobody's while no node process runs, and the next
// pod's afterwards, whatever EndpointSlices say.
func (r *cniRuntime) stillBound() {
	r.Helper()
	without, list := r.listWithout(196, 196), r.list(196, 196)
	old := r.start(without, r.create("shop", "old", web))
	r.sliced(old)
	r.awaitRulesFor(old.ips)
	r.end(without, old)
	r.on.Kill()
	next := r.create("bank", "next", web)
	if _, err := r.tryStart(r.Context(), list, next); err == nil || !strings.Contains(err.Error(), "the kernel still has the address") {
		r.Errorf("a pod of another namespace starts at %v: %v", old.ips, err)
	}
	r.on.AnewReady()
	s := r.start(list, next)
	r.firstPackets(s)
	r.end(list, s)
	r.delete(old.pod)
	r.delete(next)
}

// TestCNI_Kubelet: the kubelet tells the labels, and the node may not read pods.
func TestCNI_Kubelet(t *testing.T) {
	belongsTo(t, usual)
	r := newKubeletWorld(t, settings{backend: lab.NFT, nftables: true})
	list := r.list(150, 170)
	r.scenario("starts", func() { r.starts(by(t, 3, 20, 100)) })
	r.scenario("explained", r.explained)
	r.scenario("one IP family", r.oneFamily)
	r.scenario("no selector", r.noSelector)
	r.scenario("a label goes", func() {
		s := r.start(list, r.create("shop", "relabelled", web))
		r.sliced(s)
		r.eventually(func() error { return r.named(s, true) })
		r.firstPackets(s, r.ips(10)...)
		r.relabel(s, app("db"))
		r.eventually(func() error { return r.named(s, false) })
		r.within(by(t, longestUnbinding, longestUnbinding, time.Second), "unbinding, after its EndpointSlice", func() error {
			r.awaitNoRulesFor(s.ips)
			return nil
		})
		r.firstPackets(s)
		r.end(list, s)
	})
	r.scenario("the API server is away", func() {
		pod := r.create("shop", "again", web)
		s := r.start(list, pod)
		r.sliced(s)
		r.awaitRulesFor(s.ips)
		r.on.link.Drop()
		r.end(list, s)
		for range by(t, 1, 5, 50) { // its sandbox is made anew
			s = r.start(list, pod)
			r.firstPackets(s, r.ips(10)...)
			r.end(list, s)
		}
		r.must(r.on.link.Heal())
	})
	r.attached()
}

// TestCNI_List: the node keeps the plugin in the list that the network plugin writes, or says that it is missing there.
func TestCNI_List(t *testing.T) {
	belongsTo(t, usual)
	r := newKubeletWorld(t, settings{backend: lab.NFT, nftables: true})
	folder := r.on.File("net.d")
	r.must(os.MkdirAll(folder, 0o755))
	file := filepath.Join(folder, "10-cluster.conflist")
	read := func() *libcni.NetworkConfigList {
		t.Helper()
		list, err := libcni.ConfListFromFile(file)
		r.must(err)
		return list
	}
	write := func() { // as network plugins do
		t.Helper()
		r.must(os.WriteFile(file+".tmp", r.listWithout(150, 170).Bytes, 0o600))
		r.must(os.Rename(file+".tmp", file))
	}
	listed := func() error {
		list, err := libcni.ConfListFromFile(file)
		if err == nil && list.Plugins[len(list.Plugins)-1].Network.Type != cni.Plugin {
			err = fmt.Errorf("%s has no plugin:\n%s", file, list.Bytes)
		}
		return err
	}
	r.scenario("nobody has asked for it", func() {
		write()
		s := r.start(read(), r.create("shop", "without", web))
		r.sliced(s)
		r.awaitRulesFor(s.ips)
		r.end(read(), s)
		r.delete(s.pod)
		r.holdsNoWarning()
	})
	r.on.Stop()
	r.startWith("egress-snat-cni-install: [" + r.own + "]")
	r.scenario("kept", func() {
		r.eventually(listed)
		for i := range by(t, 2, 4, 6) { // the node waits longer each time
			write()
			began := time.Now()
			r.eventually(listed)
			r.Logf("the plugin is back after %s", time.Since(began))
			s := r.start(read(), r.create("shop", fmt.Sprintf("kept-%d", i), web))
			r.firstPackets(s, r.ips(10)...)
			r.end(read(), s)
			r.delete(s.pod)
		}
		r.on.Stop()
		r.must(listed())
	})
	r.startWith("")
	r.scenario("missed", func() {
		s := r.start(read(), r.create("shop", "with", web))
		r.sliced(s)
		write()
		old := r.start(read(), r.create("shop", "without-again", web))
		r.sliced(old)
		r.awaitRulesFor(old.ips) // by its EndpointSlice
		r.eventually(func() error { return r.warns("is missing", "shop/without-again") })
		r.eventually(func() error { return r.hasEvent("CNIPluginFailing", "Node/"+r.on.Name) })
		if out, _, _ := r.on.Openshift("egress", "refused", "--socket="+r.on.Socket(), "--no-headers"); strings.TrimSpace(out) != "" {
			r.Errorf("refused:\n%s", out)
		}
		r.end(read(), s)
		r.end(read(), old)
	})
	r.scenario("cleaned up", func() {
		r.on.Stop()
		r.startWith("egress-snat-cni-install: [" + r.own + "]")
		r.eventually(listed)
		r.on.Stop()
		if _, errs, status := r.on.Openshift("start", "node", "--config="+r.on.Config(), "--cleanup"); status != 0 {
			r.Fatal(errs)
		}
		if err := listed(); err == nil {
			r.Error("the plugin is still in the list")
		}
	})
}

// starts starts pods; every third is none of the Service's. Their EndpointSlices come when they have spoken.
func (r *cniRuntime) starts(n int) {
	r.Helper()
	list := r.list(150, 170)
	var ended []netip.Addr // since the last look, fewer than there are
	for i := range n {
		labels, as := web, r.ips(10)
		if i%3 == 2 {
			labels, as = app("db"), nil
		}
		s := r.start(list, r.create("shop", fmt.Sprintf("pod-%d", i), labels))
		r.firstPackets(s, as...)
		r.sliced(s)
		r.firstPackets(s, as...)
		r.end(list, s)
		if ended = append(ended, s.ips...); i%5 == 4 || i == n-1 {
			r.holdsNoRuleFor(ended)
			ended = nil
		}
		r.delete(s.pod)
	}
	r.attached()
}

// explained: the commands tell how a pod is known, from its first packet on.
func (r *cniRuntime) explained() {
	r.Helper()
	list := r.list(150, 170)
	s := r.start(list, r.create("shop", "explained", web))
	r.must(r.knownBy(s, "labels"))
	r.sliced(s)
	r.eventually(func() error { return r.knownBy(s, "endpointslice") })
	r.end(list, s)
	r.delete(s.pod)
}

// knownBy returns an error unless the commands say that shop/web has a pod, and by what it is known: labels or endpointslice.
func (r *cniRuntime) knownBy(s *sandbox, by string) error {
	for _, ip := range s.ips {
		rows, errs, _ := r.on.Openshift("egress", "list", "--socket="+r.on.Socket(), "--no-headers", "-o", "wide")
		var row []string
		for line := range strings.Lines(rows) {
			if strings.HasPrefix(line, ip.String()+" ") {
				row = strings.Fields(line)
			}
		}
		if !slices.Contains(row, by) {
			return fmt.Errorf("%s is not known by %s:\n%s%s", ip, by, rows, errs)
		}
		text, errs, _ := r.on.Openshift("egress", "explain", ip.String(), "--socket="+r.on.Socket())
		waits := strings.Contains(text, "the Service selects the pod, which no EndpointSlice names yet")
		if !strings.Contains(text, "the Service shop/web gives it") || waits != (by == "labels") {
			return fmt.Errorf("%s is known by %s, but explained as\n%s%s", ip, by, text, errs)
		}
	}
	return nil
}

// oneFamily: of a Service of one IP family the pod is bound in that one alone, whatever external IPs there are.
func (r *cniRuntime) oneFamily() {
	r.Helper()
	service := cluster.NewService("shop", "single", app("single"), r.ips(11), tcp80)
	service.Spec.IPFamilyPolicy, service.Spec.IPFamilies = ptr.To(v1.IPFamilyPolicySingleStack), []v1.IPFamily{v1.IPv4Protocol}
	r.startsBehind(service, r.ips(11)[0])
}

// noSelector: nobody knows which pods a Service without a selector will have, so that EndpointSlices alone bind them.
func (r *cniRuntime) noSelector() {
	r.Helper()
	r.startsBehind(cluster.NewService("shop", "selects-none", nil, r.ips(12), tcp80))
}

// startsBehind fails unless a pod with the label of a new Service leaves from these addresses from its first packet on, also
// when it is known to run.
func (r *cniRuntime) startsBehind(service *v1.Service, as ...string) {
	r.Helper()
	list := r.list(150, 170)
	_, err := r.CreateService(r.Context(), service)
	r.must(err)
	r.eventually(func() error {
		if _, errs, status := r.on.Openshift("egress", "explain", "shop/"+service.Name, "--socket="+r.on.Socket()); status != 0 {
			return errors.New(errs)
		}
		return nil
	})
	s := r.start(list, r.create("shop", "behind-"+service.Name, app(service.Name)))
	r.firstPackets(s, as...)
	r.sliced(s)
	r.firstPackets(s, as...)
	r.end(list, s)
	r.delete(s.pod)
}

// alternates gives one address to pods of the Service and to strangers in turn. The EndpointSlice that names one comes
// while it ends, and goes while the next one speaks.
func (r *cniRuntime) alternates(n int) {
	r.Helper()
	list := r.list(199, 199)
	for i := range n {
		ours := r.start(list, r.create("shop", fmt.Sprintf("ours-%d", i), web))
		r.firstPackets(ours, r.ips(10)...)
		r.sliced(ours)
		r.end(list, ours)
		stranger := r.start(list, r.create("bank", fmt.Sprintf("stranger-%d", i), web))
		r.firstPackets(stranger)
		r.delete(ours.pod)
		r.firstPackets(stranger)
		r.sliced(stranger)
		r.end(list, stranger)
		r.delete(stranger.pod)
	}
	r.attached()
}

// kills kills the node's process or the plugins while they begin and end pods that have one address in turn.
func (r *cniRuntime) kills(n int) {
	r.Helper()
	list := r.list(198, 198)
	for i := range n {
		ours := r.create("shop", fmt.Sprintf("killed-%d", i), web)
		s := r.killed(func(ctx context.Context) (*sandbox, error) { return r.tryStart(ctx, list, ours) })
		if s == nil {
			s = r.start(list, ours)
		}
		r.firstPackets(s, r.ips(10)...)
		r.sliced(s)
		r.killed(func(ctx context.Context) (*sandbox, error) { return nil, r.tryEnd(ctx, list, s) })
		if r.runs[s.conf.ContainerID] != nil {
			r.end(list, s)
		}
		stranger := r.start(list, r.create("bank", fmt.Sprintf("next-%d", i), web))
		r.firstPackets(stranger)
		r.end(list, stranger)
		r.delete(ours)
		r.delete(stranger.pod)
		r.within(by(r.T, longestReturn, longestReturn, 5*time.Second), "finding out which pods run", func() error {
			r.attached()
			return nil
		})
	}
}

// killed does something, during which either it or the node's process is killed, and returns what it started.
func (r *cniRuntime) killed(do func(context.Context) (*sandbox, error)) (started *sandbox) {
	r.Helper()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		var err error
		started, err = do(ctx)
		done <- err
	}()
	after, ofNode := time.Duration(rand.Int64N(int64(200*time.Millisecond))), rand.IntN(2) == 0
	time.Sleep(after)
	if ofNode {
		r.on.Kill()
		r.on.Anew()
	} else {
		cancel() // kills the plugin that runs
	}
	r.Logf("killed after %s, the node's process: %v; the runtime says: %v", after, ofNode, <-done)
	r.on.Ready()
	return started
}
