package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/hack/patchtool/tree"
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

// parse reads what go printed, and judges it.
func parse(printed string) (outcomes, error) {
	found, err := read(strings.NewReader(printed))
	if err == nil {
		err = found.sound()
	}
	return found, err
}

func TestRead_Outcomes(t *testing.T) {
	want := outcomes{
		{"pkg/proxy", "TestA"}:     "pass",
		{"pkg/proxy", "TestA/sub"}: "pass",
		{"pkg/proxy", "TestB"}:     "skip",
		{"pkg/proxy", "TestC"}:     "fail",
		{"pkg/proxy", ""}:          "fail",
		{"pkg/proxy/apis", ""}:     "skip",
	}
	got, err := parse(printed)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	if got, want := got.String(), "2 tests passed, 1 failed, 1 skipped"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOutcomes_ProveNothing(t *testing.T) {
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
			if _, err := parse(tc.printed); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestDifferent_Tests(t *testing.T) {
	for name, tc := range map[string]struct {
		old, new string // in what the patched tree printed
		want     []test
	}{
		"alike":               {},
		"a subtest fails":     {old: `"pass","Package":"k8s.io/kubernetes/pkg/proxy","Test":"TestA/sub"`, new: `"fail","Package":"k8s.io/kubernetes/pkg/proxy","Test":"TestA/sub"`, want: []test{{"pkg/proxy", "TestA/sub"}}},
		"a test is another":   {old: `"Test":"TestB"`, new: `"Test":"TestD"`, want: []test{{"pkg/proxy", "TestB"}, {"pkg/proxy", "TestD"}}},
		"a package has tests": {old: `"skip","Package":"k8s.io/kubernetes/pkg/proxy/apis"`, new: `"pass","Package":"k8s.io/kubernetes/pkg/proxy/apis"`, want: []test{{"pkg/proxy/apis", ""}}},
		"told by its tests":   {old: `"fail","Package":"k8s.io/kubernetes/pkg/proxy"`, new: `"pass","Package":"k8s.io/kubernetes/pkg/proxy"`, want: []test{{"pkg/proxy", "TestC"}}},
	} {
		t.Run(name, func(t *testing.T) {
			unpatched, err := parse(printed)
			if err != nil {
				t.Fatal(err)
			}
			patched, err := parse(strings.ReplaceAll(printed, tc.old, tc.new))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, different(patched, unpatched)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestFirstDifference_Line(t *testing.T) {
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

func TestSummary_Counts(t *testing.T) {
	const recording = "=== proxier\n=== restore flush=0 counters=1\n*nat\nCOMMIT\n=== sync full=true succeeded=true\n=== refused\n*nat\n=== sync full=false succeeded=false\n"
	const want = "1 proxiers, 2 writes, 2 syncs (1 full, 1 failed), "
	if got := summary([]byte(recording)); !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOrderRanges_Maps(t *testing.T) {
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

func TestEditProxierTest_Places(t *testing.T) {
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

func TestRun_InvalidArguments(t *testing.T) {
	for _, tc := range []struct {
		arguments []string
		says      string
	}{
		{nil, "invalid arguments"},
		{[]string{"test"}, "invalid arguments"},
		{[]string{"tests", "1.37", "1.36"}, "invalid arguments"},
		{[]string{"tests", "1.2"}, "not a supported branch"},
	} {
		c := &comparison{stdout: &strings.Builder{}}
		if err := c.run(t.Context(), tree.Maker{Patches: "../../patches"}, tc.arguments); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%q gave %v, want %q", tc.arguments, err, tc.says)
		}
	}
}
