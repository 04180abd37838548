package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/openshift/origin-node/hack/e2e/specs"
	"github.com/openshift/origin-node/hack/lab"
)

// environmentFile says what the nodes of these tests cannot do.
const environmentFile = "../conformance/environment.txt"

// TestConformance_UpstreamsSpecsPass: upstream's own end-to-end specs [sig-network], on nodes with real kubelets. Every spec passes
// that the environment does not excuse. Beside them a Service gives pods an egress IP, which they still leave from in
// the end. With stock kube-proxy in the product's place the same is run to compare with.
func TestConformance_UpstreamsSpecsPass(t *testing.T) {
	c := askedConformance(t)
	before := surroundings(t)
	w := newConformanceWorld(t, c)
	results := w.runSpecs()
	if !c.stock {
		w.leaveFrom(w.egressIPs)
	}
	for _, m := range w.machines {
		m.Close()
	}
	unchanged(t, before)
	c.save(t, results)
	c.judge(t, results)
}

// conformance is what is asked for.
type conformance struct {
	// dir is that of hack/build-conformance.sh.
	dir string
	// mode is the proxy mode; stock says that stock kube-proxy runs in the product's place, and features that everything is
	// switched on that the product has besides: steering, the pool and the CNI plugin.
	mode            string
	stock, features bool
	// nodes is how many there are.
	nodes int
	// focus is which specs are wanted, of which whole says that they are all.
	focus       *regexp.Regexp
	whole       bool
	environment specs.Environment
}

// askedConformance skips the test where nobody asked for it: it takes long.
func askedConformance(t *testing.T) conformance {
	t.Helper()
	c := conformance{dir: os.Getenv("CONFORMANCE"), mode: either(t, "MODE", "iptables", "nftables")}
	if c.dir == "" {
		t.Skip("the environment variable CONFORMANCE does not name the folder of hack/build-conformance.sh; run 'make test-conformance'")
	}
	c.stock = either(t, "PROXY", "origin", "stock") == "stock"
	c.features = either(t, "FEATURES", "default", "all") == "all"
	if c.stock && c.features {
		t.Fatal("PROXY=stock has no FEATURES")
	}
	if c.nodes = zones; os.Getenv("NODES") != "" {
		var err error
		if c.nodes, err = strconv.Atoi(os.Getenv("NODES")); err != nil || c.nodes < zones {
			t.Fatalf("NODES=%q: want a number, of at least %d", os.Getenv("NODES"), zones)
		}
	}
	focus := os.Getenv("FOCUS")
	if c.whole = focus == ""; c.whole {
		focus = `\[sig-network\]`
	}
	var err error
	if c.focus, err = regexp.Compile(focus); err != nil {
		t.Fatalf("FOCUS: %v", err)
	}
	text, err := os.ReadFile(environmentFile)
	if err == nil {
		c.environment, err = specs.ParseEnvironment(string(text))
	}
	if err != nil {
		t.Fatalf("%s: %v", environmentFile, err)
	}
	conditions := []string{"in " + c.mode}
	if !lab.SCTPAvailable() {
		conditions = append(conditions, "without sctp")
	}
	c.environment = c.environment.Of(conditions...)
	return c
}

// either is an environment variable that has one of two values, the first if it is empty.
func either(t *testing.T, variable, first, second string) string {
	t.Helper()
	switch value := os.Getenv(variable); value {
	case "":
		return first
	case first, second:
		return value
	default:
		t.Fatalf("%s=%q: want %s or %s", variable, value, first, second)
		return ""
	}
}

func (c conformance) program(name string) string { return filepath.Join(c.dir, "bin", name) }

// resultFile has the results of the last run of a proxy in this mode, on so many nodes.
func (c conformance) resultFile(proxy string) string {
	return filepath.Join(filepath.Dir(c.dir), "results", fmt.Sprintf("%s-%s-%d.json", proxy, c.mode, c.nodes))
}

// proxy is the name of what is judged.
func (c conformance) proxy() string {
	switch {
	case c.stock:
		return "stock"
	case c.features:
		return "origin-all"
	}
	return "origin"
}

// save keeps the results to compare others with, if they are of all specs.
func (c conformance) save(t *testing.T, results []specs.Result) {
	t.Helper()
	if !c.whole {
		return
	}
	content, err := json.MarshalIndent(results, "", " ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(c.resultFile("")), 0o755)
	}
	if err == nil {
		err = os.WriteFile(c.resultFile(c.proxy()), content, 0o644)
	}
	if err != nil {
		t.Error(err)
	}
}

// judge fails the test if a spec has failed that should not, or has not passed but does with stock kube-proxy, if that has been
// run.
func (c conformance) judge(t *testing.T, results []specs.Result) {
	t.Helper()
	verdict := specs.Judge(results, c.focus, c.environment)
	var table strings.Builder
	if err := verdict.Write(&table); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s, %s mode:\n%s", c.proxy(), c.mode, &table)
	for _, spec := range verdict.Failed {
		t.Errorf("failed: %s", spec.Name)
	}
	if c.stock {
		return
	}
	stock, err := c.stockResults()
	if errors.Is(err, fs.ErrNotExist) {
		t.Logf("stock kube-proxy has not been run in this mode; compare with 'make test-conformance PROXY=stock MODE=%s'", c.mode)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	worse, other := specs.Differences(results, stock)
	for _, line := range worse {
		t.Errorf("passes with stock kube-proxy: %s", line)
	}
	t.Logf("%d specs ended otherwise with stock kube-proxy, and did not pass:%s", len(other), strings.Join(append([]string{""}, other...), "\n    "))
}

// stockResults returns those of the last run of stock kube-proxy.
func (c conformance) stockResults() (stock []specs.Result, err error) {
	content, err := os.ReadFile(c.resultFile("stock"))
	if err == nil {
		err = json.Unmarshal(content, &stock)
	}
	if err != nil {
		return nil, fmt.Errorf("results of stock kube-proxy: %w", err)
	}
	return stock, nil
}
