package pool

import (
	"encoding/json"
	"fmt"
	"log"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/hashicorp/memberlist"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/wake"
)

const (
	// Members probe one another every probeInterval, and wait so long for an answer. A member that gave none, also to others,
	// is dead if it does not contradict for suspicion more intervals: 240 ms in all with up to ten members,
	// 294 with twenty (memberlist has a logarithm of them as a factor), and another 80 for the question whether it answers. 100 ms, 50 and 2 would need 60 ms more, and leave too little of the 450 ms that a failover may take
	// (hack/bench). A process that is starved for longer is found dead by mistake; it loses nothing then, as its kernel answers.
	probeInterval = 60 * time.Millisecond
	probeTimeout  = 40 * time.Millisecond
	suspicion     = 3
	// JoinAgain is how often a node of the pool is spoken to that is not a member.
	JoinAgain = 500 * time.Millisecond
	// joinPause is how long at least lies between two times in which nodes are spoken to that have been heard of.
	joinPause = 10 * time.Millisecond
	// ExchangeAgain is how often states are exchanged although nothing has changed.
	ExchangeAgain = 5 * time.Second
	// ConnectionTime bounds what members send by TCP: a lost first packet is sent anew by SendAgain long before the
	// kernel would.
	ConnectionTime = 400 * time.Millisecond
	// SendAgain is when a state is sent again that could not be.
	SendAgain = 50 * time.Millisecond
	// RemindAgain is how often a node of the pool is reminded of this one's addresses that is not found alive. When a cut-off holder
	// comes back, both it and the new one have the address until it hears of that.
	RemindAgain = 50 * time.Millisecond
)

// members speaks with the other members of the pool: it finds out who is alive, and exchanges states.
type members struct {
	name string
	port uint16
	// networks are where the pool's addresses lie.
	networks []netip.Prefix
	logger   klog.Logger
	tell     func(Event)
	// list finds out who is alive, transport carries what it says, and states.
	list      *memberlist.Memberlist
	transport *transport
	guard     *guard
	// created is closed when there is a list.
	created chan struct{}

	// joined wakes join: there is a member whose state is not known, or a node has spoken that is no member.
	joined wake.Signal
	// missed wakes remind: a node of the pool may be no member.
	missed wake.Signal
	done   chan struct{}
	// running has the goroutines that close waits for.
	running sync.WaitGroup

	mu sync.Mutex
	// closed: no more goroutines are started.
	closed bool
	// nodes are those of the cluster, at says which of them has an address, pool is which of them to speak to.
	nodes map[string]netip.Addr
	at    map[netip.Addr]string
	pool  []string
	// state is what others are told, reminders what those are that are not alive.
	state     []byte
	reminders [][]byte
	peers     map[string]*peerNode
	// exchanging are those with which states are being exchanged.
	exchanging map[string]bool
}

// peerNode is another member.
type peerNode struct {
	name    string
	address netip.Addr
	// exchanged: states have been exchanged since it was found alive.
	exchanged bool
	// wake has this member's state sent to it, gone is closed when it is not alive any more.
	wake wake.Signal
	gone chan struct{}
}

// newMembers begins to listen at an address of this node.
func newMembers(logger klog.Logger, config Config, address netip.Addr, tell func(Event)) (*members, error) {
	m := &members{
		name: config.NodeName, port: config.Port, networks: config.Networks, logger: logger, tell: tell,
		created: make(chan struct{}), joined: wake.New(), missed: wake.New(), done: make(chan struct{}), peers: map[string]*peerNode{}, exchanging: map[string]bool{},
	}
	c := memberlist.DefaultLANConfig()
	c.Name, c.AdvertiseAddr, c.AdvertisePort, c.BindPort = m.name, address.String(), int(config.Port), int(config.Port)
	c.UDPBufferSize = datagram - overhead - 1
	c.ProbeInterval, c.ProbeTimeout = probeInterval, probeTimeout
	c.SuspicionMult, c.SuspicionMaxTimeoutMult = suspicion, 1
	c.GossipInterval, c.PushPullInterval, c.TCPTimeout = 20*time.Millisecond, ExchangeAgain, ConnectionTime
	c.DisableTcpPings = true    // a process that answers by TCP alone is of no use
	c.EnableCompression = false // messages are small, and many
	c.DeadNodeReclaimTime = time.Second
	c.Events, c.Alive = delegate{m}, delegate{m}
	c.LogOutput, c.Logger = nil, logOf(logger)
	m.guard = newGuard(address, config.Port)
	m.guard.nodeAt, m.guard.addressOf = m.nodeAt, m.addressOf
	transport, err := listen(logger, config.Keys, m.guard, transportEvents{state: m.ownState, heard: m.heard, stranger: m.stranger})
	if err != nil {
		return nil, err
	}
	m.transport = transport
	c.Transport = transport
	list, err := memberlist.Create(c)
	if err != nil {
		_ = transport.Shutdown() // what went wrong before says why
		return nil, fmt.Errorf("take part among the nodes of the pool: %w", err)
	}
	m.list = list
	close(m.created)
	m.running.Go(m.join)
	m.running.Go(m.remind)
	return m, nil
}

