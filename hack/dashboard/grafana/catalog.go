package main

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// metric is the definition of one.
type metric struct {
	Name   string   `json:"name"`
	Type   string   `json:"type"` // gauge, counter or histogram
	Help   string   `json:"help"`
	Labels []string `json:"labels"`
}

// target are the labels that Prometheus itself gives to what it has scraped.
var target = []string{"instance", "job"}

// alerts is what Prometheus tells of alerts; some have no instance.
var alerts = metric{Name: "ALERTS", Type: "gauge", Labels: []string{"alertname", "alertstate", "severity"}}

// catalog knows the metrics that there are, by name.
type catalog map[string]metric

func newCatalog(metrics []metric) catalog {
	c := catalog{alerts.Name: alerts}
	for _, m := range metrics {
		c[m.Name] = m
	}
	return c
}

// series are those that have a name.
type series struct {
	of     metric
	labels set
	counts bool // they only grow, so that their rate alone tells something
}

var partOfHistogram = regexp.MustCompile(`^(.+)_(bucket|sum|count)$`)

func (c catalog) find(name string) (series, error) {
	m, known := c[name]
	known = known && m.Type != "histogram" // which has parts alone
	part := partOfHistogram.FindStringSubmatch(name)
	if !known && part != nil {
		m = c[part[1]]
		known = m.Type == "histogram"
	}
	if !known {
		return series{}, fmt.Errorf("there is no metric %s", name)
	}
	s := series{m, newSet(m.Labels...).with(target...), m.Type != "gauge"}
	if m.Type == "histogram" && part[2] == "bucket" {
		s.labels = s.labels.with("le")
	}
	return s, nil
}

// Grafana chooses the interval; for the parser it is a duration that nobody else uses.
const rateInterval, standIn, standInPrinted = "$__rate_interval", "7777s", "2h9m37s"

func parse(text string) (parser.Expr, error) {
	return parser.NewParser(parser.Options{}).ParseExpr(strings.ReplaceAll(text, rateInterval, standIn))
}

// understand returns the labels by which the series of a query's result differ, or why it has none.
func (c catalog) understand(text string) (set, error) {
	e, err := parse(text)
	if err != nil {
		return nil, err
	}
	return c.result(e, false)
}

// ofInstances is a query of the nodes alone that the dashboard's variable selects.
func ofInstances(text string) (string, error) {
	e, err := parse(text)
	if err != nil {
		return "", err
	}
	for _, s := range selectors(e) {
		s.LabelMatchers = append(s.LabelMatchers, labels.MustNewMatcher(labels.MatchRegexp, "instance", "$instance"))
	}
	return strings.ReplaceAll(e.String(), standInPrinted, rateInterval), nil
}

func selectors(e parser.Expr) (all []*parser.VectorSelector) {
	parser.Inspect(e, func(node parser.Node, _ []parser.Node) error {
		if s, is := node.(*parser.VectorSelector); is {
			all = append(all, s)
		}
		return nil
	})
	return all
}

// metricsOf are those of queries.
func (c catalog) metricsOf(queries []query) (found []metric, err error) {
	for _, q := range queries {
		e, err := parse(q.expr)
		if err != nil {
			return nil, err
		}
		for _, selector := range selectors(e) {
			s, err := c.find(selector.Name)
			if err != nil {
				return nil, err
			}
			if !slices.ContainsFunc(found, func(m metric) bool { return m.Name == s.of.Name }) {
				found = append(found, s.of)
			}
		}
	}
	return found, nil
}

// result returns the labels of an expression's result. counted tells whether it is an argument of rate, which is for
// counters.
func (c catalog) result(e parser.Expr, counted bool) (set, error) {
	switch e := e.(type) {
	case *parser.NumberLiteral:
		return set{}, nil
	case *parser.ParenExpr:
		return c.result(e.Expr, counted)
	case *parser.MatrixSelector:
		return c.result(e.VectorSelector, counted)
	case *parser.VectorSelector:
		return c.selected(e, counted)
	case *parser.AggregateExpr:
		return c.aggregated(e)
	case *parser.Call:
		return c.called(e)
	case *parser.BinaryExpr:
		return c.combined(e)
	}
	return nil, notUnderstood(e)
}

func notUnderstood(e parser.Expr) error {
	return fmt.Errorf("%s: such expressions are not understood here; extend hack/dashboard/grafana/catalog.go", e)
}

