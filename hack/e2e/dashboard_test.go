package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/lab"
	process "github.com/openshift/origin-node/hack/node"
)

// dashboardWorld is a pool of three nodes of which the first has a tunnel's ports, too, and the second answers the CNI
// plugin. They give pods source ports. A Prometheus scrapes them.
type dashboardWorld struct {
	*poolWorld
	// began is when the first scrape may have been.
	began time.Time
}

const prometheusPort = 9090

func newDashboardWorld(t *testing.T) *dashboardWorld {
	t.Helper()
	w := &dashboardWorld{poolWorld: newIdlePoolWorld(t, 3)}
	arguments := poolArguments + fmt.Sprintf("metrics-bind-address: [\"0.0.0.0:%d\"]\negress-snat-watch-pods: [\"true\"]\n", metricsPort) + blocksOf512 + "\n"
	w.must(w.Apply(t.Context(), "../../images/node/rbac-cni.yaml"))
	for _, m := range w.members[1:] {
		m.Configure(arguments)
	}
	w.must(w.Apply(t.Context(), "../../images/node/rbac-tunnel.yaml"))
	tunnel := &tunnelWorld{world: w.world, control: w.members[0], period: process.SyncPeriod}
	tunnel.server = tunnel.addressesOf(tunnel.control.Name)
	tunnel.configMap(map[string]string{"dnat-ports-pair": "9100=10264", "https-proxy-ports": "none"}) // a problem
	tunnel.claim("edge-1", tunnel.addressesOf("edge-1")...)
	tunnel.configure(arguments)
	w.startPrometheus()
	w.begin()
	w.sees("sum(up) == 3")
	return w
}

// startPrometheus starts Debian's, with the alerts that we ship. It runs until the test ends.
func (w *dashboardWorld) startPrometheus() {
	w.Helper()
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		lab.Lacks(w.T, "%v; install prometheus", err)
	}
	dir, err := w.Control().MkdirTemp("prometheus-")
	w.must(err)
	alerts, err := filepath.Abs("../../images/node/alerts.yaml")
	w.must(err)
	var targets []string
	for _, m := range w.members {
		targets = append(targets, fmt.Sprintf("%s:%d", m.Host.V4, metricsPort))
	}
	config := filepath.Join(dir, "prometheus.yml")
	w.must(os.WriteFile(config, fmt.Appendf(nil, `{global: {scrape_interval: 1s, evaluation_interval: 1s}, rule_files: [%q],
		scrape_configs: [{job_name: origin-node, static_configs: [{targets: [%s]}]}]}`, alerts, strings.Join(targets, ", ")), 0o600))
	w.runNeighbour("prometheus", w.Control(), nil, binary, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		fmt.Sprintf("--web.listen-address=127.0.0.1:%d", prometheusPort))
	w.began = time.Now()
}

// TestDashboard_EveryQueryHasData, also those of the alerts: of nodes whose pods speak, come and go, that move an egress IP
// and refuse something.
func TestDashboard_EveryQueryHasData(t *testing.T) {
	belongsTo(t, usual)
	w := newDashboardWorld(t)
	board := readDashboard(t)
	w.crowd(50)
	w.runPod("shop", "late", w.members[2], web)
	w.namespace("bank")
	w.service("bank", "late", w.egressIPs, nil, tcp80) // refused: the addresses are shop's
	for least := by(t, 30*time.Second, 30*time.Second, time.Minute); ; {
		w.movesEgressIP()
		w.startsPods()
		if time.Since(w.began) > least {
			break
		}
	}

	var seen []string
	for _, p := range board.all() {
		if _, can := emptyPanels[p.Title]; can {
			_, err := w.highest(p)
			w.must(err)
		} else {
			w.eventually(func() error { return w.shows(p) })
		}
		seen = append(seen, p.Title)
	}
	for title := range emptyPanels {
		if !slices.Contains(seen, title) {
			t.Errorf("the dashboard has no panel %q", title)
		}
	}
	w.variablesHaveValues(board)
	w.alertsAreEvaluated()
	t.Logf("%d panels, after %v", len(seen), time.Since(w.began).Round(time.Second))
}

