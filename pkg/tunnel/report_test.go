package tunnel

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/origin-node/pkg/tunnel/plan"
)

// TestExtension_ToTell: a problem is told once in the log, its Event is repeated as long as it holds, and a problem that
// comes back is told again.
func TestExtension_ToTell(t *testing.T) {
	e := New(t.Context(), Config{NodeName: "control", ConfigMap: types.NamespacedName{Namespace: "ns", Name: "ports"}})
	start := time.Unix(1_000_000, 0)
	for _, step := range []struct {
		after        time.Duration
		configMap    *v1.ConfigMap
		log, events  int
		told, object string
	}{
		{0, nil, 1, 1, "MissingConfigMap", "ports"},
		{time.Minute, nil, 0, 0, "MissingConfigMap", ""},
		{40 * time.Minute, nil, 0, 1, "MissingConfigMap", "ports"},
		{41 * time.Minute, &v1.ConfigMap{Data: map[string]string{"http-proxy-ports": ""}}, 0, 0, "", ""},
		{42 * time.Minute, nil, 1, 1, "MissingConfigMap", "ports"},
	} {
		e.setConfigMap(step.configMap)
		problems, unknown, due := e.toTell(start.Add(step.after))
		if len(unknown) != step.log || len(due) != step.events {
			t.Errorf("after %s: %d lines and %d Events, want %d and %d", step.after, len(unknown), len(due), step.log, step.events)
		}
		if (step.told == "") != (len(problems) == 0) || len(problems) > 0 && problems[0].Reason != plan.Reason(step.told) {
			t.Errorf("after %s: the problems are %v, want %q", step.after, problems, step.told)
		}
		for p, about := range due {
			if about.Name != step.object || about.Kind != "ConfigMap" {
				t.Errorf("after %s: the Event of %v is about %v", step.after, p, about)
			}
		}
	}
}
