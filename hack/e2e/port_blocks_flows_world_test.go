package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/containernetworking/cni/libcni"
	"github.com/google/uuid"

	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/pkg/kernel"
)

// flowsWorld is a cluster in which the pool holds the egress IPs of Services, and many pods send to a far side.
type flowsWorld struct {
	*blocksWorld
	pool     *poolWorld
	services []string
	lists    map[*cniRuntime]*libcni.NetworkConfigList
	pods     []*flowPod
	// lives are all pods that have ever run.
	lives map[uuid.UUID]life
	far   *farSide
	// failed counts attempts that the far side has not answered.
	failed atomic.Int64
	// restarts is how many pods were replaced, moves how often a node lost its egress IPs.
	restarts, moves int
}

// life is what a pod has as long as it runs.
type life struct {
	name      string
	egressIPs []netip.Addr
	ports     kernel.Ports
}

// flowPod is a pod that sends, and after its end the next one of its name.
type flowPod struct {
	sync.Mutex    // who sends has it, and who replaces the pod
	name, service string
	r             *cniRuntime
	*sandbox
	uid uuid.UUID
}

const (
	// senders is how many pods send at a time. Each sends so many flows in a row.
	senders, row = 12, 40
	// flowPatience is how long a pod waits for the far side: TCP may repeat a packet once.
	flowPatience = 1500 * time.Millisecond
	// serverPorts is how many ports the far side has of each protocol and IP family.
	serverPorts = 4
)

// newFlowsWorld makes one with so many Services, without pods.
func newFlowsWorld(t *testing.T, services int) *flowsWorld {
	t.Helper()
	b := newBlocksWorldOf(t, blocksOf512+poolArguments+"metrics-bind-address: [\""+metricsAt.String()+"\"]\n")
	w := &flowsWorld{
		blocksWorld: b, pool: &poolWorld{&steeredWorld{world: b.world, egressIPs: b.egressIPs}}, services: []string{"web"},
		lists: map[*cniRuntime]*libcni.NetworkConfigList{}, lives: map[uuid.UUID]life{}, far: &farSide{pods: map[uuid.UUID]int{}},
	}
	for i := 1; i < services; i++ {
		name := fmt.Sprintf("web-%d", i)
		w.services = append(w.services, name)
		_, err := w.CreateService(t.Context(), cluster.NewService("shop", name, app(name), w.lanIPs(100+i), tcp80, udp80))
		w.must(err)
		w.pool.egressIPs = append(w.pool.egressIPs, w.lanIPs(100+i)...)
	}
	for _, r := range w.runtimes {
		w.lists[r] = r.list(20, 240)
	}
	w.pool.complete()
	for _, ip := range w.pool.egressIPs {
		w.pool.holderOf(ip, nil)
	}
	w.serveFlows()
	return w
}

// egressIPsOf are those of a Service.
func (w *flowsWorld) egressIPsOf(service string) []netip.Addr {
	return addrs(w.lanIPs(100 + slices.Index(w.services, service)))
}

// startPods starts pods, as many of each Service on each node.
func (w *flowsWorld) startPods(count int) {
	w.Helper()
	for i := range count {
		p := &flowPod{name: fmt.Sprintf("flows-%d", i), r: w.runtimes[i%len(w.runtimes)], service: w.services[i/len(w.runtimes)%len(w.services)]}
		w.startPod(p, i >= len(w.runtimes)*len(w.services))
		w.pods = append(w.pods, p)
	}
}

// startPod starts a pod, when its node has a spare block for it. A node has none before the first pod of a Service.
func (w *flowsWorld) startPod(p *flowPod, spare bool) {
	w.Helper()
	if spare {
		w.hasSpare(p.r.on, w.egressIPsOf(p.service))
	}
	pod := p.r.create("shop", p.name, app(p.service))
	p.sandbox = p.r.start(w.lists[p.r], pod)
	p.r.sliced(p.sandbox)
	p.uid = uuid.MustParse(string(pod.UID))
	ports := w.block(p.sandbox)
	w.lives[p.uid] = life{p.name, w.egressIPsOf(p.service), ports}
}