// emptyPanels have no data, or are zero, as long as nothing is wrong, and say why.
var emptyPanels = map[string]string{
	"Lost egress IPs":                                "the pool takes them from a node that fails",
	"Lost egress IPs, since when":                    "the same",
	"Flows ended for a wrong source address":         "there are none",
	"Nodes that wait for objects":                    "for a moment, at their start",
	"Failed syncs":                                   "none fails",
	"Egress IPs without a holder":                    "the pool has a holder for each",
	"Egress IPs on several nodes":                    "only if nodes disagree",
	"Packets on the fast path":                       "it is off",
	"Throughput of the fast path":                    "the same",
	"Pods on the fast path":                          "the same",
	"Packets dropped by the guard":                   "there is nothing wrong to drop",
	"Nodes with a fault of steering":                 "no node has one",
	"Requests of the CNI plugin that wait":           "each is answered in milliseconds",
	"Nodes with a fault of the plugin":               "a fault is not provoked",
	"Pods that no EndpointSlice names":               "only for a minute-old pod",
	"Writes of the list of plugins":                  "no node has to write it",
	"Ignored addresses of Nodes":                     "no Node tells one",
	"Nodes that do not check sources as they should": "all do",
	"Bound pods behind unknown interfaces":           "all are known",
	"Source NAT of others before egress SNAT":        "there is none",
	"Connections ended that went the wrong way":      "there are none",
	"Source ports of the fullest pod":                "nodes track few flows",
	"Pods with a second block":                       "no block is full",
	"Source ports not in order":                      "they are",
	"Nodes that cannot write it":                     "all can",
	"Lines that wait":                                "none waits for long",
}

// movesEgressIP drains the node that has one, which then takes others again.
func (w *dashboardWorld) movesEgressIP() {
	w.Helper()
	w.complete()
	ip := w.egressIPs[0]
	holder := w.holderOf(ip, nil)
	w.drain(holder, true)
	w.holderOf(ip, holder)
	w.drain(holder, false)
}

// startsPods has the CNI plugin ask for two pods, one after the other: Prometheus takes the first value of a series for no
// increase.
func (w *dashboardWorld) startsPods() {
	w.Helper()
	r := newCNIRuntime(w.world, w.members[1])
	list := r.list(200, 220)
	for _, name := range []string{"first", "second"} {
		pod := r.create("shop", name, web)
		r.end(list, r.start(list, pod))
		r.delete(pod)
		w.sees("count(egress_snat_cni_duration_seconds_count) == 2") // of ADD, and of DEL
	}
}

// dashboard is what the file has of queries.
type dashboard struct {
	Panels     []panel
	Templating struct {
		List []struct{ Name, Type, Query string }
	}
}

