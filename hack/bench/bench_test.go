package main

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/hack/bench/figure"
	"github.com/openshift/origin-node/hack/bench/scale"
)

var here = machine{cpu: "a CPU", cores: 2, kernel: "6.18", tools: []string{"nft 1.0.6"}}

func TestPublished_ResultsReplaceThoseOfTheSameNameAndSize(t *testing.T) {
	const before = preamble + "a CPU, 2 cores; Linux 6.18; nft 1.0.6" + heading + `| flows | 1k | 0.900 |  | ≥ 0.950 | missed | 1 | 2026-11-20 |
| linear | 1k | 0.500 |  |  |  | 1 | 2026-11-20 |

## Settled

| seed | 1k | 2000 |
`
	const after = preamble + "a CPU, 2 cores; Linux 6.18; nft 1.0.6" + heading + `| flows | 1k | 0.980 | 0.970–0.990 | ≥ 0.950 | met | 3 | 2026-11-21 |
| flows | 100k | 0.700 |  | ≥ 0.800 | missed | 1 | 2026-11-21 |
| linear | 1k | 0.500 |  |  |  | 1 | 2026-11-20 |
| installed | 1k | 400 ms |  | ≤ 500 ms | met | 1 | 2026-11-21 |

## Settled

| seed | 1k | 2000 |
`
	p, err := parseResults(before)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, p.String()); diff != "" {
		t.Errorf("unchanged (-want +got):\n%s", diff)
	}
	p.merge([]figure.Result{
		{Name: "flows", At: "1k", Measured: figure.Distribution{0.98, 0.96, 1}, Target: figure.AtLeast(0.95)},
		{Name: "installed", At: "1k", Measured: figure.Distribution{400}, Unit: "ms", Target: figure.AtMost(500)},
		{Name: "flows", At: "100k", Measured: figure.Distribution{0.7}, Target: figure.AtLeast(0.8)},
	}, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	if diff := cmp.Diff(after, p.String()); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
	if value, err := p.value("installed", "1k"); value != "400 ms" || err != nil {
		t.Errorf("value %q, %v", value, err)
	}
	if value, err := p.value("installed", "100k"); err == nil {
		t.Errorf("a row that is not there has the value %q", value)
	}
}

func TestParseResults_OtherFormats(t *testing.T) {
	for _, text := range []string{"", preamble, preamble + "a CPU" + heading + "| too | few |\n"} {
		if p, err := parseResults(text); err == nil {
			t.Errorf("%q is read as %+v", text, p)
		}
	}
}

// TestPublish_FilesAreMadeOfTheResults: whoever changes a template, RESULTS.md or what is made of it alone runs 'make
// bench-readme RUN=pool' afterwards.
func TestPublish_FilesAreMadeOfTheResults(t *testing.T) {
	t.Chdir("../..")
	results, err := os.ReadFile(resultsFile)
	if err != nil {
		t.Fatal(err)
	}
	p, err := parseResults(string(results))
	if err != nil {
		t.Fatal(err)
	}
	section, err := p.render()
	if err != nil {
		t.Fatal(err)
	}
	for _, made := range []struct {
		file, section string
		markers       markers
	}{{readmeFile, section, performance}, {scaleFile, p.scaleTable(), scaled}} {
		text, err := os.ReadFile(made.file)
		if err != nil {
			t.Fatal(err)
		}
		updated, err := made.markers.replace(text, made.section)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(text), string(updated)); diff != "" {
			t.Errorf("%s (-is +should be):\n%s", made.file, diff)
		}
	}
}

func TestScaleTable_ColumnForEachSize(t *testing.T) {
	p := published{rows: []row{
		{scale.Prefix + "memory", "1k nodes", "100 MiB"}, {scale.Prefix + "memory", "5k nodes", "120 MiB"},
		{"flows", "1k", "0.980"}, {scale.Prefix + "requests", "5k nodes", "0.1 1/s"},
	}}
	const want = `[cols="5,2,2"]
|===
| Figure | 1k nodes | 5k nodes

| memory | 100 MiB | 120 MiB
| requests |  | 0.1 1/s
|===
`
	if diff := cmp.Diff(want, p.scaleTable()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReplace_BetweenTheMarkersAlone(t *testing.T) {
	m := markers{"begin\n", "end\n"}
	got, err := m.replace([]byte("before\nbegin\nold\nend\nafter\n"), "new\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("before\nbegin\nnew\nend\nafter\n", string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := m.replace([]byte("before\nbegin\n"), ""); err == nil {
		t.Error("a missing marker is no error")
	}
}

func TestRecord_LineForBenchstat(t *testing.T) {
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

func TestParse_CommandLines(t *testing.T) {
	for _, wrong := range []string{"extra", "-rounds=-1", "-run=(", "-smoke -publish", "-unknown"} {
		if _, err := parse(strings.Fields(wrong), io.Discard); err == nil {
			t.Errorf("%s is accepted", wrong)
		}
	}
	for arguments, rounds := range map[string]int{"": 21, "-smoke": 2, "-smoke -rounds=7": 7} {
		o, err := parse(strings.Fields(arguments), io.Discard)
		if err != nil || o.rounds != rounds {
			t.Errorf("%q: %d rounds, error %v; want %d", arguments, o.rounds, err, rounds)
		}
	}
}
