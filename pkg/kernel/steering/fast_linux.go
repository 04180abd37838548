package steering

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/fastpath"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// fast is what the fast path is told of one IP family. Without one it does nothing.
type fast struct {
	*fastpath.Path
	uplink fastpath.Uplink
	next   fastpath.Change
}

// look returns how this node reaches the others. If that is not known nothing takes the fast path.
func (f *fast) look(c Config) fastpath.Uplink {
	if f.Path == nil {
		return fastpath.Uplink{}
	}
	s, err := c.uplinkState()
	if err != nil || s.uplink.index == 0 {
		return fastpath.Uplink{}
	}
	if c.Transport == Direct {
		return fastpath.Uplink{Index: s.uplink.index, MTU: s.uplink.mtu}
	}
	device, err := findDevice()
	if device == nil || err != nil { // somebody has deleted it, which the next look finds
		return fastpath.Uplink{}
	}
	return fastpath.Uplink{Index: s.uplink.index, MTU: device.Attrs().MTU, Tunnel: device.Attrs().Index, Self: c.NodeIP, Port: c.Port, VNI: vni}
}

// limit takes from the fast path what will not be as it is, before the table is written. edit is what changes of the content; a whole
// content if it is nil.
func (w *Writer) limit(edit *nft.Change, assigned numbers, surroundings bool) {
	if w.fast.Path == nil {
		return
	}
	change := fastpath.Change{Whole: edit == nil, Ways: map[fastpath.Pod]int{}}
	for ways, sources := range sourcesByWays {
		touched := []nft.Elements{w.content.sets[sources]} // what has a way is among these
		if edit != nil {
			touched = []nft.Elements{edit.Added[ways], edit.Removed[ways], edit.Added[sources], edit.Removed[sources]}
		}
		for _, elements := range touched {
			for key := range elements {
				w.leadOne(&change, key, ways, sources)
			}
		}
	}
	if edit == nil || surroundings || len(edit.Added[egressIPsSet])+len(edit.Removed[egressIPsSet]) > 0 {
		s := w.content.surroundings(w.config, assigned, w.fast.uplink)
		change.Surroundings = &s
	}
	w.fast.next = change
	w.fast.Limit(w.config.Family, change)
}

// extend lets into the fast path what limit was told of, when all of it has been written, but for nodes for which there are no numbers.
func (w *Writer) extend(err error) {
	if w.fast.Path != nil && isWritten(err) {
		w.fast.Extend(w.config.Family, w.fast.next)
	}
	w.fast.next = fastpath.Change{}
}

// isWritten tells whether all is in the kernel that can be: some nodes may have got no number.
func isWritten(err error) bool {
	var tooMany tooManyError
	return err == nil || errors.As(err, &tooMany)
}

// leadOne says where the packets of a pod go that are established: to a node, or out if that takes the fast path, too.
func (w *Writer) leadOne(change *fastpath.Change, key nft.Key, ways, sources string) {
	pod := fastpath.Pod{Address: key.Pod, Protocol: cmp.Or(key.Protocol, kernel.All)}
	id, leads := w.content.sets[ways][key]
	_, bound := w.content.sets[sources][key]
	switch {
	case leads && id.As4()[1] <= maxNumber:
		change.Ways[pod] = int(id.As4()[1])
	case bound && !leads && w.fast.All():
		change.Ways[pod] = fastpath.Here
	case leads || bound:
		change.Ways[pod] = fastpath.Nowhere
	default:
		change.Gone = append(change.Gone, pod)
	}
}

// surroundings are what packets meet that take the fast path. A pod that asks its own egress IP means the Service, and what is for others'
// is theirs.
func (c *content) surroundings(config Config, assigned numbers, uplink fastpath.Uplink) fastpath.Surroundings {
	s := fastpath.Surroundings{
		Uplink: uplink, Holders: map[int]fastpath.Holder{}, Exclusions: map[netip.Prefix]bool{}, EgressIPs: map[netip.Addr]bool{}, Elsewhere: map[netip.Addr]bool{}, Senders: c.steering.Senders,
	}
	for node, number := range assigned {
		s.Holders[number] = fastpath.Holder{Node: node, Hardware: HardwareAddrOf(node), Own: HardwareAddrOf(config.NodeIP)}
	}
	for _, prefix := range nft.Prefixes(c.sets[exclusionsSet]) {
		s.Exclusions[prefix] = true
	}
	for egressIP := range c.uses {
		if _, leads := c.leads[egressIP]; leads {
			s.Elsewhere[egressIP] = true
		} else {
			s.EgressIPs[egressIP] = true
		}
	}
	if config.Transport == VXLAN {
		s.Senders = map[netip.Addr]kernel.HardwareAddr{}
		for _, node := range c.steering.Nodes {
			s.Senders[node] = HardwareAddrOf(node)
		}
	}
	return s
}

// Sysctls that a fast path needs: conntrack sees a part of a connection's packets, so it must neither take the others for invalid nor
// forget, minutes after its last packet, a connection of which it does not know what was answered. RFC 5382, REQ-5, has the time.
const (
	liberalPath  = "net/netfilter/nf_conntrack_tcp_be_liberal"
	unackedPath  = "net/netfilter/nf_conntrack_tcp_timeout_unacknowledged"
	leastUnacked = 2*60*60 + 4*60 // seconds
)

// PutBackFast makes what a fast path has changed of this node's settings what it was; the record goes with the next write. Kube-proxy asks for one
// of them when it starts: it has no rule against invalid packets if the kernel is liberal.
func PutBackFast(ctx context.Context) error {
	return everywhere(func(family kernel.Family) error {
		w := nft.NewWriter(nft.Spec{Name: Table, Family: family, Sets: sets, Counters: counters})
		defer w.Close()
		held, _, err := w.Inspect(ctx)
		recordOf(held).putBackFast(ctx)
		return err
	})
}

// putBackFast makes those of a fast path what they were, and forgets them.
func (s settings) putBackFast(ctx context.Context) {
	for _, path := range []string{liberalPath, unackedPath} {
		if changed, known := s[path]; known {
			putBack(ctx, settings{path: changed})
			delete(s, path)
		}
	}
}

// fastSettings are those of the network namespace that a fast path needs.
func fastSettings() (wanted []sysctl, err error) {
	text, err := readSysctl(unackedPath)
	if err != nil {
		return nil, fmt.Errorf("read how long conntrack waits for an answer: %w", err)
	}
	var seconds int
	if _, err := fmt.Sscan(text, &seconds); err != nil || seconds < leastUnacked {
		wanted = append(wanted, sysctl{unackedPath, fmt.Sprint(leastUnacked)})
	}
	return append(wanted, sysctl{liberalPath, "1"}), nil
}
