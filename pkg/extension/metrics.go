package extension

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Metrics defines the metrics of an extension for its package's variables. images/node/README.md says what each of them
// means. What they are set to before Register is lost.
type Metrics struct {
	subsystem string
	defined   []metrics.Registerable
	once      sync.Once
}

// NewMetrics returns one for metrics whose names begin with subsystem and "_".
func NewMetrics(subsystem string) *Metrics { return &Metrics{subsystem: subsystem} }

// Gauge defines a gauge.
func (m *Metrics) Gauge(name, help string, labels ...string) *metrics.GaugeVec {
	return define(m, metrics.NewGaugeVec(&metrics.GaugeOpts{Subsystem: m.subsystem, Name: name, Help: help, StabilityLevel: metrics.ALPHA}, labels))
}

// Counter defines a counter.
func (m *Metrics) Counter(name, help string, labels ...string) *metrics.CounterVec {
	return define(m, metrics.NewCounterVec(&metrics.CounterOpts{Subsystem: m.subsystem, Name: name, Help: help, StabilityLevel: metrics.ALPHA}, labels))
}

// Histogram defines a histogram with these upper bounds.
func (m *Metrics) Histogram(name, help string, buckets []float64, labels ...string) *metrics.HistogramVec {
	return define(m, metrics.NewHistogramVec(&metrics.HistogramOpts{Subsystem: m.subsystem, Name: name, Help: help, Buckets: buckets, StabilityLevel: metrics.ALPHA}, labels))
}

func define[M metrics.Registerable](m *Metrics, metric M) M {
	m.defined = append(m.defined, metric)
	return metric
}

// Register adds the metrics to the registry that the proxy's endpoint serves. Another call does nothing.
func (m *Metrics) Register() {
	m.once.Do(func() { legacyregistry.MustRegister(m.defined...) })
}

// Names are those of the metrics.
func (m *Metrics) Names() (names []string) {
	for _, metric := range m.defined {
		names = append(names, metric.FQName())
	}
	return names
}
