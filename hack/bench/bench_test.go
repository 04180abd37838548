package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/hack/bench/figure"
)

var results = []figure.Result{
	{Name: "flows", At: "1k", Measured: figure.Distribution{0.98}, Target: figure.AtLeast(0.95)},
	{Name: "linear", At: "1k", Measured: figure.Distribution{0.5}},
	{Name: "flows", At: "100k", Measured: figure.Distribution{0.7}, Target: figure.AtLeast(0.8)},
	{Name: "installed", Measured: figure.Distribution{400}, Unit: "ms", Target: figure.AtMost(500)},
	{Name: "idle", At: "1k", Measured: figure.Distribution{0}, Target: figure.AtMost(0)},
	{Name: "idle", At: "100k", Measured: figure.Distribution{0}, Target: figure.AtMost(0)},
}

var here = machine{cpu: "a CPU", cores: 2, kernel: "6.18", tools: []string{"nft 1.0.6"}}

func TestSection(t *testing.T) {
	day := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	want := begin + `Measured on 2026-11-21 in 7 rounds, programming and process in up to 5 and 3: a CPU, 2 cores; Linux 6.18; nft 1.0.6.

| figure | measured | target | |
|---|---|---|---|
| flows | 1k: 0.980<br>100k: 0.700 | 1k: ≥ 0.950<br>100k: ≥ 0.800 | 1k: met<br>100k: missed |
| linear | 1k: 0.500 |  |  |
| installed | 400 ms | ≤ 500 ms | met |
| idle | 0 | ≤ 0 | met |
` + end
	got, err := replace([]byte("before\n"+begin+"old\n"+end+"after\n"), section(here, day, 7, results))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("before\n"+want+"after\n", string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := replace([]byte("before\n"+begin), nil); err == nil {
		t.Error("a README.md without the second marker is no error")
	}
}

func TestRecord(t *testing.T) {
	r := newRecord(here)
	r.add("NewFlow/structure=nftables/n=1000", 20000, 3430.4, "ns/op")
	lines := strings.Split(r.text.String(), "\n")
	fields := strings.Fields(lines[len(lines)-2])
	if !strings.HasPrefix(fields[0], "BenchmarkNewFlow/structure=nftables/n=1000-") {
		t.Errorf("name %s", fields[0])
	}
	if diff := cmp.Diff([]string{"20000", "3430", "ns/op"}, fields[1:]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCommandLine(t *testing.T) {
	for _, wrong := range []string{"extra", "-rounds=-1", "-run=(", "-smoke -readme=README.md", "-run=flows -readme=README.md", "-unknown"} {
		if _, err := parse(strings.Fields(wrong), io.Discard); err == nil {
			t.Errorf("%s is accepted", wrong)
		}
	}
	for arguments, rounds := range map[string]int{"": 21, "-smoke": 3, "-smoke -rounds=7": 7} {
		o, err := parse(strings.Fields(arguments), io.Discard)
		if err != nil || o.rounds != rounds {
			t.Errorf("%q: %d rounds, error %v; want %d", arguments, o.rounds, err, rounds)
		}
	}
}