func (c catalog) selected(e *parser.VectorSelector, counted bool) (set, error) {
	s, err := c.find(e.Name)
	switch {
	case err != nil:
		return nil, err
	case s.counts && !counted:
		return nil, fmt.Errorf("%s only grows; ask for its rate or increase", e.Name)
	case !s.counts && counted:
		return nil, fmt.Errorf("%s is a gauge, whose rate tells nothing", e.Name)
	}
	for _, matcher := range e.LabelMatchers {
		if matcher.Name != labels.MetricName && !s.labels[matcher.Name] {
			return nil, fmt.Errorf("%s has no label %s", e.Name, matcher.Name)
		}
	}
	return s.labels, nil
}

func (c catalog) aggregated(e *parser.AggregateExpr) (set, error) {
	if e.Without || e.Param != nil {
		return nil, notUnderstood(e)
	}
	inner, err := c.result(e.Expr, false)
	if err != nil {
		return nil, err
	}
	for _, label := range e.Grouping {
		if !inner[label] {
			return nil, fmt.Errorf("%s: there is no label %s to group by", e, label)
		}
	}
	return newSet(e.Grouping...), nil
}

func (c catalog) called(e *parser.Call) (set, error) {
	switch e.Func.Name {
	case "time":
		return set{}, nil
	case "rate", "increase":
		return c.result(e.Args[0], true)
	case "histogram_quantile":
		inner, err := c.result(e.Args[1], false)
		if err == nil && !inner["le"] {
			err = fmt.Errorf("%s: the label le is lost", e)
		}
		return inner.without("le"), err
	}
	return nil, notUnderstood(e)
}

func (c catalog) combined(e *parser.BinaryExpr) (set, error) {
	left, err := c.result(e.LHS, false)
	if err != nil {
		return nil, err
	}
	right, err := c.result(e.RHS, false)
	if err != nil {
		return nil, err
	}
	matching := e.VectorMatching
	switch {
	case matching == nil: // one of them is a number
		return left.with(slices.Collect(maps.Keys(right))...), nil
	case matching.On || matching.Card != parser.CardOneToOne && matching.Card != parser.CardManyToOne:
		return nil, notUnderstood(e)
	case !maps.Equal(left.without(matching.MatchingLabels...), right.without(matching.MatchingLabels...)):
		return nil, fmt.Errorf("%s: the sides match nowhere; their labels are %s and %s", e, left, right)
	case matching.Card == parser.CardManyToOne:
		return left.with(matching.Include...), nil
	}
	return left.without(matching.MatchingLabels...), nil
}

var labelOfLegend = regexp.MustCompile(`{{(\w+)}}`)

// check says what is wrong with the queries of panels.
func (c catalog) check(rows []row) error {
	var problems []error
	for _, r := range rows {
		for _, p := range r.panels {
			for _, q := range p.queries {
				if err := c.checkQuery(p.kind, q); err != nil {
					problems = append(problems, fmt.Errorf("panel %q: %w", p.title, err))
				}
			}
		}
	}
	return errors.Join(problems...)
}

func (c catalog) checkQuery(k kind, q query) error {
	is, err := c.understand(q.expr)
	if err != nil || k == list { // which shows all labels
		return err
	}
	told := set{}
	for _, match := range labelOfLegend.FindAllStringSubmatch(q.legend, -1) {
		told[match[1]] = true
	}
	if !maps.Equal(is, told) {
		return fmt.Errorf("%s: the legend tells the labels %s, the result has %s", q.expr, told, is)
	}
	return nil
}

// unshown is an error that names the metrics that no panel shows.
func (c catalog) unshown(rows []row) error {
	shown := set{}
	for _, r := range rows {
		for _, p := range r.panels {
			metrics, _ := c.metricsOf(p.queries) // check tells what is wrong with them
			for _, m := range metrics {
				shown[m.Name] = true
			}
		}
	}
	if missing := newSet(slices.Collect(maps.Keys(c))...).without(slices.Collect(maps.Keys(shown))...); len(missing) > 0 {
		return fmt.Errorf("no panel shows %s; add it to hack/dashboard/grafana/panels.go", missing)
	}
	return nil
}

// set is one of labels. It is not changed.
type set map[string]bool

func newSet(members ...string) set { return set{}.with(members...) }

func (s set) with(members ...string) set {
	result := set{}
	maps.Copy(result, s)
	for _, member := range members {
		result[member] = true
	}
	return result
}

func (s set) without(members ...string) set {
	result := maps.Clone(s)
	for _, member := range members {
		delete(result, member)
	}
	return result
}

func (s set) String() string {
	if len(s) == 0 {
		return "(none)"
	}
	return strings.Join(slices.Sorted(maps.Keys(s)), ", ")
}