// restart ends a pod, and starts another one of its name.
func (w *flowsWorld) restart() {
	w.Helper()
	p := w.pods[w.restarts*7%len(w.pods)] // on any node
	w.restarts++
	w.hears(p)
	p.Lock()
	defer p.Unlock()
	p.r.end(w.lists[p.r], p.sandbox)
	p.r.delete(p.pod)
	w.startPod(p, true)
}

// failover cuts the link of a node that holds egress IPs.
func (w *flowsWorld) failover() {
	w.Helper()
	w.handOver("has failed", func(m *member, cut bool) { w.must(w.SetLink(m.Host, !cut)) })
	w.pool.complete()
}

// drainHolder drains a node that holds egress IPs.
func (w *flowsWorld) drainHolder() {
	w.Helper()
	w.handOver("was drained", w.pool.drain)
}

// handOver has a node lose the egress IPs that it holds, until flows come from these addresses by other nodes.
func (w *flowsWorld) handOver(what string, lose func(holder *member, now bool)) {
	w.Helper()
	w.pool.complete()
	holder, held := w.holderAndHeld()
	lose(holder, true)
	for _, ip := range held {
		w.pool.holderOf(ip, holder)
	}
	w.comesAs(held)
	lose(holder, false)
	w.Logf("%s %s, which had %v", holder.Name, what, held)
}

// holderAndHeld is the node that has the next one of the egress IPs, and all that it has.
func (w *flowsWorld) holderAndHeld() (holder *member, held []string) {
	w.Helper()
	holder = w.pool.holderOf(w.pool.egressIPs[w.moves%len(w.pool.egressIPs)], nil)
	w.moves++
	for _, ip := range w.pool.egressIPs {
		if w.pool.has(holder, ip) {
			held = append(held, ip)
		}
	}
	return holder, held
}

// send has the pods send until stop is called.
func (w *flowsWorld) send() (stop func()) {
	ctx, cancel := context.WithCancel(w.Context())
	var next atomic.Int64
	var running sync.WaitGroup
	for range senders {
		running.Go(func() {
			for ctx.Err() == nil {
				n := int(next.Add(1))
				if p := w.pods[n%len(w.pods)]; p.TryLock() {
					w.sendRow(ctx, p)
					p.Unlock()
				}
			}
		})
	}
	stop = func() { cancel(); running.Wait() }
	w.Cleanup(stop)
	return stop
}

// sendRow has a pod send one flow after the other, each to the next server, until one is not answered.
func (w *flowsWorld) sendRow(ctx context.Context, p *flowPod) {
	err := p.Do(func() error {
		for n := range row {
			if err := sendFlow(ctx, w.far.servers[n%len(w.far.servers)], p.uid); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		w.failed.Add(1)
	}
}

// server is where the far side hears flows.
type server struct {
	network string
	at      netip.AddrPort
}

// sendFlow opens a connection, or sends a datagram, and waits until the far side has heard who it is.
func sendFlow(ctx context.Context, to server, uid uuid.UUID) error {
	dialer := net.Dialer{Timeout: flowPatience, KeepAlive: -1}
	conn, err := dialer.DialContext(ctx, to.network, to.at.String())
	if err != nil {
		return err
	}
	defer conn.Close()
	if tcp, is := conn.(*net.TCPConn); is {
		_ = tcp.SetLinger(0) // the port is free at once
	}
	_ = conn.SetDeadline(time.Now().Add(flowPatience))
	if _, err := conn.Write(uid[:]); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}

// heardFlow is what the far side notes of one. There are a million.
type heardFlow struct {
	at   int64 // nanoseconds
	from [16]byte
	uid  uuid.UUID
	port uint16
	udp  bool
}

func (f heardFlow) address() netip.Addr { return netip.AddrFrom16(f.from).Unmap() }
func (f heardFlow) time() time.Time     { return time.Unix(0, f.at) }

func (f heardFlow) protocol() string {
	if f.udp {
		return "udp"
	}
	return "tcp"
}

// farSide hears flows.
type farSide struct {
	servers []server

	mu    sync.Mutex
	flows []heardFlow
	// pods counts them by UID.
	pods map[uuid.UUID]int
}

// note notes a flow that is heard now.
func (s *farSide) note(from net.Addr, payload []byte) {
	at, f := netip.MustParseAddrPort(from.String()), heardFlow{uid: uuid.UUID(payload)}
	f.from, f.port = at.Addr().As16(), at.Port()
	_, f.udp = from.(*net.UDPAddr)
	s.mu.Lock()
	defer s.mu.Unlock()
	f.at = time.Now().UnixNano()
	s.flows = append(s.flows, f)
	s.pods[f.uid]++
}

// count is how many flows were heard.
func (s *farSide) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.flows)
}

