package extension

import (
	"slices"
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Metrics defines the metrics of an extension for its package's variables. images/node/README.md says what each of them
// means. What they are set to before Register is lost.
type Metrics struct {
	subsystem   string
	definitions []Metric
	registered  []metrics.Registerable
	once        sync.Once
}

// Metric is the definition of one, for those who make something of it without a node: tests, and hack/dashboard.
type Metric struct {
	Name string `json:"name"`
	// Type is gauge, counter or histogram.
	Type   string   `json:"type"`
	Help   string   `json:"help"`
	Labels []string `json:"labels"`
}

// NewMetrics returns one for metrics whose names begin with subsystem and "_".
func NewMetrics(subsystem string) *Metrics { return &Metrics{subsystem: subsystem} }

// Gauge defines a gauge.
func (m *Metrics) Gauge(name, help string, labels ...string) *metrics.GaugeVec {
	m.define("gauge", name, help, labels)
	return register(m, metrics.NewGaugeVec(&metrics.GaugeOpts{Subsystem: m.subsystem, Name: name, Help: help, StabilityLevel: metrics.ALPHA}, labels))
}

// Counter defines a counter.
func (m *Metrics) Counter(name, help string, labels ...string) *metrics.CounterVec {
	m.define("counter", name, help, labels)
	return register(m, metrics.NewCounterVec(&metrics.CounterOpts{Subsystem: m.subsystem, Name: name, Help: help, StabilityLevel: metrics.ALPHA}, labels))
}

// Histogram defines a histogram with these upper bounds.
func (m *Metrics) Histogram(name, help string, buckets []float64, labels ...string) *metrics.HistogramVec {
	m.define("histogram", name, help, labels)
	return register(m, metrics.NewHistogramVec(&metrics.HistogramOpts{Subsystem: m.subsystem, Name: name, Help: help, Buckets: buckets, StabilityLevel: metrics.ALPHA}, labels))
}

// GaugeDesc defines a gauge that a collector of the extension's own computes at each scrape.
func (m *Metrics) GaugeDesc(name, help string, labels ...string) *metrics.Desc {
	return metrics.NewDesc(m.define("gauge", name, help, labels), help, labels, nil, metrics.ALPHA, "")
}

// CounterDesc defines a counter that a collector of the extension's own computes at each scrape.
func (m *Metrics) CounterDesc(name, help string, labels ...string) *metrics.Desc {
	return metrics.NewDesc(m.define("counter", name, help, labels), help, labels, nil, metrics.ALPHA, "")
}

func (m *Metrics) define(kind, name, help string, labels []string) (fullName string) {
	fullName = m.subsystem + "_" + name
	m.definitions = append(m.definitions, Metric{fullName, kind, help, labels})
	return fullName
}

func register[M metrics.Registerable](m *Metrics, metric M) M {
	m.registered = append(m.registered, metric)
	return metric
}

// Register adds the metrics, but for those of collectors, to the registry that the proxy's endpoint serves. Another call
// does nothing.
func (m *Metrics) Register() {
	m.once.Do(func() { legacyregistry.MustRegister(m.registered...) })
}

// Definitions are those of all metrics.
func (m *Metrics) Definitions() []Metric { return slices.Clone(m.definitions) }
