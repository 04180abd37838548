package cni

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/openshift/origin-node/pkg/egress/attachments"
)

const (
	attachmentsPath = "/v1/attachments"
	localPortsPath  = "/local-ports" // behind an attachment's
	gcPath          = "/v1/gc"
	readyPath       = "/v1/ready"

	// longestBody is that of a request, in bytes: enough for the IDs of some thousand sandboxes.
	longestBody = 1 << 20
)

// Plugin is the plugin's name, and its file's.
const Plugin = "origin-node-cni"

// Versions are those of the CNI specification that it knows.
var Versions = []string{"0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"}

// Interface is the pod's interface that bindings are for. Others of a pod, such as Multus adds, are no concern of the node.
const Interface = "eth0"

// Request says that a pod has addresses and is about to run.
type Request struct {
	ContainerID string          `json:"containerID"`
	IfName      string          `json:"ifName"`
	Netns       string          `json:"netns"`
	Pod         attachments.Pod `json:"pod"`
	IPs         []netip.Addr    `json:"ips"`
	// Interfaces are the names of those on the node that the network plugin has made or used for the pod.
	Interfaces []string `json:"interfaces,omitempty"`
	// DeadlineMS is how long the plugin waits for the answer, in milliseconds.
	DeadlineMS int64 `json:"deadlineMS"`
}

// attachment is what r tells.
func (r Request) attachment(now time.Time) attachments.Attachment {
	return attachments.Attachment{ContainerID: r.ContainerID, IfName: r.IfName, Netns: r.Netns, Pod: r.Pod, IPs: r.IPs, Interfaces: r.Interfaces, Since: now}
}

func (r Request) validate() error {
	if r.IfName != Interface {
		return fmt.Errorf("the interface is %q; expected %s", r.IfName, Interface)
	}
	if r.DeadlineMS <= 0 {
		return fmt.Errorf("deadlineMS is %d; expected a number above 0", r.DeadlineMS)
	}
	return r.attachment(time.Time{}).Validate()
}

// The decisions.
const (
	Bound   = "bound"
	Unbound = "unbound"
)

// Decision is what becomes of a pod's packets.
type Decision struct {
	// Decision is Bound or Unbound.
	Decision string    `json:"decision"`
	Bindings []Binding `json:"bindings,omitempty"`
}

// Binding says that packets of an address leave from an egress IP.
type Binding struct {
	IP       netip.Addr `json:"ip"`
	Protocol string     `json:"protocol"`
	EgressIP netip.Addr `json:"egressIP"`
	// Service is namespace/name.
	Service string `json:"service"`
	// Via is the node that has the egress IP; empty if the packets get it here. That node learns of the pod from an
	// EndpointSlice, which comes after ADD, so that ADD cannot wait for it: it drops the pod's packets until then.
	Via string `json:"via,omitempty"`
	// Ports are the pod's source ports of the egress IP; nil where no pod has any of its own. Those that it alone has are the same in all
	// bindings that have some.
	Ports *Ports `json:"ports,omitempty"`
}

// Ports are source ports in a row, both ends included.
type Ports struct {
	First uint16 `json:"first"`
	Last  uint16 `json:"last"`
	// Shared: other pods have them, too.
	Shared bool `json:"shared,omitempty"`
}

// LocalPorts returns the source ports that are to be net.ipv4.ip_local_port_range in the pod's network namespace before the pod runs: its
// own, or else the shared ones, which its packets then keep outside; nil if any.
func (d Decision) LocalPorts() (ports *Ports) {
	for _, b := range d.Bindings {
		if b.Ports != nil && (ports == nil || ports.Shared) {
			ports = b.Ports
		}
	}
	return ports
}

// Decide returns the Decision for these bindings.
func Decide(bindings []Binding) Decision {
	if len(bindings) == 0 {
		return Decision{Decision: Unbound}
	}
	return Decision{Decision: Bound, Bindings: bindings}
}

// Reason tells why a request failed.
type Reason string

// The reasons.
const (
	// WaitingFor: the node does not know all objects yet. Missing has their kinds.
	WaitingFor Reason = "WaitingFor"
	// Late: the node has had too little time, or ends, and nothing has failed.
	Late Reason = "Late"
	// NotWritten: the kernel does not hold the plan.
	NotWritten Reason = "NotWritten"
	// NotNoted: the plugin could not be told, for when no node process answers, that the pod's namespace has claims.
	NotNoted Reason = "NotNoted"
	// PodUnknown: the pod's labels are not known, and Services of its namespace have claims.
	PodUnknown Reason = "PodUnknown"
	// NotAttached: there is no such attachment.
	NotAttached Reason = "NotAttached"
	// Invalid: the request cannot be understood.
	Invalid Reason = "Invalid"
	// Forbidden: only root may ask.
	Forbidden Reason = "Forbidden"
)

// Failure says why a request failed. It is an error.
type Failure struct {
	Reason  Reason   `json:"reason"`
	Missing []string `json:"missing,omitempty"`
	Message string   `json:"message,omitempty"`
}

func (f *Failure) Error() string {
	text := string(f.Reason)
	if len(f.Missing) > 0 {
		text += " " + strings.Join(f.Missing, ", ")
	}
	if f.Message != "" {
		text += ": " + f.Message
	}
	return text
}

// sandboxes are those that a runtime says that there are.
type sandboxes struct {
	// Valid is nil if the runtime does not say it.
	Valid []string `json:"valid"`
}
