package cmd

import (
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/kernel"
)

// whoHad is who has or had the port.
type whoHad struct {
	portblocks.Assignment
	// Until is zero as long as it lasts, or if it is not known. Seen is until when it is certain.
	Until time.Time `json:"until,omitzero"`
	Seen  time.Time `json:"seen,omitzero"`
	// Flows are those with the port, of ports that pods share.
	Flows []whoFlow `json:"flows,omitempty"`
}

// whoFlow is a tracked flow.
type whoFlow struct {
	Protocol    string         `json:"protocol"`
	Destination netip.AddrPort `json:"destination"`
}

// whoAnswer is the JSON and YAML document.
type whoAnswer struct {
	standing
	EgressIP netip.Addr `json:"egressIP"`
	Port     uint16     `json:"port"`
	Protocol string     `json:"protocol,omitempty"`
	At       time.Time  `json:"at"`
	// Shared: the port is one that pods share, and Assignments are candidates.
	Shared      bool     `json:"shared"`
	Missing     []string `json:"missing,omitempty"`
	Assignments []whoHad `json:"assignments"`

	// notes are warnings that are about no candidates.
	notes []string
}

func (o *whoOptions) newAnswer(s standing, at time.Time) whoAnswer {
	return whoAnswer{standing: s, EgressIP: o.asked.Addr(), Port: o.asked.Port(), Protocol: string(o.only), At: at.UTC(), Assignments: []whoHad{}}
}

// print prints what is known.
func (a whoAnswer) print(out io.Writer, output string) error {
	if output == asJSON || output == asYAML {
		return printDocument(out, a, output, false, true)
	}
	t := &table{out: out}
	if !a.Shared {
		return t.write(a.Assignments[0].lines()...)
	}
	candidates := "1 candidate"
	if n := len(a.Assignments); n > 1 {
		candidates = fmt.Sprintf("%d candidates", n)
	}
	if _, err := fmt.Fprintf(out, "no pod has this port alone: %s for %s at %s\n", candidates, netip.AddrPortFrom(a.EgressIP, a.Port), a.At.Format(time.RFC3339)); err != nil {
		return err
	}
	rows := [][]string{{"POD", "UID", "POD IP", "SERVICE", "NODE", "SINCE", "UNTIL", "FLOW TO"}}
	for _, h := range a.Assignments {
		rows = append(rows, []string{h.pod(), orNone(h.Pod.UID), h.Pod.IP.String(), orNone(h.Service), orNone(h.Node), moment(h.Since), h.end(), h.flows()})
	}
	return t.write(rows...)
}

// lines are those of the only pod.
func (h whoHad) lines() [][]string {
	lines := [][]string{
		{"Pod:", h.pod()}, {"UID:", orNone(h.Pod.UID)}, {"Pod IP:", h.Pod.IP.String()}, {"Service:", orNone(h.Service)}, {"Node:", orNone(h.Node)},
		{"Egress IP:", h.EgressIP.String()}, {"Ports:", h.Ports.String()}, {"Since:", moment(h.Since)}, {"Until:", h.end()},
	}
	if h.Until.IsZero() || !h.Seen.Equal(h.Until) {
		lines = append(lines, []string{"Seen:", moment(h.Seen)})
	}
	return lines
}

func (h whoHad) pod() string {
	if h.Pod.Name == "" {
		return orNone("")
	}
	return h.Pod.Namespace + "/" + h.Pod.Name
}

// end is until when the pod had the ports.
func (h whoHad) end() string {
	if h.Until.IsZero() {
		return "<open>"
	}
	return moment(h.Until)
}

func (h whoHad) flows() string {
	var texts []string
	for _, f := range h.Flows {
		texts = append(texts, f.Protocol+" "+f.Destination.String())
	}
	return orNone(strings.Join(texts, ", "))
}

func moment(at time.Time) string {
	if at.IsZero() {
		return "<unknown>"
	}
	return at.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// portsOf says which source ports a pod has of an egress IP, as far as a node knows; nil if none.
func portsOf(s status.Snapshot, pod, egressIP netip.Addr) (ports []listedPorts) {
	for _, a := range s.PortBlocks {
		if a.Pod.IP == pod && a.EgressIP == egressIP {
			ports = append(ports, listedPorts{a.Ports, a.Shared})
		}
	}
	for _, b := range s.PortMap {
		if of := (listedPorts{Ports: b.Ports}); b.Pod == pod && b.EgressIP == egressIP && !slices.Contains(ports, of) {
			ports = append(ports, of)
		}
	}
	return ports
}

// listedPorts are source ports of a pod.
type listedPorts struct {
	kernel.Ports
	Shared bool `json:"shared,omitempty"`
}

func joinListed(ports []listedPorts) string {
	var texts []string
	for _, p := range ports {
		text := p.String()
		if p.Shared {
			text = "shared"
		}
		texts = append(texts, text)
	}
	return orNone(strings.Join(texts, ","))
}
