package egress

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/journal"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/portblocks"
)

// Journal is where this node writes down which pod has which source ports.
type Journal struct {
	Folder string
	// Size is how many bytes it takes, about.
	Size int64
}

// Reasons of Events about a Node.
const (
	journalFailing plan.Reason = "PortJournalFailing"
	journalWritten plan.Reason = "PortJournalWritten"
	journalDamaged plan.Reason = "PortJournalDamaged"
)

// OpenJournal opens the journal of a node. What is wrong with it is told, by Events about the Node.
func OpenJournal(j Journal, node string, logger klog.Logger, tell func(reason plan.Reason, note string)) (*journal.Journal, error) {
	return journal.Open(j.Folder, journal.Config{
		Node: node, Size: j.Size, Logger: klog.LoggerWithName(logger, "egress-journal"),
		Tell: func(r journal.Report) {
			switch {
			case r.Healed != nil:
				tell(journalDamaged, "The journal of source ports was damaged. It goes on, and says of which time it has not everything: "+r.Healed.Error())
			case r.Failing != nil:
				tell(journalFailing, "The journal of source ports cannot be written: who has which ports of egress IPs is in memory only, until it can. Pods start all the same: "+r.Failing.Error())
			default:
				tell(journalWritten, "The journal of source ports is written again, and has everything")
			}
		},
	})
}

// keepJournal writes down which pod has which source ports from now on. A journal that cannot be opened keeps no pod from running: it is
// told with each that is not written down.
func (e *Extension) keepJournal() {
	var err error
	e.journal, err = OpenJournal(e.config.Journal, e.config.NodeName, e.logger, func(reason plan.Reason, note string) { e.events.Tell(reason, note) })
	if err != nil {
		e.sourcePorts.recorder = unopened{err}
		return
	}
	e.sourcePorts.recorder, e.sourcePorts.resume = e.journal, e.journal.Resume
}

// unopened is a [portblocks.Recorder] that writes nothing down, for this reason.
type unopened struct{ err error }

func (u unopened) Assigned(context.Context, portblocks.Assignment) error { return u.err }

func (u unopened) Released(context.Context, portblocks.Assignment, time.Time) error { return u.err }
