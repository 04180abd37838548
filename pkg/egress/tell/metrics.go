package tell

import "github.com/openshift/origin-node/pkg/extension"

// Metrics defines those of egress SNAT. Each is where it is set; images/node/README.md says what it means.
var Metrics = extension.NewMetrics("egress_snat")

// FlowDeletions and FlowsUnbarred are set by more than one part.
var (
	FlowDeletions = Metrics.Counter("conntrack_deletions_total",
		"Tracked flows that were deleted because they used a wrong source address, or another flow's port, by IP family.", "ip_family")
	FlowsUnbarred = Metrics.Counter("conntrack_unbarred_total",
		"Tracked flows that were deleted although nothing keeps their far sides from taking them up again under the same address, since too many had ended in the 20 minutes before. By IP family.", "ip_family")
)
