package clustertest

import (
	"testing"

	"k8s.io/component-base/metrics/legacyregistry"
)

// ValuesByReason returns the values of a gauge whose only label is a reason.
func ValuesByReason(t *testing.T, name string) map[string]float64 {
	t.Helper()
	gathered, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range gathered {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			values[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
		}
	}
	return values
}
