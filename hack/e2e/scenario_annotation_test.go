package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/hack/lab"
	egresscluster "github.com/openshift/origin-node/pkg/egress/cluster"
)

// annotated is a cluster in which Services name their egress IPs.
type annotated struct{ *world }

// namedEgressIPs gives a Service the annotation.
func namedEgressIPs(ips ...string) func(*v1.Service) {
	return func(svc *v1.Service) {
		if svc.Annotations == nil {
			svc.Annotations = map[string]string{}
		}
		svc.Annotations[egresscluster.EgressIPAnnotation] = strings.Join(ips, ",")
	}
}

// TestAnnotation_NamesEgressIPs: without external IPs, of headless Services, on the way over from external IPs with connections that go
// on, and only where the nodes' arguments allow it; and what they refuse, the API server refuses at apply. The same where the proxier
// does not serve external IPs any more.
func TestAnnotation_NamesEgressIPs(t *testing.T) {
	for _, way := range []struct {
		name     string
		settings settings
		share    share
		gates    string
	}{{"iptables", settings{}, inCI, ""}, {"nftables", settings{nftables: true}, usual, "  feature-gates: [AllowServiceExternalIPs=false]\n"}} {
		t.Run(way.name, func(t *testing.T) {
			belongsTo(t, way.share)
			way.settings.arguments = `  egress-snat-allowed-cidrs: ["203.0.113.0/24,2001:db8:113::/48"]
  egress-snat-namespace-cidrs: ["bank=203.0.113.240/28"]
` + way.gates
			w := annotated{newWorld(t, way.settings)}
			w.scenario("a Service without external IPs", w.withoutExternalIPs)
			w.scenario("a headless Service, for all protocols of Services if it has no ports", w.headless)
			w.scenario("an address that nothing allows, and one that is allowed later", w.allowed)
			w.scenario("from external IPs to the annotation, connections go on", w.wayOver)
			w.scenario("the API server refuses what nodes would refuse", w.policy)
		})
	}
}

func (w annotated) withoutExternalIPs() {
	w.namespace("plain")
	w.service("plain", "web", nil, namedEgressIPs(w.ips(10)...), tcp80, udp80)
	var pods []*lab.Host
	for i, m := range w.members {
		pods = append(pods, w.runPod("plain", fmt.Sprintf("web-%d", i+1), m, app("web")))
	}
	w.bound("plain", "web", len(pods))
	for _, pod := range pods {
		w.leaves("tcp", pod, w.ips(10)...)
		w.leaves("udp", pod, w.ips(10)...)
	}
	w.editService("plain", "web", func(svc *v1.Service) { delete(svc.Annotations, egresscluster.EgressIPAnnotation) })
	w.bound("plain", "web", 0)
	w.leaves("tcp", pods[0])
}

func (w annotated) headless() {
	w.namespace("db")
	none := func(svc *v1.Service) { svc.Spec.ClusterIP = v1.ClusterIPNone }
	w.service("db", "db", nil, none, tcp80)
	pod := w.runPod("db", "db-0", w.members[0], app("db"))
	w.bound("db", "db", 0)
	w.leaves("tcp", pod)
	w.editService("db", "db", namedEgressIPs(w.ips(20)...))
	w.bound("db", "db", 1)
	w.leaves("tcp", pod, w.ips(20)...)
	w.leaves("udp", pod)
	another := w.runPod("db", "db-1", w.members[1], app("db"))
	w.bound("db", "db", 2)
	w.leaves("tcp", another, w.ips(20)...)
	w.editService("db", "db", func(svc *v1.Service) { svc.Spec.Ports = nil })
	w.bound("db", "db", 2)
	w.leaves("udp", pod, w.ips(20)...)
	w.deleteService("db", "db")
	w.bound("db", "db", 0)
	w.leaves("tcp", pod)
}

func (w annotated) allowed() {
	w.namespace("greedy")
	w.service("greedy", "web", nil, namedEgressIPs("198.51.100.9"), tcp80)
	pod := w.runPod("greedy", "web-1", w.members[0], app("web"))
	w.warned("greedy", "web", "NotAllowed")
	w.leaves("tcp", pod)
	w.editService("greedy", "web", namedEgressIPs(w.ips(30)...))
	w.bound("greedy", "web", 1)
	w.leaves("tcp", pod, w.ips(30)...)
}