type panel struct {
	Title   string
	Targets []struct {
		Expr    string
		Instant bool
	}
	Panels []panel // of a row that is folded
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile("../../images/node/dashboard.json")
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// all are the panels that ask for something.
func (d dashboard) all() (panels []panel) {
	for _, p := range d.Panels {
		for _, p := range append(p.Panels, p) {
			if len(p.Targets) > 0 {
				panels = append(panels, p)
			}
		}
	}
	return panels
}

// asPrometheusKnows replaces Grafana's variables.
var asPrometheusKnows = strings.NewReplacer("$__rate_interval", "15s", "$instance", ".*")

// shows returns an error unless each query of a panel has data, and one a value above 0.
func (w *dashboardWorld) shows(p panel) error {
	values, err := w.highest(p)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(values, math.IsNaN) || slices.Max(values) <= 0 {
		return fmt.Errorf("%q: the highest values of its queries are %v, want one above 0, and no NaN, which is for none", p.Title, values)
	}
	return nil
}

// highest returns the highest value of each query of a panel since the beginning; NaN if it has none.
func (w *dashboardWorld) highest(p panel) (values []float64, err error) {
	for _, target := range p.Targets {
		now := fmt.Sprint(float64(time.Now().UnixMilli()) / 1000)
		path, parameters := "/api/v1/query", url.Values{"query": {asPrometheusKnows.Replace(target.Expr)}, "time": {now}}
		if !target.Instant {
			path += "_range"
			parameters["start"], parameters["end"], parameters["step"] = []string{fmt.Sprint(w.began.Unix())}, []string{now}, []string{"1"}
		}
		var data struct {
			Result []struct {
				Value  [2]any
				Values [][2]any
			}
		}
		if err := w.askPrometheus(path, parameters, &data); err != nil {
			return nil, fmt.Errorf("%q: %s: %w", p.Title, target.Expr, err)
		}
		value := math.NaN()
		for _, series := range data.Result {
			for _, sample := range append(series.Values, series.Value) {
				text, _ := sample[1].(string) // empty if there is none
				if v, err := strconv.ParseFloat(text, 64); err == nil && (v > value || math.IsNaN(value)) {
					value = v
				}
			}
		}
		values = append(values, value)
	}
	return values, nil
}

// sees waits until a condition holds of what Prometheus has scraped.
func (w *dashboardWorld) sees(condition string) {
	w.Helper()
	w.eventually(func() error {
		var data struct{ Result []any }
		if err := w.askPrometheus("/api/v1/query", url.Values{"query": {condition}}, &data); err != nil {
			return err
		}
		if len(data.Result) == 0 {
			return errors.New(condition + " does not hold")
		}
		return nil
	})
}

// askPrometheus decodes what its API answers into data.
func (w *dashboardWorld) askPrometheus(path string, parameters url.Values, data any) error {
	at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), prometheusPort)
	got, err := w.get(w.Control(), at, path+"?"+parameters.Encode())
	if err != nil {
		return err
	}
	answer := struct {
		Error string
		Data  any
	}{Data: data}
	if err := json.Unmarshal([]byte(got.body), &answer); err != nil {
		return fmt.Errorf("Prometheus answers %d, %s: %w", got.status, got.body, err)
	}
	if answer.Error != "" {
		return fmt.Errorf("Prometheus answers %d: %s", got.status, answer.Error)
	}
	return nil
}

var labelValues = regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`)

// variablesHaveValues fails unless the dashboard's variables let a reader choose between the nodes.
func (w *dashboardWorld) variablesHaveValues(d dashboard) {
	w.Helper()
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		query := labelValues.FindStringSubmatch(v.Query)
		if query == nil {
			w.Fatalf("the variable %s asks %q, which is not known here", v.Name, v.Query)
		}
		var values []string
		w.must(w.askPrometheus("/api/v1/label/"+query[2]+"/values", url.Values{"match[]": {query[1]}}, &values))
		if len(values) != len(w.members) {
			w.Errorf("the variable %s has the values %q, want %d", v.Name, values, len(w.members))
		}
	}
}

// alertsAreEvaluated fails unless Prometheus evaluates all alerts without an error.
func (w *dashboardWorld) alertsAreEvaluated() {
	w.Helper()
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	w.must(w.askPrometheus("/api/v1/rules", url.Values{}, &data))
	evaluated := 0
	for _, group := range data.Groups {
		for _, rule := range group.Rules {
			evaluated++
			if rule.Health != "ok" {
				w.Errorf("the alert %s is %s: %s", rule.Name, rule.Health, rule.LastError)
			}
		}
	}
	text, err := os.ReadFile("../../images/node/alerts.yaml")
	w.must(err)
	if want := strings.Count(string(text), "- alert: "); evaluated != want {
		w.Errorf("Prometheus evaluates %d alerts, want %d", evaluated, want)
	}
}
