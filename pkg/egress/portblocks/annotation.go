package portblocks

import (
	"encoding/json"
	"errors"
	"fmt"
)

// AssignedAnnotation of a node's Lease has which ports its pods have, for people without access to a node: a JSON list of
// [Assignment] without node, which is the Lease's. Since has seconds; earlier versions left it out, and so does a node whose list would be
// too long with it.
const AssignedAnnotation = "network.openshift.io/egress-port-blocks-assigned"

// TooManyAssigned is what AssignedAnnotation has if a node's list is too long for it.
const TooManyAssigned = `"too many"`

// mostAssigned bounds what AssignedAnnotation has, in bytes: an API server takes 256 KiB of annotations, of which choices may have half.
const mostAssigned = 100 << 10

// ParseAssigned reads what a node says in its Lease. An entry that makes no sense is an error, and so is the whole then.
func ParseAssigned(node, text string) ([]Assignment, error) {
	if text == TooManyAssigned {
		return nil, errors.New("the node's pods have too many source ports to list: run 'openshift egress who' on the node")
	}
	var all []Assignment
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("%.100q is no list of assignments: %w", text, err)
	}
	for i, a := range all {
		if !a.EgressIP.IsValid() || !a.Pod.IP.IsValid() || a.Pod.Name == "" || a.Ports.First == 0 || a.Ports.First > a.Ports.Last {
			return nil, fmt.Errorf("[%d]: a pod, its address, an egress IP or ports are missing, or wrong", i)
		}
		all[i].Node = node
	}
	return all, nil
}
