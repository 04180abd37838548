package specs

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const ginkgosReport = `[{"SuiteDescription": "Kubernetes e2e suite", "SpecReports": [
	{"LeafNodeType": "SynchronizedBeforeSuite", "State": "passed"},
	{"ContainerHierarchyTexts": ["[sig-network] Services"], "LeafNodeType": "It", "LeafNodeText": "should serve", "State": "passed", "RunTime": 2000000000},
	{"ContainerHierarchyTexts": ["[sig-network] Services"], "LeafNodeType": "It", "LeafNodeText": "should hold", "State": "timedout", "Failure": {"Message": "too slow"}},
	{"ContainerHierarchyTexts": ["[sig-network] Topology Hints"], "LeafNodeType": "It", "LeafNodeText": "should spread", "State": "skipped", "Failure": {"Message": "one zone"}},
	{"ContainerHierarchyTexts": ["[sig-network] LoadBalancers"], "LeafNodeType": "It", "LeafNodeText": "should balance", "State": "skipped"},
	{"ContainerHierarchyTexts": null, "LeafNodeType": "SynchronizedAfterSuite", "LeafNodeText": "", "State": "failed", "Failure": {"Message": "gone"}}
]}]`

var reported = []Result{
	{Name: "[sig-network] Services should serve", Group: "Services", State: Passed, Took: 2 * time.Second},
	{Name: "[sig-network] Services should hold", Group: "Services", State: Failed, Reason: "too slow"},
	{Name: "[sig-network] Topology Hints should spread", Group: "Topology Hints", State: Skipped, Reason: "one zone"},
	{Name: "[sig-network] LoadBalancers should balance", Group: "LoadBalancers", State: Unselected},
	{Name: "SynchronizedAfterSuite", Group: "SynchronizedAfterSuite", State: Failed, Reason: "gone"},
}

func TestRead_ReturnsEveryState(t *testing.T) {
	got, err := Read(strings.NewReader(ginkgosReport))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(reported, got); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

func TestRead_RefusesAReportWithoutSpecs(t *testing.T) {
	for _, text := range []string{"", "[]", "{"} {
		if _, err := Read(strings.NewReader(text)); err == nil {
			t.Errorf("%q is read without an error", text)
		}
	}
}

const environment = `# comment

left out: LoadBalancers|SCTP
  nobody gives
  addresses
may fail in nftables: should hold
  stock fails as well
`

func parse(t *testing.T, text string) Environment {
	t.Helper()
	env, err := ParseEnvironment(text)
	if err != nil {
		t.Fatal(err)
	}
	return env
}

func TestParseEnvironment_HasReasonsAndModes(t *testing.T) {
	env := parse(t, environment)
	if got, want := env.LeftOut(), "LoadBalancers|SCTP"; got != want {
		t.Errorf("left out are %q, want %q", got, want)
	}
	if got, want := env[0].Reason, "nobody gives addresses"; got != want {
		t.Errorf("the reason is %q, want %q", got, want)
	}
	if got := env.Of("in iptables"); len(got) != 1 {
		t.Errorf("%d limits hold in iptables mode, want 1", len(got))
	}
	if got := env.Of("in nftables"); len(got) != 2 {
		t.Errorf("%d limits hold in nftables mode, want 2", len(got))
	}
}

func TestParseEnvironment_RefusesMistakes(t *testing.T) {
	for name, text := range map[string]string{
		"no reason":           "left out: x\n",
		"a reason of nothing": "  because\n",
		"a bad expression":    "left out: (\n  because\n",
		"something else":      "may pass: x\n  because\n",
	} {
		if _, err := ParseEnvironment(text); err == nil {
			t.Errorf("%s is no error", name)
		}
	}
}

func TestJudge_ExcusesOnlyWhatTheEnvironmentNames(t *testing.T) {
	every := regexp.MustCompile("")
	for name, test := range map[string]struct {
		mode string
		want []Result
	}{
		"another mode": {"iptables", []Result{reported[1], reported[4]}},
		"the mode":     {"nftables", []Result{reported[4]}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Judge(reported, every, parse(t, environment).Of("in "+test.mode))
			if diff := cmp.Diff(test.want, got.Failed); diff != "" {
				t.Errorf("failed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVerdict_TellsTheReasons(t *testing.T) {
	var b strings.Builder
	if err := Judge(reported[:4], regexp.MustCompile("sig-network"), parse(t, environment).Of("in nftables")).Write(&b); err != nil {
		t.Fatal(err)
	}
	const want = `SPECS            PASSED   FAILED   SKIPPED
LoadBalancers    0        0        1
Services         1        1        0
Topology Hints   0        0        1
all              1        1        2

Failed, as expected here, 1: stock fails as well
    [sig-network] Services should hold

Skipped, 1: nobody gives addresses
    [sig-network] LoadBalancers should balance

Skipped, 1: one zone
    [sig-network] Topology Hints should spread
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestJudge_IgnoresWhatIsNotInFocus(t *testing.T) {
	v := Judge(reported[3:4], regexp.MustCompile("Services"), parse(t, environment))
	if len(v.groups) != 0 {
		t.Errorf("%v are counted", v.groups)
	}
}

func TestDifferences_OfSpecsThatBothRunsHad(t *testing.T) {
	others := []Result{
		{Name: reported[0].Name, State: Failed}, {Name: reported[1].Name, State: Passed},
		{Name: reported[2].Name, State: Unselected}, {Name: reported[3].Name, State: Passed},
	}
	worse, other := Differences(reported, others)
	got := [][]string{worse, other}
	want := [][]string{
		{"[sig-network] Services should hold: failed, there passed"},
		{"[sig-network] Services should serve: passed, there failed"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
}