func (w annotated) wayOver() {
	pods := w.shop(w.ips(40)...)
	w.namespace("many")
	many := by(w.T, 10, 50, 1000)
	for i := range many {
		w.service("many", fmt.Sprintf("web-%d", i), []string{fmt.Sprintf("203.0.113.%d", 41+i%100)}, nil, tcp80)
	}
	w.settled()
	before := w.deletions()
	flows := w.flows(pods[0], "tcp", "udp")
	var i identities
	i.expect(w.ips(40), pods...)
	traffic := w.ask(&i, pods...)
	kubeconfig := filepath.Join(w.TempDir(), "kubeconfig")
	w.must(w.WriteKubeconfig(w.Context(), kubeconfig, cluster.Kubeconfig{User: "admin", Groups: []string{"system:masters"}}))
	plugin := filepath.Join(w.TempDir(), "kubectl-egress")
	w.must(os.Symlink(os.Getenv("OPENSHIFT"), plugin))
	migrate := func(args ...string) string {
		cmd := w.Control().Command(w.Context(), plugin, append([]string{"migrate", "--kubeconfig=" + kubeconfig, "--config=" + w.members[0].Config()}, args...)...)
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			w.Fatalf("%v: %v, %s", args, err, errs.String())
		}
		return string(out)
	}
	if out := migrate("--check"); strings.Count(out, "the same, byte for byte") != 2 {
		w.Errorf("--check says %s", out)
	}
	commands := filepath.Join(w.TempDir(), "commands")
	w.must(os.WriteFile(commands, []byte(migrate("-A")), 0o600))
	began := time.Now()
	script := w.Control().Command(w.Context(), "sh", "-ec", `PATH=$1:$PATH; export KUBECONFIG=$2; . "$3"`, "sh", cluster.RequireBinaries(w.T), kubeconfig, commands)
	if out, err := script.CombinedOutput(); err != nil {
		w.Fatalf("%v: %s", err, out)
	}
	w.bound("shop", "web", len(pods))
	w.Logf("%d Services have got the annotation in %v", many+1, time.Since(began).Round(time.Second))
	w.editService("shop", "web", func(svc *v1.Service) { svc.Spec.ExternalIPs = nil })
	for i := range many {
		w.editService("many", fmt.Sprintf("web-%d", i), func(svc *v1.Service) { svc.Spec.ExternalIPs = nil })
	}
	w.bound("shop", "web", len(pods))
	if ended := w.deletions() - before; ended != 0 {
		w.Errorf("the nodes have ended %g connections, want none", ended)
	}
	w.live(flows, w.ips(40)...)
	w.undisturbed(traffic)
	for _, pod := range pods {
		w.leaves("tcp", pod, w.ips(40)...)
	}
}

// deletions is how many connections the nodes' processes have ended.
func (w annotated) deletions() (sum float64) {
	w.Helper()
	for _, m := range w.members {
		sum += w.deleted(m)
	}
	return sum
}

// policy applies what 'openshift egress policy' prints. The API server takes a while until it has compiled it.
func (w annotated) policy() {
	out, errs, status := w.members[0].Openshift("egress", "policy", "--config="+w.members[0].Config())
	if status != 0 {
		w.Fatal(errs)
	}
	file := filepath.Join(w.TempDir(), "policy.yaml")
	w.must(os.WriteFile(file, []byte(out), 0o600))
	w.must(w.Apply(w.Context(), file))
	w.namespace("refused")
	services := w.Client().CoreV1().Services("refused")
	try := func(name string, externalIPs []string, change func(*v1.Service)) error {
		svc := cluster.NewService("refused", name, app(name), externalIPs, tcp80)
		if change != nil {
			change(svc)
		}
		_, err := services.Create(w.Context(), svc, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	const outside = "NotAllowed: proxyArguments.egress-snat-allowed-cidrs does not allow 198.51.100.9 as an egress IP"
	w.eventually(func() error {
		if err := try("web", []string{"198.51.100.9"}, nil); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), outside) {
			return fmt.Errorf("apply says %w", err)
		}
		return nil
	})
	for text, err := range map[string]error{
		"InvalidAddress: egress IP 224.0.0.1 ": try("web", nil, namedEgressIPs("224.0.0.1")),
		"AddressInCluster: egress IP 10.128.0.5 lies in the cluster CIDR 10.128.0.0/14, so it is a pod's address":         try("web", nil, namedEgressIPs("10.128.0.5")),
		"NotAllowed: egress IP 203.0.113.241 lies in 203.0.113.240/28, which proxyArguments.egress-snat-namespace-cidrs ": try("web", []string{"203.0.113.241"}, nil),
		`InvalidAnnotation: annotation network.openshift.io/egress-ip has the value "203.0.113"; name IP addresses, `:     try("web", nil, namedEgressIPs("203.0.113")),
	} {
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), text) {
			w.Errorf("apply says %v, want %s", err, text)
		}
	}
	for name, err := range map[string]error{
		"an external IP": try("a", w.ips(50), nil), "an annotation": try("b", nil, namedEgressIPs(w.ips(50)...)), "nothing": try("c", nil, nil),
		"a headless Service": try("d", nil, func(svc *v1.Service) { svc.Spec.ClusterIP = v1.ClusterIPNone; namedEgressIPs(w.ips(50)...)(svc) }),
	} {
		if err != nil {
			w.Errorf("%s is refused: %v", name, err)
		}
	}
}

// TestAnnotation_HeadlessInThePool: the pool holds the address that a headless Service names, pods on all nodes leave from it, also after
// the processes have started anew, and when its holder fails. These nodes do not follow MetalLB.
func TestAnnotation_HeadlessInThePool(t *testing.T) {
	belongsTo(t, usual)
	w := newIdlePoolWorldOf(t, settings{nodes: 3, arguments: `
egress-snat-namespace-cidrs: ["shop=192.0.2.96/27", "shop=2001:db8:0:2::100/120"]
egress-snat-metallb-namespace: [""]
`})
	w.start()
	w.assignable = addrs(w.egressIPs)
	svc := cluster.NewService("shop", "web", web, nil, tcp80, udp80)
	svc.Spec.ClusterIP = v1.ClusterIPNone
	namedEgressIPs(w.egressIPs...)(svc)
	w.pods = w.shopOf(svc)
	ip := w.v4()
	w.holderOf(ip, nil)
	w.settled()
	w.answered()
	w.unmoved("restarts", w.restartAll)
	holder := w.holderOf(ip, nil)
	c, p := w.keepConnections(ip, w.podsOff(holder)), w.probe(ip, holder)
	began := time.Now()
	w.must(w.SetLink(holder.Host, false))
	w.holderOf(ip, holder)
	w.end(p, ip, "the holder of a headless Service's address fails", began, w.fastest())
	c.end(w, ip, "the holder of a headless Service's address fails", 95)
	w.must(w.SetLink(holder.Host, true))
	w.complete()
}