// close ends it. The other nodes are not told: a restart moves nothing. To this one they are not alive any more.
func (m *members) close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	close(m.done)
	_ = m.list.Shutdown() // it logs what fails, and returns nil
	m.running.Wait()
	m.mu.Lock()
	peers := slices.Collect(maps.Keys(m.peers))
	m.mu.Unlock()
	for _, name := range peers {
		m.tell(Liveness{name, false})
	}
}

// setNodes says which nodes the cluster has, at which addresses, each at one of its own, and which are in the pool. A node that has
// just left the pool is a member until it has handed its addresses over.
// One goroutine calls it. The map must not be changed.
func (m *members) setNodes(nodes map[string]netip.Addr, pool []string) {
	at := make(map[netip.Addr]string, len(nodes))
	for name, address := range nodes {
		at[address] = name
	}
	m.mu.Lock()
	m.nodes, m.at, m.pool = nodes, at, pool
	m.mu.Unlock()
	m.missed.Send()
	m.guard.forget(nodes)
	m.transport.forget(at)
}

// nodeAt returns which node of the cluster has an address.
func (m *members) nodeAt(at netip.Addr) (name string, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name, known = m.at[at]
	return name, known
}

// addressOf returns where a node is.
func (m *members) addressOf(name string) (at netip.Addr, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, known = m.nodes[name]
	return at, known
}

// ownState returns what the others are told.
func (m *members) ownState() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

// stranger has a node spoken with that runs a process which is not known.
func (m *members) stranger(at netip.Addr) {
	m.mu.Lock()
	if peer := m.peers[m.at[at]]; peer != nil {
		peer.exchanged = false
	}
	m.mu.Unlock()
	m.joined.Send()
}

// publish tells the others this member's state.
func (m *members) publish(s State) {
	var texts [][]byte
	for _, one := range append([]State{s}, s.Parts()...) {
		text, err := json.Marshal(one)
		if err != nil {
			m.logger.Error(err, "Cannot tell the other nodes of the pool this one's state. This is a fault of the program: please report it")
			return
		}
		texts = append(texts, text)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state, m.reminders = texts[0], texts[1:]
	for _, peer := range m.peers {
		peer.wake.Send()
	}
}

// send sends the state to another member whenever it is woken, the newest one, and until that succeeds or the member is
// gone.
func (m *members) send(peer *peerNode) {
	<-m.created
	for {
		select {
		case <-m.done:
			return
		case <-peer.gone:
			return
		case <-peer.wake:
		}
		m.mu.Lock()
		text := m.state
		m.mu.Unlock()
		if text == nil {
			continue
		}
		if len(text) < datagram-overhead {
			_ = m.transport.send(peer.address, stateText, text) // it is there before a connection is
		}
		if err := m.transport.sendState(peer.address); err != nil {
			m.logger.V(2).Info("Cannot tell another node of the pool this one's state; will retry", "node", peer.name, "err", err)
			time.AfterFunc(SendAgain, peer.wake.Send)
		}
	}
}

// join exchanges states with the nodes of the pool that are no members, and with the members whose states may have
// changed while they were not found alive, every so often. A node that does not answer keeps no other one waiting, nor itself
// when it comes back.
func (m *members) join() {
	for ticker := time.NewTicker(JoinAgain); ; {
		for name, address := range m.missing() {
			m.running.Go(func() { m.exchange(name, address) })
		}
		select {
		case <-m.done:
			ticker.Stop()
			return
		case <-ticker.C:
		case <-m.joined:
			wake.Sleep(m.done, joinPause)
		}
	}
}

// exchange exchanges states with a node.
func (m *members) exchange(name, address string) {
	m.mu.Lock()
	before := m.peers[name]
	m.mu.Unlock()
	_, err := m.list.Join([]string{address})
	if err != nil {
		m.logger.V(4).Info("A node of the pool does not answer", "node", name, "address", address, "err", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.exchanging, name)
	peer := m.peers[name]
	switch {
	case err != nil || peer == nil:
	case before == nil || peer == before:
		peer.exchanged = true
	default:
		m.joined.Send() // it was found dead, and alive again
	}
}

// remind tells the nodes of the pool that are no members what [Reminded] says, every so often while there are any.
func (m *members) remind() {
	for {
		reminders, absent := m.absent()
		for _, node := range absent {
			for _, text := range reminders {
				_ = m.transport.send(node, stateText, text) // a node that is away cannot be told
			}
		}
		var again <-chan time.Time
		if len(absent) > 0 {
			again = time.After(RemindAgain)
		}
		select {
		case <-m.done:
			return
		case <-m.missed:
		case <-again:
		}
	}
}

// absent are the nodes of the pool that are no members, and what to tell them.
func (m *members) absent() (reminders [][]byte, nodes []netip.Addr) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range m.pool {
		if address, known := m.nodes[name]; known && name != m.name && m.peers[name] == nil {
			nodes = append(nodes, address)
		}
	}
	return m.reminders, nodes
}

// missing are the addresses, with ports, of the nodes with which states are to be exchanged, by their names: none have been
// since they were found alive.
func (m *members) missing() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	missing := map[string]string{}
	for _, name := range m.pool {
		if address, known := m.nodes[name]; known && name != m.name && m.peers[name] == nil {
			missing[name] = netip.AddrPortFrom(address, m.port).String()
		}
	}
	for name, peer := range m.peers {
		if address, known := m.nodes[name]; known && !peer.exchanged {
			missing[name] = netip.AddrPortFrom(address, m.port).String()
		}
	}
	maps.DeleteFunc(missing, func(name, _ string) bool { return m.exchanging[name] })
	for name := range missing {
		m.exchanging[name] = true
	}
	return missing
}

