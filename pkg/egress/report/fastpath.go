package report

import (
	"fmt"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/fastpath"
)

// fastStatus returns which flows take the fast path; nil if there is none.
func (r *Reporter) fastStatus() *status.FastPath {
	if r.config.FastPath == nil {
		return nil
	}
	return &status.FastPath{All: r.config.FastPath.All(), Pods: r.config.FastPath.Taken()}
}

// FastUsage returns what has taken the fast path since it was loaded; nil if there is none.
func (r *Reporter) FastUsage() (*status.FastUsage, error) {
	if r.config.FastPath == nil {
		return nil, nil
	}
	counts, err := r.config.FastPath.Counts()
	if err != nil {
		return nil, err
	}
	var sum status.FastUsage
	for _, c := range counts {
		for _, traffic := range []fastpath.Traffic{c.Sent, c.Left, c.Own, c.Answers} {
			sum.Packets += traffic.Packets
		}
	}
	return &sum, nil
}

// fastPart is what a verification calls the fast path, beside the IP families.
const fastPart = "fast path"

// fastWarnings returns what a verification says of the fast path. That packets take the slow path is no difference: they cost more.
func (r *Reporter) fastWarnings() (lines []string) {
	if r.config.FastPath == nil {
		return nil
	}
	now := r.config.FastPath.Status()
	const slow = "packets cost more than they need, because they take the slow path: "
	if now.Fault != nil {
		lines = append(lines, status.Warning+slow+now.Fault.Error())
	}
	for _, name := range cluster.Families {
		if why := now.Unusable[kernel.Family(name)]; why != "" {
			lines = append(lines, fmt.Sprintf("%s%s%s: %s", status.Warning, slow, name, why))
		}
	}
	if len(now.Refused) > 0 {
		at := kernel.Listed(now.Refused, 3, "more interfaces")
		lines = append(lines, fmt.Sprintf("%s%sa tc filter is at %s. See 'tc filter show dev %s ingress' on the node", status.Warning, slow, at, now.Refused[0]))
	}
	return lines
}
