package holders

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/failure"
)

// Annotation of a node's Lease has the addresses that the node has, as a JSON object:
//
//	{"203.0.113.10": {"epoch": 3}, "2001:db8:113::10": {"epoch": 1}}
//
// Further fields of an address are ignored, for the sake of later versions.
const Annotation = "network.openshift.io/egress-addresses"

// RevisionAnnotation of a node's Lease has the revision of what [Annotation] says, as a decimal number.
const RevisionAnnotation = "network.openshift.io/egress-addresses-revision"

// ConfigurationAnnotation of a node's Lease has what cluster-wide plans depend on in the node's configuration, for those
// who make a plan without a node: a JSON object with the proxyArguments of that kind that were given. It is missing if it
// would be very long. Nodes do not read it.
const ConfigurationAnnotation = "network.openshift.io/egress-configuration"

// entry is what the annotation has of an address.
type entry struct {
	Epoch uint64 `json:"epoch"`
}

// readLease returns what a Lease announces. Parts with an error are left out; see readAddresses.
func readLease(lease *coordinationv1.Lease) (Statement, error) {
	addresses, err := readAddresses(lease)
	text, given := lease.Annotations[RevisionAnnotation]
	if !given {
		return Statement{Addresses: addresses}, err
	}
	revision, wrong := strconv.ParseUint(text, 10, 64)
	if wrong != nil || revision > maxRevision {
		err = errors.Join(err, fmt.Errorf("read Lease %s/%s: metadata.annotations[%s]: %.100q is not a number from 0 to %d", lease.Namespace, lease.Name, RevisionAnnotation, text, uint64(maxRevision)))
		revision = 0
	}
	return Statement{addresses, revision}, err
}

// readAddresses returns the addresses that a Lease announces, with their epochs. Those with an error are left
// out, and so is an address that is there twice. It is an error if the annotation is no JSON object, and
// then there are no addresses; without the annotation there are none either.
func readAddresses(lease *coordinationv1.Lease) (map[netip.Addr]uint64, error) {
	text, given := lease.Annotations[Annotation]
	if !given {
		return nil, nil
	}
	field := fmt.Sprintf("Lease %s/%s: metadata.annotations[%s]", lease.Namespace, lease.Name, Annotation)
	listed, err := members(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	epochs, twice := map[netip.Addr]uint64{}, map[netip.Addr]bool{}
	var errs []error
	for _, m := range listed {
		ip, epoch, err := readMember(m)
		if _, known := epochs[ip]; err == nil && known {
			twice[ip], err = true, errors.New("the address is there twice")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s[%.100q]: %w", field, m.key, err))
			continue
		}
		epochs[ip] = epoch
	}
	maps.DeleteFunc(epochs, func(ip netip.Addr, _ uint64) bool { return twice[ip] })
	return epochs, failure.JoinSome(field, errs)
}

// member is a key of a JSON object, with its value.
type member struct {
	key   string
	value json.RawMessage
}

// members returns those of a JSON object, in their order; a map would hide the keys that are there twice.
func members(text string) (list []member, err error) {
	if !json.Valid([]byte(text)) {
		return nil, fmt.Errorf("%.100q is not JSON", text)
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return nil, fmt.Errorf("%.100q is no JSON object", text)
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		m := member{key: key.(string)} // JSON has no others
		if err := decoder.Decode(&m.value); err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

func readMember(m member) (ip netip.Addr, epoch uint64, err error) {
	if ip, err = readAddress(m.key); err != nil {
		return ip, 0, err
	}
	var e entry
	if err := json.Unmarshal(m.value, &e); err != nil {
		return ip, 0, fmt.Errorf("%.100s: %w", m.value, err)
	}
	if e.Epoch == 0 || e.Epoch > MaxEpoch {
		return ip, 0, fmt.Errorf("%.100s: the epoch must be from 1 to %d", m.value, MaxEpoch)
	}
	return ip, e.Epoch, nil
}

// announcement is what a node says in its Lease.
type announcement struct {
	node string
	Published
	// configuration is that of [Leases].
	configuration string
}

// isLike tells whether two announcements say the same but for source ports.
func (a announcement) isLike(b announcement) bool {
	return a.NodeUID == b.NodeUID && a.Revision == b.Revision && maps.Equal(a.Addresses, b.Addresses) && maps.EqualFunc(a.Choices, b.Choices, maps.Equal)
}

// lease returns the Lease, renewed at a time. Only a new Lease gets an owner: clusters that protect this
// field let nobody change it who may not delete the Lease. The Lease of a Node of the past has its own
// owner, and goes with it.
func (a announcement) lease(namespace string, now time.Time) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: a.node, Annotations: a.annotations()},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity:       &a.node,
			LeaseDurationSeconds: ptr.To(int32(silence / time.Second)),
			RenewTime:            ptr.To(metav1.NewMicroTime(now)),
		},
	}
	if a.NodeUID != "" {
		lease.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1.SchemeGroupVersion.String(), Kind: "Node", Name: a.node, UID: a.NodeUID}}
	}
	return lease
}

// patch returns what makes an existing Lease the same, but for its owner, as a JSON merge patch.
func (a announcement) patch(now time.Time) ([]byte, error) {
	lease := a.lease("", now)
	annotations := map[string]any{ConfigurationAnnotation: nil, ChoicesAnnotation: nil, portblocks.AssignedAnnotation: nil, portblocks.AssignedRevisionAnnotation: nil} // which removes them
	for key, text := range lease.Annotations {
		annotations[key] = text
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": annotations},
		"spec":     lease.Spec,
	})
}

func (a announcement) annotations() map[string]string {
	entries := make(map[netip.Addr]entry, len(a.Addresses))
	for ip, epoch := range a.Addresses {
		entries[ip] = entry{Epoch: epoch}
	}
	text, _ := json.Marshal(entries) // addresses and numbers have a form in JSON
	annotations := map[string]string{Annotation: string(text), RevisionAnnotation: strconv.FormatUint(a.Revision, 10)}
	if len(a.Choices) > 0 {
		text, _ := json.Marshal(a.Choices)
		annotations[ChoicesAnnotation] = string(text)
	}
	if a.Assigned != "" {
		annotations[portblocks.AssignedAnnotation] = a.Assigned
	}
	if a.AssignedRevision > 0 { // of nothing, too: a new process has none
		annotations[portblocks.AssignedRevisionAnnotation] = strconv.FormatUint(a.AssignedRevision, 10)
	}
	if a.configuration != "" {
		annotations[ConfigurationAnnotation] = a.configuration
	}
	return annotations
}
