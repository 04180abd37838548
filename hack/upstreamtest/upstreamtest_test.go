package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const printed = `# a compiler's words
{"Action":"start","Package":"k8s.io/kubernetes/pkg/proxy"}
{"Action":"run","Package":"k8s.io/kubernetes/pkg/proxy","Test":"TestA"}
{"Action":"output","Package":"k8s.io/kubernetes/pkg/proxy","Test":"TestA","Output":"pass\n"}
{"Action":"pass","Package":"k8s.io/kubernetes/pkg/proxy","Test":"TestA/sub"}
{"Action":"pass","Package":"k8s.io/kubernetes/pkg/proxy","Test":"TestA"}
{"Action":"skip","Package":"k8s.io/kubernetes/pkg/proxy","Test":"TestB"}
{"Action":"fail","Package":"k8s.io/kubernetes/pkg/proxy","Test":"TestC"}
{"Action":"fail","Package":"k8s.io/kubernetes/pkg/proxy"}
{"Action":"skip","Package":"k8s.io/kubernetes/pkg/proxy/apis"}
`

func parsed(t *testing.T, text string) outcomes {
	t.Helper()
	found, err := parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestParse(t *testing.T) {
	want := outcomes{
		{"pkg/proxy", "TestA"}:     "pass",
		{"pkg/proxy", "TestA/sub"}: "pass",
		{"pkg/proxy", "TestB"}:     "skip",
		{"pkg/proxy", "TestC"}:     "fail",
		{"pkg/proxy", ""}:          "fail",
		{"pkg/proxy/apis", ""}:     "skip",
	}
	if diff := cmp.Diff(want, parsed(t, printed)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestParseRefuses(t *testing.T) {
	const pass = `{"Action":"pass","Package":"k8s.io/kubernetes/pkg/proxy","Test":"TestA"}` + "\n"
	for name, tc := range map[string]struct{ printed, want string }{
		"what does not compile": {
			pass + `{"ImportPath":"k8s.io/kubernetes/pkg/proxy/iptables","Action":"build-output","Output":"proxier.go:1:1: undefined: gone\n"}
{"ImportPath":"k8s.io/kubernetes/pkg/proxy/iptables","Action":"build-fail"}
{"Action":"fail","Package":"k8s.io/kubernetes/pkg/proxy/iptables","FailedBuild":"k8s.io/kubernetes/pkg/proxy/iptables"}`,
			"k8s.io/kubernetes/pkg/proxy/iptables does not compile:\nproxier.go:1:1: undefined: gone",
		},
		"a package that fails by itself": {
			pass + `{"Action":"fail","Package":"k8s.io/kubernetes/pkg/proxy"}`,
			"pkg/proxy failed, but none of its tests did",
		},
		"no test":            {`{"Action":"skip","Package":"k8s.io/kubernetes/pkg/proxy"}`, "no test passed"},
		"none that passes":   {`{"Action":"skip","Package":"k8s.io/kubernetes/pkg/proxy","Test":"TestA"}`, "no test passed"},
		"what go never says": {"panic: go", "no test passed"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parse(strings.NewReader(tc.printed)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestCompare(t *testing.T) {
	for name, tc := range map[string]struct {
		old, new string // in what the patched tree printed
		want     []string
	}{
		"alike": {},
		"a test fails": {
			old: `"pass","Package":"k8s.io/kubernetes/pkg/proxy","Test":"TestA/sub"`, new: `"fail","Package":"k8s.io/kubernetes/pkg/proxy","Test":"TestA/sub"`,
			want: []string{"pkg/proxy TestA/sub: fail patched, pass unpatched"},
		},
		"a test is skipped": {
			old: `"pass","Package":"k8s.io/kubernetes/pkg/proxy","Test":"TestA"`, new: `"skip","Package":"k8s.io/kubernetes/pkg/proxy","Test":"TestA"`,
			want: []string{"pkg/proxy TestA: skip patched, pass unpatched"},
		},
		"a test is another": {
			old: `"Test":"TestB"`, new: `"Test":"TestD"`,
			want: []string{"pkg/proxy TestB: absent patched, skip unpatched", "pkg/proxy TestD: skip patched, absent unpatched"},
		},
		"a package has tests": {
			old: `"skip","Package":"k8s.io/kubernetes/pkg/proxy/apis"`, new: `"pass","Package":"k8s.io/kubernetes/pkg/proxy/apis"`,
			want: []string{"pkg/proxy/apis: pass patched, skip unpatched"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, d := range compare(parsed(t, strings.Replace(printed, tc.old, tc.new, 1)), parsed(t, printed)) {
				got = append(got, d.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestReport(t *testing.T) {
	var report strings.Builder
	if err := writeReport(&report, parsed(t, printed), parsed(t, strings.Replace(printed, "TestA/sub", "TestA", 1))); err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, line := range strings.Split(strings.TrimSpace(report.String()), "\n")[1:] {
		got = append(got, strings.Fields(line))
	}
	numbers := []string{"4", "2", "1", "1", "3", "1", "1", "1"}
	want := [][]string{append([]string{"pkg/proxy"}, numbers...), append([]string{"sum"}, numbers...)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFirstDifference(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"a\nb\n", "a\nb\n", 0},
		{"a\nb\n", "a\nc\n", 2},
		{"a\n", "a\nb\n", 2},
		{"a", "a\n", 2},
	} {
		if got := firstDifference([]byte(tc.a), []byte(tc.b)); got != tc.want {
			t.Errorf("%q and %q differ from line %d on, want %d", tc.a, tc.b, got, tc.want)
		}
	}
}

func TestSummary(t *testing.T) {
	const recording = "=== proxier\n=== restore flush=0 counters=1\n*nat\nCOMMIT\n=== sync full=true succeeded=true\n=== refused\n*nat\n=== sync full=false succeeded=false\n"
	const want = "1 proxiers, 2 payloads for iptables-restore, 2 syncs (1 full, 1 in vain), "
	if got := summary([]byte(recording)); !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRanges(t *testing.T) {
	const source = `	for svcName, svc := range proxier.svcPortMap {
	for chain := range existingNATChains.Difference(activeNATChains) {
	for key := range s.elements {
	for _, ip := range nodeIPs {
	for _, ep := range endpoints {
`
	const want = `	for svcName, svc := range inOrder(proxier.svcPortMap) {
	for chain := range inOrder(existingNATChains.Difference(activeNATChains)) {
	for key := range inOrder(s.elements) {
	for _, ip := range sorted(nodeIPs) {
	for _, ep := range endpoints {
`
	got, err := orderRanges(source)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := orderRanges("for range endpoints {\n"); err == nil {
		t.Error("a source without such a map gave no error")
	}
}

func TestEditProxierTest(t *testing.T) {
	const source = "import (\n\t\"fmt\"\n)\n\t\tnftables:            nft,\n\tp.setInitialized(true)\n"
	const want = "import (\n\tiptablestest \"k8s.io/kubernetes/pkg/util/iptables/testing\"\n\t\"fmt\"\n)\n\t\tnftables:            record(nft),\n" +
		"\tp.setInitialized(true)\n\tattachExtension(p)\n\tiptablestest.Record(\"proxier\", \"\")\n"
	got, err := editProxierTest(source)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := editProxierTest("import (\n"); err == nil || !strings.Contains(err.Error(), "0 places") {
		t.Errorf("a source without the place gave %v", err)
	}
}

func TestArguments(t *testing.T) {
	for _, tc := range []struct {
		arguments []string
		says      string
	}{
		{nil, "no command"},
		{[]string{"test"}, `"test" is no command`},
		{[]string{"tests", "-patches", "../../patches", "1.2"}, "no supported branch"},
		{[]string{"tests", "-patches", "../../patches", "1.37", "1.36"}, "2 arguments"},
		{[]string{"identity", "-patches", "no/such/folder"}, "pinned versions"},
	} {
		var stdout, stderr strings.Builder
		if err := run(t.Context(), tc.arguments, &stdout, &stderr); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%q gave %v, want %q", tc.arguments, err, tc.says)
		}
	}
}
