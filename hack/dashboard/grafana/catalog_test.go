package main

import (
	"strings"
	"testing"
)

var known = newCatalog([]metric{
	{Name: "pods", Type: "gauge", Labels: []string{"family"}},
	{Name: "period", Type: "gauge"},
	{Name: "moves_total", Type: "counter", Labels: []string{"reason"}},
	{Name: "sync_seconds", Type: "histogram", Labels: []string{"result"}},
})

func TestCatalog_UnderstandsQueries(t *testing.T) {
	for query, want := range map[string]string{
		`pods`:                                 "family, instance, job",
		`sum by (family) (pods{instance="n"})`: "family",
		`count(pods) > 0`:                      "(none)",
		`pods / ignoring (family) group_left () period`:                                    "family, instance, job",
		`pods - ignoring (family) period`:                                                  "instance, job",
		`(time() - period) * 1000`:                                                         "instance, job",
		`rate(moves_total[$__rate_interval])`:                                              "instance, job, reason",
		`sum by (result) (rate(sync_seconds_count[1m]))`:                                   "result",
		`histogram_quantile(0.9, sum by (result, le) (increase(sync_seconds_bucket[1m])))`: "result",
	} {
		if got, err := known.understand(query); err != nil || got.String() != want {
			t.Errorf("%s has the labels %s, %v; want %s", query, got, err, want)
		}
	}
}

func TestCatalog_RefusesQueriesWithoutAResult(t *testing.T) {
	for query, want := range map[string]string{
		`pods{`:                       "unexpected",
		`pod`:                         "there is no metric pod",
		`pods_bucket`:                 "there is no metric pods_bucket",
		`sync_seconds`:                "there is no metric sync_seconds",
		`pods{reason="dead"}`:         "pods has no label reason",
		`sum by (reason) (pods)`:      "no label reason to group by",
		`sum by (family) (sum(pods))`: "no label family to group by",
		`moves_total`:                 "moves_total only grows",
		`rate(pods[1m])`:              "pods is a gauge",
		`pods / period`:               "match nowhere",
		`pods / on (instance) period`: "not understood",
		`topk(3, pods)`:               "not understood",
		`deriv(pods[1m])`:             "not understood",
		`histogram_quantile(0.9, sum by (result) (rate(sync_seconds_bucket[1m])))`: "le is lost",
	} {
		if got, err := known.understand(query); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want an error with %q", query, got, err, want)
		}
	}
}

// TestCatalog_LegendsTellLinesApart, and have no label that is none.
func TestCatalog_LegendsTellLinesApart(t *testing.T) {
	for _, test := range []struct {
		legend string
		kind   kind
		right  bool
	}{
		{"{{family}}", graph, true},
		{"pods", graph, false},
		{"{{family}} {{instance}}", graph, false},
		{"", list, true},
	} {
		err := known.checkQuery(test.kind, query{`sum by (family) (pods)`, test.legend})
		if (err == nil) != test.right {
			t.Errorf("legend %q: %v, want it right: %v", test.legend, err, test.right)
		}
	}
}

func TestCatalog_NamesMetricsThatNoPanelShows(t *testing.T) {
	of := func(exprs ...string) (rows []row) {
		for _, expr := range exprs {
			rows = append(rows, row{panels: []panel{{queries: []query{{expr: expr}}}}})
		}
		return rows
	}
	err := known.unshown(of(`sum(ALERTS)`, `pods`, `rate(sync_seconds_count[1m])`))
	if err == nil || !strings.Contains(err.Error(), "no panel shows moves_total, period;") {
		t.Errorf("got %v, want moves_total and period", err)
	}
	if err := known.unshown(of(`ALERTS`, `pods`, `period`, `rate(sync_seconds_sum[1m])`, `rate(moves_total[1m])`)); err != nil {
		t.Error(err)
	}
}

func TestOfInstances_AsksForTheSelectedNodes(t *testing.T) {
	got, err := ofInstances(`sum by (reason) (rate(moves_total[$__rate_interval])) / pods{family="IPv4"}`)
	want := `sum by (reason) (rate(moves_total{instance=~"$instance"}[$__rate_interval])) / pods{family="IPv4",instance=~"$instance"}`
	if err != nil || got != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}
