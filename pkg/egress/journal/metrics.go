package journal

import (
	"k8s.io/component-base/metrics"

	"github.com/openshift/origin-node/pkg/egress/tell"
)

var (
	failing = tell.Metrics.Gauge("journal_failing",
		"1 if the journal of source ports cannot be written now, so that who has which ports is not on the disk, else 0. Only nodes with port blocks have it.")
	waitingLines = tell.Metrics.Gauge("journal_waiting_lines",
		"Lines of the journal of source ports that wait until they can be written. They are lost if the process ends before.")
	lostLines = tell.Metrics.Counter("journal_lost_lines_total",
		"Lines of the journal of source ports that were given up because too many waited. The journal says of which time it has not everything.")
	recordedLines = tell.Metrics.Counter("journal_lines_total",
		"Lines of the journal of source ports, by what they say: assigned or released.", "event")
	journalBytes = tell.Metrics.Gauge("journal_file_bytes",
		"Size of the file that the journal of source ports writes now.")
	syncDuration = tell.Metrics.Histogram("journal_sync_duration_seconds",
		"Time that a write of the journal of source ports took until it was on the disk. A pod that gets ports waits for it before it runs.", metrics.ExponentialBuckets(0.0001, 2, 16))
)

// ZeroMetrics has the series whose first increase counts.
func ZeroMetrics() {
	failing.WithLabelValues()
	waitingLines.WithLabelValues()
	lostLines.WithLabelValues()
	recordedLines.WithLabelValues("assigned")
	recordedLines.WithLabelValues("released")
}
