package portblocks

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/origin-node/pkg/failure"
	"github.com/openshift/origin-node/pkg/kernel"
)

const (
	// Annotation of the Lease of an egress IP has which node has claimed which of its blocks, as a JSON object:
	//
	//	{"1024-1535": {"node": "node-1", "since": "2026-11-27T08:00:00Z"}}
	Annotation = "network.openshift.io/egress-port-blocks"
	// AssignedRevisionAnnotation has the revision of what AssignedAnnotation says, as a decimal number; also of nothing, unless the process has
	// never said anything.
	AssignedRevisionAnnotation = "network.openshift.io/egress-port-blocks-revision"

	leasePrefix = "egress-ports-"
)

// LeaseName returns the name of the Lease with the claims of an egress IP, which is in the namespace of the nodes' Leases:
// egress-ports-203-0-113-10.
func LeaseName(egressIP netip.Addr) string {
	return leasePrefix + strings.NewReplacer(".", "-", ":", "-").Replace(egressIP.StringExpanded())
}

// EgressIPOf returns the egress IP whose claims a Lease of this name has, if it is one.
func EgressIPOf(leaseName string) (ip netip.Addr, is bool) {
	text, is := strings.CutPrefix(leaseName, leasePrefix)
	if !is {
		return ip, false
	}
	separator := "."
	if strings.Count(text, "-") == 7 {
		separator = ":"
	}
	ip, err := netip.ParseAddr(strings.ReplaceAll(text, "-", separator))
	return ip, err == nil && LeaseName(ip) == leaseName
}

// readClaims returns what a Lease says of an egress IP, and in which version. Entries with an error keep their ports from everybody. It is
// an error that keeps all of them if the annotation or its keys cannot be read.
func readClaims(lease *coordinationv1.Lease) (version uint64, claims Claims, err error) {
	field := fmt.Sprintf("read Lease %s/%s: metadata.annotations[%s]", lease.Namespace, lease.Name, Annotation)
	// Versions of an object can be compared (KEP-5504).
	if version, err = strconv.ParseUint(lease.ResourceVersion, 10, 64); err != nil {
		return 0, nil, fmt.Errorf("read Lease %s/%s: metadata.resourceVersion %.100q is no number", lease.Namespace, lease.Name, lease.ResourceVersion)
	}
	entries := map[string]json.RawMessage{}
	if text := lease.Annotations[Annotation]; text != "" {
		if err := json.Unmarshal([]byte(text), &entries); err != nil {
			return 0, nil, fmt.Errorf("%s: %.100q is no JSON object: correct it, or delete the Lease", field, text)
		}
	}
	claims = Claims{}
	var errs []error
	for _, text := range slices.Sorted(maps.Keys(entries)) {
		entry := entries[text]
		ports, err := parsePorts(text)
		if err != nil {
			return 0, nil, fmt.Errorf("%s: %w: remove the entry, or delete the Lease", field, err)
		}
		var claim Claim
		if err := json.Unmarshal(entry, &claim); err != nil || claim.Node == "" {
			claim = Claim{}
			errs = append(errs, fmt.Errorf("%s[%s]: %.100s is no claim: remove the entry, until then no node has the block", field, text, entry))
		}
		claims[ports] = claim
	}
	return version, claims, failure.JoinSome(field, errs)
}

// text returns claims as the annotation has them.
func (c Claims) text() string {
	entries := make(map[string]Claim, len(c))
	for ports, claim := range c {
		entries[ports.String()] = claim
	}
	text, _ := json.Marshal(entries) // names and times have a form in JSON
	return string(text)
}

// lease returns the Lease that a write makes where there is none.
func (w Write) lease(namespace string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: LeaseName(w.EgressIP), Annotations: map[string]string{Annotation: w.Claims.text()},
	}}
}

// patch returns what makes a Lease of the version before what is to be written, and of no other version, as a JSON merge patch.
func (w Write) patch() ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": strconv.FormatUint(w.Version, 10),
		"annotations":     map[string]string{Annotation: w.Claims.text()},
	}})
}

// FormatAssigned returns assignments as AssignedAnnotation has them: with since as far as it is known, or without if it would be
// too long. If it is too long also then, it is [TooManyAssigned].
func FormatAssigned(assignments []Assignment) string {
	for _, withSince := range []bool{true, false} {
		if text := formatAssigned(assignments, withSince); len(text) <= mostAssigned {
			return text
		}
	}
	return TooManyAssigned
}

func formatAssigned(assignments []Assignment, withSince bool) string {
	type assigned struct {
		Assignment
		Node string `json:"node,omitempty"` // none, in place of the Assignment's: nodes of earlier versions need none either
	}
	list := make([]assigned, len(assignments))
	for i, a := range assignments {
		a.Since = a.Since.UTC().Truncate(time.Second)
		if !withSince {
			a.Since = time.Time{}
		}
		list[i].Assignment = a
	}
	text, _ := json.Marshal(list) // all of it has a form in JSON
	return string(text)
}

// WithoutNames returns what a text of AssignedAnnotation has that ParseBlocks reads: there may be thousands of nodes. What is no such
// text stays as it is.
func WithoutNames(text string) string {
	type pod struct {
		IP netip.Addr `json:"ip"`
	}
	var list []struct {
		Pod      pod          `json:"pod"`
		EgressIP netip.Addr   `json:"egressIP"`
		Ports    kernel.Ports `json:"ports"`
		Shared   bool         `json:"shared,omitempty"`
		Second   bool         `json:"second,omitempty"`
	}
	if json.Unmarshal([]byte(text), &list) != nil {
		return text
	}
	short, err := json.Marshal(list)
	if err != nil {
		return text
	}
	return string(short)
}

// ParseBlocks reads the blocks of AssignedAnnotation, without the pods that share.
func ParseBlocks(text string) (blocks []kernel.Block, err error) {
	if text == TooManyAssigned {
		return nil, nil // its direct announcements have them
	}
	var list []Assignment
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("%.100q is no list of assignments: %w", text, err)
	}
	var errs []error
	for _, a := range list {
		if a.Shared {
			continue
		}
		block := kernel.Block{Pod: a.Pod.IP, EgressIP: a.EgressIP, Ports: a.Ports, Second: a.Second}
		if err := ValidateBlock(block); err != nil {
			errs = append(errs, err)
			continue
		}
		blocks = append(blocks, block)
	}
	return blocks, failure.JoinSome("assignments", errs)
}

// ValidateBlock returns what is wrong with what a node says of a pod's block.
func ValidateBlock(block kernel.Block) error {
	for _, ip := range []netip.Addr{block.Pod, block.EgressIP} {
		if !ip.IsValid() || ip.Is4In6() || ip.Zone() != "" || ip.Is4() != block.Pod.Is4() {
			return fmt.Errorf("the block %s of the pod %s and the egress IP %s: they are no addresses of one IP family", block.Ports, block.Pod, block.EgressIP)
		}
	}
	return Validate(block.Ports)
}
