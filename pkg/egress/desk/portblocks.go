package desk

import (
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/portblocks"
)

// PortBlocks is which ports pods have, as the nodes tell in their Leases.
type PortBlocks struct {
	Time        time.Time
	Assignments []ToldAssignment
	// Nodes is how many tell, and Doubts is what is wrong with what they tell, or old; for people.
	Nodes  int
	Doubts []string
}

// ToldAssignment is an assignment, and when its node renewed the Lease that tells of it.
type ToldAssignment struct {
	portblocks.Assignment
	Told time.Time
}

// PortBlocks returns which ports pods have. It reads Leases alone.
func (d *Desk) PortBlocks(ctx context.Context) (PortBlocks, error) {
	result := PortBlocks{Time: time.Now()}
	namespace := d.LeaseNamespace
	kinds, err := kindsOf(d.Client, namespace)
	if err != nil {
		return result, err
	}
	i := slices.IndexFunc(kinds, func(k kind) bool { _, is := k.example.(*coordinationv1.Lease); return is })
	leases, err := kinds[i].find(ctx, d.Namespace)
	if err != nil {
		return result, err
	}
	if !leases.readable {
		return result, fmt.Errorf("cannot read which pods have which source ports: no right to list %s in the namespace %s; images/node/rbac-viewer.yaml grants it", leases.resource, namespace)
	}
	objects, err := leases.list(ctx)
	if err != nil {
		return result, err
	}
	for _, object := range objects {
		if lease, is := object.(*coordinationv1.Lease); is {
			result.add(lease)
		}
	}
	return result, nil
}

// add adds what a node tells.
func (b *PortBlocks) add(lease *coordinationv1.Lease) {
	text, tells := lease.Annotations[portblocks.AssignedAnnotation]
	if !tells {
		return
	}
	field := fmt.Sprintf("Lease %s/%s", lease.Namespace, lease.Name)
	assignments, err := portblocks.ParseAssigned(lease.Name, text)
	if err != nil {
		b.Doubts = append(b.Doubts, fmt.Sprintf("%s: metadata.annotations[%s]: %v", field, portblocks.AssignedAnnotation, err))
		return
	}
	b.Nodes++
	// A node without egress IPs writes its Lease only when it says something else.
	if said, err := holders.Announcing(lease); (err != nil || len(said.Addresses) > 0) && !isFresh(lease, b.Time) {
		b.Doubts = append(b.Doubts, fmt.Sprintf("%s was renewed last at %s: its pods' ports may have changed since", field, renewed(lease).UTC().Format(time.RFC3339)))
	}
	for _, a := range assignments {
		b.Assignments = append(b.Assignments, ToldAssignment{a, renewed(lease)})
	}
}
