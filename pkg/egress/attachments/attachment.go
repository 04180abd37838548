package attachments

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Pod names one pod, and no other that has its name later.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// String returns namespace/name.
func (p Pod) String() string { return p.Namespace + "/" + p.Name }

// Attachment is a pod's network interface with its addresses.
type Attachment struct {
	// ContainerID is that of the pod's sandbox.
	ContainerID string `json:"containerID"`
	IfName      string `json:"ifName"`
	// Netns is the path of the pod's network namespace; empty if the node cannot see it.
	Netns string `json:"netns,omitempty"`
	// Pod has the UID that the kubelet says.
	Pod Pod          `json:"pod"`
	IPs []netip.Addr `json:"ips"`
	// Interfaces are the names of those on the node that lead to the pod, and to no other. Earlier versions wrote its bridge, too.
	Interfaces []string `json:"interfaces,omitempty"`
	// Object is the UID of the pod's object in the API, another than the kubelet's for a static pod; empty if unknown.
	Object string `json:"object,omitempty"`
	// Static: the pod is a static one, so that nothing follows from the UID that the kubelet says.
	Static bool `json:"static,omitempty"`
	// Labels are the pod's, as of when they were last known; nil if they never were.
	Labels map[string]string `json:"labels,omitempty"`
	// Ended: the pod's phase is terminal.
	Ended bool `json:"ended,omitempty"`
	// Since is when the node was told of it.
	Since time.Time `json:"since"`
	// Released is when the pod gave its addresses back; zero as long as it has them. EndpointSlices may name
	// it for a while.
	Released time.Time `json:"released,omitzero"`
	// Left is when that was, if no node process ran then: the plugin has noted it. Zero otherwise.
	Left time.Time `json:"left,omitzero"`
	// Ports are the pod's source ports of its egress IPs; nil as long as they are not decided, or if this node does not see to them.
	// BlockSize is the number of ports of the block that the pod was to get.
	Ports     []Ports `json:"ports,omitempty"`
	BlockSize int     `json:"blockSize,omitempty"`
	// Widened: the pod can use the ports of its second block inside, too.
	Widened bool `json:"widened,omitempty"`
	// Recorded: it has been written down, or that was tried, that the pod no longer has these ports.
	Recorded bool `json:"recorded,omitempty"`
	// Cleared: since it was released, the kernel holds nothing for it any more.
	Cleared bool `json:"cleared,omitempty"`
}

// Ports are source ports that a pod has of an egress IP, with both ends.
type Ports struct {
	// IP is the pod's address of the IP family of the egress IP.
	IP       netip.Addr `json:"ip"`
	EgressIP netip.Addr `json:"egressIP"`
	// Service is the one that the egress IP is of, namespace/name.
	Service string `json:"service"`
	First   uint16 `json:"first"`
	Last    uint16 `json:"last"`
	// Shared: other pods have them, too.
	Shared bool `json:"shared,omitempty"`
	// Second: the pod has them besides others of the egress IP, which are its own, too.
	Second bool      `json:"second,omitempty"`
	Since  time.Time `json:"since"`
}

// Block returns the source ports that a pod has alone, and of which egress IPs: the same of all of them. There are none if it shares. What
// it has besides is in SecondBlock.
func (a Attachment) Block() (first, last uint16, of []netip.Addr) { return a.block(false) }

// SecondBlock returns what Block does, for the ports that a pod has besides.
func (a Attachment) SecondBlock() (first, last uint16, of []netip.Addr) { return a.block(true) }

func (a Attachment) block(second bool) (first, last uint16, of []netip.Addr) {
	for _, p := range a.Ports {
		if !p.Shared && p.Second == second {
			first, last, of = p.First, p.Last, append(of, p.EgressIP)
		}
	}
	return first, last, of
}

const longestID = 200 // a file's name has at most 255 bytes

// Validate returns what is wrong with an attachment.
func (a Attachment) Validate() error {
	if err := ValidateID(a.ContainerID); err != nil {
		return err
	}
	if a.Pod.Namespace == "" || a.Pod.Name == "" || a.Pod.UID == "" {
		return errors.New("the pod has no namespace, no name or no UID")
	}
	for _, ip := range a.IPs {
		if !ip.IsValid() || ip.Is4In6() || ip.Zone() != "" {
			return fmt.Errorf("%q is not the address of a pod", ip)
		}
	}
	if len(a.IPs) == 0 {
		return errors.New("there is no address")
	}
	return nil
}

// ValidateID returns what is wrong with a container ID, by the CNI specification. It becomes the name of a file.
func ValidateID(id string) error {
	for i, r := range []byte(id) {
		alphanumeric := r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
		if !alphanumeric && (i == 0 || r != '_' && r != '.' && r != '-') {
			return fmt.Errorf("%q is not a container ID", id)
		}
	}
	if id == "" || len(id) > longestID {
		return fmt.Errorf("a container ID has 1 to %d bytes, not %d", longestID, len(id))
	}
	return nil
}

// ByAddress returns whose each address is. Of several attachments of an address, one that has not been released
// counts before one that has, and then the latest: the runtime may not have told of the end of another.
func ByAddress(attachments []Attachment) map[netip.Addr]Attachment {
	sorted := slices.SortedFunc(slices.Values(attachments), func(a, b Attachment) int {
		released := func(a Attachment) int {
			if a.Released.IsZero() {
				return 1
			}
			return 0
		}
		return cmp.Or(released(a)-released(b), a.Since.Compare(b.Since), cmp.Compare(a.ContainerID, b.ContainerID))
	})
	owners := map[netip.Addr]Attachment{}
	for _, a := range sorted {
		for _, ip := range a.IPs {
			owners[ip] = a
		}
	}
	return owners
}

// Gone returns the IDs of those attachments that no sandbox of valid has and that are older than a time: a sandbox
// that is being made may not be among valid yet. Released ones are not among them.
func Gone(attachments []Attachment, valid []string, before time.Time) (ids []string) {
	known := make(map[string]bool, len(valid))
	for _, id := range valid {
		known[id] = true
	}
	for _, a := range attachments {
		if !known[a.ContainerID] && a.Released.IsZero() && a.Since.Before(before) {
			ids = append(ids, a.ContainerID)
		}
	}
	slices.Sort(ids)
	return ids
}