// heard takes the state of the node at an address: whose it is, is not for the state to say.
func (m *members) heard(from netip.Addr, text []byte) {
	name, known := m.nodeAt(from)
	if !known || name == m.name {
		return
	}
	s, err := parseState(name, text, m.networks)
	if err != nil {
		m.logger.V(2).Info("Ignored what a member of the pool told", "node", name, "reason", err.Error())
		return
	}
	m.mu.Lock()
	member := m.peers[name] != nil
	m.mu.Unlock()
	if s.Part {
		m.tell(Reminded{s})
	} else {
		m.tell(Heard{s})
	}
	if !member {
		m.joined.Send()
	}
}

// delegate is what memberlist calls.
type delegate struct{ *members }

var (
	_ memberlist.EventDelegate = delegate{}
	_ memberlist.AliveDelegate = delegate{}
)

// NotifyAlive is part of [memberlist.AliveDelegate]. Only nodes of the cluster may be members, at their own addresses.
func (d delegate) NotifyAlive(node *memberlist.Node) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	address := kernel.AddrOf(node.Addr)
	if node.Name != d.name && (d.at[address] != node.Name || node.Port != d.port) {
		return fmt.Errorf("no node of the cluster is %q at %s, port %d", node.Name, address, node.Port)
	}
	return nil
}

// NotifyJoin is part of [memberlist.EventDelegate]. A member that was found dead although it lives says that it lives, and
// not its state, since that has not changed.
func (d delegate) NotifyJoin(node *memberlist.Node) {
	if node.Name == d.name {
		return
	}
	peer := &peerNode{name: node.Name, address: kernel.AddrOf(node.Addr), wake: wake.New(), gone: make(chan struct{})}
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return
	}
	d.peers[node.Name] = peer
	d.running.Go(func() { d.send(peer) }) // close waits for it: the lock is held since closed was false
	d.mu.Unlock()
	d.tell(Liveness{node.Name, true})
	d.joined.Send()
}

// NotifyLeave is part of [memberlist.EventDelegate]. After a shutdown a probe that was under way still ends: whoever takes part
// anew is told of this member by then.
func (d delegate) NotifyLeave(node *memberlist.Node) {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return
	}
	if peer := d.peers[node.Name]; peer != nil {
		close(peer.gone)
		delete(d.peers, node.Name)
	}
	d.mu.Unlock()
	d.missed.Send()
	d.tell(Liveness{node.Name, false})
}

// NotifyUpdate is part of [memberlist.EventDelegate].
func (delegate) NotifyUpdate(*memberlist.Node) {}

// logOf passes memberlist's log on, for those who look for a fault: its complaints about single packets are no news to an operator.
func logOf(logger klog.Logger) *log.Logger {
	return slog.NewLogLogger(logr.ToSlogHandler(klog.LoggerWithName(logger, "memberlist")), slog.LevelDebug) // V(4)
}
