package iptables

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/openshift/origin-node/pkg/kernel"
)

// rule is one that this package writes, read back.
type rule struct {
	// source and destination are matched unless invalid; except means every destination
	// but that one.
	source, destination netip.Prefix
	except              bool
	// protocol is kernel.All where the rule names none.
	protocol kernel.Protocol
	// What becomes of the packet: it goes to chain, or leaves from egressIP, or, with
	// neither, returns.
	chain    string
	egressIP netip.Addr
}

// parseRule reads a rule as iptables-save prints it after "-A CHAIN ". ok is false for one
// that this package does not write.
func parseRule(text string) (r rule, ok bool) {
	w := words{left: strings.Fields(text)}
	r.source = w.prefix("-s")
	r.except = w.take("!")
	r.destination = w.prefix("-d")
	r.protocol = w.protocol()
	switch {
	case w.take("-g"):
		r.chain = w.next()
	case w.take("-j", "SNAT", "--to-source"):
		r.egressIP = w.address()
		w.take("--random-fully")
	case !w.take("-j", "RETURN"):
		return rule{}, false
	}
	if w.failed || len(w.left) > 0 || r.except && !r.destination.IsValid() {
		return rule{}, false
	}
	return r, true
}

// words are those of a rule that were not read yet.
type words struct {
	left []string
	// failed: they are not what was expected.
	failed bool
}

// take takes expected if that comes next, and tells whether it did.
func (w *words) take(expected ...string) bool {
	if len(w.left) < len(expected) || !slices.Equal(w.left[:len(expected)], expected) {
		return false
	}
	w.left = w.left[len(expected):]
	return true
}

func (w *words) next() string {
	if len(w.left) == 0 {
		w.failed = true
		return ""
	}
	word := w.left[0]
	w.left = w.left[1:]
	return word
}

func (w *words) prefix(option string) netip.Prefix {
	if !w.take(option) {
		return netip.Prefix{}
	}
	prefix, err := netip.ParsePrefix(w.next())
	w.failed = w.failed || err != nil
	return prefix
}

func (w *words) address() netip.Addr {
	ip, err := netip.ParseAddr(w.next())
	w.failed = w.failed || err != nil
	return ip
}

func (w *words) protocol() kernel.Protocol {
	if !w.take("-p") {
		return kernel.All
	}
	protocol := kernel.Protocol(w.next())
	w.failed = w.failed || !slices.Contains([]kernel.Protocol{kernel.TCP, kernel.UDP, kernel.SCTP}, protocol)
	return protocol
}

func (r rule) matches(p Packet) bool {
	return (!r.source.IsValid() || r.source.Contains(p.Source)) &&
		(!r.destination.IsValid() || r.destination.Contains(p.Destination) != r.except) &&
		(r.protocol == kernel.All || r.protocol == p.Protocol)
}

// binding returns the binding that r stands for, without the Service, which the kernel
// does not know. ok is false if it stands for none.
func (r rule) binding() (b kernel.Binding, ok bool) {
	ok = r.egressIP.IsValid() && r.source.IsSingleIP() && (r.except || !r.destination.IsValid())
	return kernel.Binding{Pod: r.source.Addr(), Protocol: r.protocol, EgressIP: r.egressIP}, ok
}
