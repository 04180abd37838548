package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/hack/patchtool/tree"
)

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
		{[]string{"1.37", "1.36"}, "invalid arguments"},
		{[]string{"1.2"}, "not a supported branch"},
	} {
		c := &comparison{stdout: &strings.Builder{}}
		if err := c.run(t.Context(), tree.Maker{Patches: "../../patches"}, tc.arguments); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%q gave %v, want %q", tc.arguments, err, tc.says)
		}
	}
}
