package tunnel

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/extension"
	"github.com/openshift/origin-node/pkg/tunnel/plan"
)

const (
	// eventSource is the component that Events come from.
	eventSource = "network.openshift.io/tunnel-ports"
	// eventRepeat is how long an Event is not repeated. API servers forget it after an hour.
	eventRepeat = 30 * time.Minute
)

// report tells people of the problems: each once in the log, and in an Event that is repeated as long as it holds.
func (e *Extension) report() {
	problems, unknown, due := e.toTell(time.Now())
	setProblemMetrics(problems)
	for _, p := range unknown {
		e.logger.Error(nil, "Some connections are not redirected to the tunnel server", "reason", p.Reason, "node", p.Node, "configMap", p.ConfigMap, "problem", p.Message)
	}
	for p, about := range due {
		e.recorder.Event(&about, v1.EventTypeWarning, string(p.Reason), extension.ValidNote("Not redirected to the tunnel server: "+p.Message))
	}
}

// toTell returns all problems, those that people were not told of yet, and those of which an Event is due, with what it is
// about.
func (e *Extension) toTell(now time.Time) (problems, unknown []plan.Problem, due map[plan.Problem]v1.ObjectReference) {
	e.mu.Lock()
	defer e.mu.Unlock()
	problems, due = e.problems(), map[plan.Problem]v1.ObjectReference{}
	told := map[plan.Problem]time.Time{}
	for _, p := range problems {
		at, known := e.told[p]
		if !known {
			unknown = append(unknown, p)
		}
		if now.Sub(at) >= eventRepeat {
			at, due[p] = now, e.about(p)
		}
		told[p] = at
	}
	e.told = told
	return problems, unknown, due
}

// about returns what an Event is about: the ConfigMap or the Node that has a problem, or this node's Node if it is the
// configuration. The lock must be held.
func (e *Extension) about(p plan.Problem) v1.ObjectReference {
	switch {
	case p.ConfigMap != "":
		return e.configMap
	case p.Node != "":
		return extension.NodeReference(p.Node)
	}
	return extension.NodeReference(e.config.NodeName)
}

// problems returns those of the ConfigMap and of both families' last plans. The lock must be held.
func (e *Extension) problems() []plan.Problem {
	problems := slices.Clone(e.portProblems)
	for _, f := range e.families {
		if s := f.status.Load(); s != nil {
			problems = append(problems, s.problems...)
		}
	}
	return problems
}