// heard waits until the far side has heard so many flows.
func (w *flowsWorld) heard(count int) {
	w.Helper()
	last, lately := 0, time.Now()
	for {
		now := w.far.count()
		if now >= count {
			return
		}
		if now > last {
			last, lately = now, time.Now()
		}
		if time.Since(lately) > soon {
			w.Fatalf("the far side has heard %d flows, want %d, and nothing comes any more", now, count)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// hears waits until the far side has heard a pod.
func (w *flowsWorld) hears(p *flowPod) {
	w.Helper()
	w.eventually(func() error {
		w.far.mu.Lock()
		defer w.far.mu.Unlock()
		if w.far.pods[p.uid] == 0 {
			return fmt.Errorf("nothing is heard from %s (%s)", p.name, p.uid)
		}
		return nil
	})
}

// comesAs waits until the far side hears flows, from now on, from each of these addresses.
func (w *flowsWorld) comesAs(ips []string) {
	w.Helper()
	seen := w.far.count()
	missing := addrs(ips)
	w.eventually(func() error {
		w.far.mu.Lock()
		later := w.far.flows[seen:]
		seen = len(w.far.flows)
		w.far.mu.Unlock()
		for _, f := range later {
			missing = slices.DeleteFunc(missing, func(ip netip.Addr) bool { return ip == f.address() })
		}
		if len(missing) > 0 {
			return fmt.Errorf("nothing is heard from %v", missing)
		}
		return nil
	})
}

// serveFlows has the host outside hear flows, at ports of TCP and of UDP of each IP family.
func (w *flowsWorld) serveFlows() {
	w.Helper()
	for range serverPorts {
		for _, to := range at(w.Outside(), 0) {
			l, err := w.Outside().Listen(w.Context(), network("tcp", to), to.String())
			w.must(err)
			go w.far.serveTCP(l)
			w.far.servers = append(w.far.servers, server{network("tcp", to), netip.MustParseAddrPort(l.Addr().String())})
		}
	}
	for _, to := range at(w.Outside(), 0) {
		var conn net.PacketConn
		w.must(w.Outside().Do(func() (err error) {
			conn, err = net.ListenPacket(network("udp", to), to.String())
			return err
		}))
		w.Cleanup(func() { _ = conn.Close() })
		go w.far.serveUDP(conn)
		w.far.servers = append(w.far.servers, server{network("udp", to), netip.MustParseAddrPort(conn.LocalAddr().String())})
	}
}

func (s *farSide) serveTCP(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.SetDeadline(time.Now().Add(10 * time.Second)) // a pod may be cut off
			var uid uuid.UUID
			if _, err := io.ReadFull(conn, uid[:]); err != nil {
				return
			}
			s.note(conn.RemoteAddr(), uid[:])
			_, _ = conn.Write([]byte{1})
			_, _ = conn.Read(uid[:]) // until the pod has ended it
		}()
	}
}

func (s *farSide) serveUDP(conn net.PacketConn) {
	buffer := make([]byte, 100)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		if n == len(uuid.UUID{}) {
			s.note(from, buffer[:n])
			_, _ = conn.WriteTo([]byte{1}, from)
		}
	}
}

// journals are the folders of all nodes' journals.
func (w *flowsWorld) journals() (folders []string) {
	for _, m := range w.members {
		folders = append(folders, m.Socket()+".journal")
	}
	return folders
}
