package cmd

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
)

// fakeAPI answers lists, by their paths. Other paths do not exist, and those in forbidden may not be read.
type fakeAPI struct {
	lists     map[string]any
	forbidden map[string]bool
}

func (a *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	list, known := a.lists[r.URL.Path]
	switch {
	case a.forbidden[r.URL.Path]:
		w.WriteHeader(http.StatusForbidden)
		list = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden}
	case !known:
		w.WriteHeader(http.StatusNotFound)
		list = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}
	}
	_ = json.NewEncoder(w).Encode(list)
}

// The paths of lists.
const (
	servicesPath = "/api/v1/services"
	slicesPath   = "/apis/discovery.k8s.io/v1/endpointslices"
	nodesPath    = "/api/v1/nodes"
	leasesPath   = "/apis/coordination.k8s.io/v1/namespaces/origin-node/leases"
	ownServices  = "/api/v1/namespaces/shop/services"
	ownSlices    = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices"
)

// smallCluster has three nodes, of which node-2 has an egress IP of the Service shop/web, and a Service of another namespace
// that claims it as well.
func smallCluster() *fakeAPI {
	services := []v1.Service{
		claiming("shop", "web", 9, "203.0.113.10"), claiming("shop", "db", 8, "203.0.113.11"), claiming("thief", "web", 1, "203.0.113.10"),
	}
	endpoints := []discovery.EndpointSlice{
		endpointsOf("shop", "web", "10.128.0.11", "node-1", "10.128.0.12", "node-2"), endpointsOf("shop", "db", "10.128.0.13", "node-3"),
		endpointsOf("thief", "web", "10.128.0.66", "node-1"),
	}
	var nodes []v1.Node
	for i, name := range []string{"node-1", "node-2", "node-3"} {
		nodes = append(nodes, v1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"node-restriction.kubernetes.io/egress-assignable": ""}},
			Status: v1.NodeStatus{
				Addresses:  []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "192.0.2." + string(rune('1'+i))}},
				Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}},
			},
		})
	}
	list := func(kind, version string, items any) any {
		return map[string]any{"kind": kind, "apiVersion": version, "items": items}
	}
	inNamespace := func(items []v1.Service) []v1.Service {
		return slices.DeleteFunc(slices.Clone(items), func(s v1.Service) bool { return s.Namespace != "shop" })
	}
	return &fakeAPI{forbidden: map[string]bool{}, lists: map[string]any{
		servicesPath: list("ServiceList", "v1", services),
		ownServices:  list("ServiceList", "v1", inNamespace(services)),
		slicesPath:   list("EndpointSliceList", "discovery.k8s.io/v1", endpoints),
		ownSlices:    list("EndpointSliceList", "discovery.k8s.io/v1", endpoints[:2]),
		nodesPath:    list("NodeList", "v1", nodes),
		leasesPath: list("LeaseList", "coordination.k8s.io/v1", []coordinationv1.Lease{
			announcing("node-2", `{"203.0.113.10": {"epoch": 3}}`, `{"cluster-cidr":["10.128.0.0/14"],"egress-snat-assign-cidrs":["203.0.113.0/28"]}`),
		}),
	}}
}

func claiming(namespace, name string, days int, ip string) v1.Service {
	return v1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(now.AddDate(0, 0, -days))},
		Spec:       v1.ServiceSpec{ClusterIP: "172.30.0.1", ExternalIPs: []string{ip}, Ports: []v1.ServicePort{{Port: 80, Protocol: v1.ProtocolTCP}}},
	}
}

// endpointsOf is the EndpointSlice of a Service, with addresses and the nodes of these.
func endpointsOf(namespace, service string, addressesAndNodes ...string) discovery.EndpointSlice {
	slice := discovery.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: service + "-1", Labels: map[string]string{discovery.LabelServiceName: service}},
		AddressType: discovery.AddressTypeIPv4,
	}
	for pair := range slices.Chunk(addressesAndNodes, 2) {
		slice.Endpoints = append(slice.Endpoints, discovery.Endpoint{
			Addresses: pair[:1], NodeName: &pair[1], TargetRef: &v1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: service + "-of-" + pair[1]},
		})
	}
	return slice
}

// announcing is the Lease of a node.
func announcing(node, addresses, configuration string) coordinationv1.Lease {
	lease := coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "origin-node", Name: node, Annotations: map[string]string{holders.Annotation: addresses, holders.RevisionAnnotation: "4"}},
		Spec:       coordinationv1.LeaseSpec{LeaseDurationSeconds: ptr.To(int32(40)), RenewTime: &metav1.MicroTime{Time: time.Now()}},
	}
	if configuration != "" {
		lease.Annotations[holders.ConfigurationAnnotation] = configuration
	}
	return lease
}

// setLeases replaces all Leases.
func (a *fakeAPI) setLeases(leases ...coordinationv1.Lease) {
	a.lists[leasesPath] = map[string]any{"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "items": leases}
}

// kubectl runs 'kubectl egress' with a kubeconfig for the API, whose context has the namespace shop.
func kubectl(t *testing.T, api http.Handler, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	return kubectlAs(t, api, &clientcmdapi.AuthInfo{Token: "token"}, args...)
}

func kubectlAs(t *testing.T, api http.Handler, user *clientcmdapi.AuthInfo, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	server := httptest.NewTLSServer(api)
	defer server.Close()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
	config.AuthInfos["u"] = user
	config.Contexts["desk"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u", Namespace: "shop"}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	root := commandFor(append([]string{"/usr/local/bin/kubectl-egress", "--kubeconfig=" + file, "--context=desk"}, args...))
	var out, errOut bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&errOut)
	err = root.ExecuteContext(t.Context())
	return out.String(), errOut.String(), err
}

const (
	deskList = `POD IP        PROTOCOLS   EGRESS IP      VIA      SERVICE    NODE
10.128.0.11   tcp         203.0.113.10   node-2   shop/web   node-1
10.128.0.12   tcp         203.0.113.10   here     shop/web   node-2
10.128.0.13   tcp         203.0.113.11   here     shop/db    node-3
`
	deskListUnknown = `POD IP        PROTOCOLS   EGRESS IP      VIA   SERVICE    NODE
10.128.0.11   tcp         203.0.113.10   -     shop/web   node-1
10.128.0.12   tcp         203.0.113.10   -     shop/web   node-2
10.128.0.13   tcp         203.0.113.11   -     shop/db    node-3
`
	deskRefused = `SERVICE     EGRESS IP      POD IP   PROTOCOL   REASON                  MESSAGE
thief/web   203.0.113.10   <all>    <all>      OwnedByOtherNamespace   egress IP 203.0.113.10 belongs to the namespace shop, for its Service shop/web is older
`
	deskAddresses = `ADDRESS        NAMESPACE   HOLDER   EPOCH    PODS
203.0.113.10   shop        node-2   3        2
203.0.113.11   shop        <none>   <none>   1
`
	deskPool = `NODE     STATE     ADDRESSES
node-1   unknown   0
node-2   live      1
node-3   unknown   0

No live node announces 203.0.113.11.
`
	deskExplain = `Pod 10.128.0.11 (shop/web-of-node-1 on node-1)

tcp
  Bound:        the Service shop/web gives it 203.0.113.10 (spec.externalIPs[0]) for tcp, an address that belongs to the namespace shop
  Egress IP:    on node-2 (epoch 3, known by lease)
  This packet would leave node-1 by steer0 to node-2, which SNATs it to 203.0.113.10.
`
	deskExplainUnread = `Pod 10.128.0.66 (of no EndpointSlice that could be read; give the pod's namespace with -n to read those of that alone)

tcp
  Not bound:    as far as could be read, no Service that claims an egress IP has the endpoint 10.128.0.66
  This packet would leave as the network plugin decides, usually as the node's address.
`
	deskService = `Service shop/db

IPv4: 203.0.113.11 (spec.externalIPs[0]) for tcp
  Granted: the address belongs to the namespace shop, because its Service shop/db is the oldest that has it
  Egress IP: no node has 203.0.113.11 on an interface, so it is used where its pods run
  POD IP        PROTOCOL   LEAVES AS      GIVEN BY   POD                 NODE     REFUSED
  10.128.0.13   tcp        203.0.113.11   shop/db    shop/db-of-node-3   node-3   <none>
`
	deskJSON = `{
  "problems": [],
  "steering": "vxlan",
  "bindings": [
    {
      "podIP": "10.128.0.13",
      "protocols": [
        "tcp"
      ],
      "egressIP": "203.0.113.11",
      "via": {
        "way": "here"
      },
      "service": {
        "namespace": "shop",
        "name": "db"
      },
      "field": "spec.externalIPs[0]",
      "owner": {
        "namespace": "shop",
        "name": "db"
      },
      "pod": {
        "namespace": "shop",
        "name": "db-of-node-3"
      },
      "node": "node-3"
    }
  ]
}
`
)

func TestDesk_ShowsTheCluster(t *testing.T) {
	for command, want := range map[string]string{
		"list": deskList, "refused -A": deskRefused, "refused": "", "refused --namespace=thief": deskRefused, "addresses": deskAddresses, "addresses -n thief --no-headers": "",
		"pool": deskPool, "explain 10.128.0.11 --protocol=tcp": deskExplain, "explain db": deskService, "explain db -n thief": "",
	} {
		stdout, stderr, err := kubectl(t, smallCluster(), strings.Fields(command)...)
		if diff := cmp.Diff(want, stdout); diff != "" {
			t.Errorf("%s prints (-want +got):\n%s%s", command, diff, stderr)
		}
		if command == "explain db -n thief" {
			if err == nil || !strings.Contains(err.Error(), "there is no claim of the Service thief/db") {
				t.Errorf("%s: %v", command, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", command, err)
		}
	}
}

// TestDesk_EmptyAnswersNameTheNamespace: nothing in the context's namespace is not nothing at all.
func TestDesk_EmptyAnswersNameTheNamespace(t *testing.T) {
	for command, want := range map[string]string{
		"refused":           "nothing is refused in the namespace shop (in others: 1)\n",
		"list -n empty":     "no pod is bound to an egress IP in the namespace empty (in others: 3)\n",
		"addresses -n none": "no Service claims an egress IP in the namespace none (in others: 2)\n",
	} {
		_, stderr, err := kubectl(t, smallCluster(), strings.Fields(command)...)
		if diff := cmp.Diff(want, stderr); diff != "" || err != nil {
			t.Errorf("%s: %v, says (-want +got):\n%s", command, err, diff)
		}
	}
	api := smallCluster()
	for _, n := range api.lists[nodesPath].(map[string]any)["items"].([]v1.Node) {
		clear(n.Labels)
	}
	api.lists[leasesPath].(map[string]any)["items"].([]coordinationv1.Lease)[0].Annotations[holders.Annotation] = `{}`
	stdout, _, err := kubectl(t, api, "pool")
	if want := "no Node is in the pool (proxyArguments.egress-snat-assign-nodes)\n\nNo live node announces 203.0.113.10.\nNo live node announces 203.0.113.11.\n"; stdout != want || err != nil {
		t.Errorf("pool: %q, %v; want %q", stdout, err, want)
	}
}

func TestDesk_Documents(t *testing.T) {
	api := smallCluster()
	api.lists[slicesPath] = map[string]any{"kind": "EndpointSliceList", "apiVersion": "discovery.k8s.io/v1", "items": []discovery.EndpointSlice{endpointsOf("shop", "db", "10.128.0.13", "node-3")}}
	stdout, stderr, err := kubectl(t, api, "list", "-o", "json")
	if diff := cmp.Diff(deskJSON, stdout); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s%s", err, diff, stderr)
	}
	stdout, _, err = kubectl(t, api, "pool", "-o", "yaml")
	const pool = "members:\n- name: node-1\n  state: unknown\n- held:\n  - 203.0.113.10\n  name: node-2\n  state: live\n- name: node-3\n  state: unknown\nunheld:\n- ip: 203.0.113.11\n"
	if diff := cmp.Diff(pool, stdout); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	stdout, _, err = kubectl(t, api, "explain", "10.128.0.13", "--protocol=tcp", "-o", "json")
	if err != nil || strings.Contains(stdout, `"here"`) && !strings.Contains(stdout, `"way": "here"`) || strings.Contains(stdout, `"rules"`) || strings.Contains(stdout, `"ready"`) {
		t.Errorf("%v: a document has what only nodes know:\n%s", err, stdout)
	}
}

func TestDesk_SaysWhatTheUsersRightsLeaveOut(t *testing.T) {
	config := filepath.Join(t.TempDir(), "node-config.yaml")
	if err := os.WriteFile(config, []byte("kind: NodeConfig\napiVersion: v1\nmasterKubeConfig: absent\nproxyArguments: {cluster-cidr: [10.128.0.0/14], egress-snat-key-file: [/absent]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		forbidden []string
		args      string
		stdout    string
		says      []string
	}{
		"nodes": {[]string{nodesPath}, "list", deskList, []string{"no right to list nodes: an egress IP that is a node's address is not recognised"}},
		"other namespaces": {[]string{servicesPath, slicesPath}, "list", deskList, []string{
			"no right to list services in all namespaces, but in shop: ", "no right to list endpointslices.discovery.k8s.io in all namespaces, but in shop: ",
		}},
		"leases": {[]string{leasesPath}, "list --config=" + config, deskListUnknown, []string{
			"no right to list leases.coordination.k8s.io in the namespace origin-node: it is not known which nodes have which egress IPs",
		}},
		"no addresses": {[]string{leasesPath}, "addresses --config=" + config, "", []string{
			"no right to list leases.coordination.k8s.io in the namespace origin-node: it is not known which nodes have which egress IPs",
		}},
		"pod of another namespace": {[]string{servicesPath, slicesPath}, "explain 10.128.0.66 --protocol=tcp", deskExplainUnread, []string{
			"no right to list services in all namespaces, but in shop: ", "no right to list endpointslices.discovery.k8s.io in all namespaces, but in shop: ",
		}},
		"endpoints": {[]string{slicesPath, ownSlices}, "refused -A", deskRefused, []string{"no right to list endpointslices.discovery.k8s.io in the namespace shop: no pods are known"}},
	} {
		api := smallCluster()
		for _, path := range test.forbidden {
			api.forbidden[path] = true
		}
		stdout, stderr, err := kubectl(t, api, strings.Fields(test.args)...)
		if !errors.Is(err, errIncomplete) {
			t.Errorf("%s: %v, want %v", name, err, errIncomplete)
		}
		if diff := cmp.Diff(test.stdout, stdout); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", name, diff)
		}
		for _, says := range test.says {
			if !strings.Contains(stderr, "left out: "+says) {
				t.Errorf("%s: says %q, want %q", name, stderr, says)
			}
		}
		if !strings.HasPrefix(test.stdout, "N") && strings.Contains(stderr, "\nno ") {
			t.Errorf("%s: says that there are none, which it cannot know: %q", name, stderr)
		}
		const none = "\nas far as could be read, it is not known which nodes have the egress IPs that Services claim\n"
		if strings.Contains(stderr, none) != (name == "no addresses") {
			t.Errorf("%s: says %q", name, stderr)
		}
		if lines := strings.Count(stderr, "left out: "); lines != len(test.says) {
			t.Errorf("%s: %d things are left out, want %d:\n%s", name, lines, len(test.says), stderr)
		}
	}
}

// TestDesk_AddressesOfNoNamespace: where nothing is claimed in the namespaces that the user may read, holders are not what is unknown.
func TestDesk_AddressesOfNoNamespace(t *testing.T) {
	api := smallCluster()
	api.forbidden[servicesPath], api.lists[ownServices] = true, map[string]any{"kind": "ServiceList", "apiVersion": "v1"}
	_, stderr, err := kubectl(t, api, "addresses")
	if !errors.Is(err, errIncomplete) || !strings.Contains(stderr, "\nas far as could be read, no Service claims an egress IP in any namespace\n") {
		t.Errorf("error %v, and says %q", err, stderr)
	}
}

// TestDesk_ErrorsAreTold also where the user may not read everything, which is a status and no error.
func TestDesk_ErrorsAreTold(t *testing.T) {
	api := smallCluster()
	api.forbidden[nodesPath] = true
	_, stderr, err := kubectl(t, api, "explain", "nobody")
	if err == nil || errors.Is(err, errIncomplete) || !strings.Contains(stderr, "left out: ") {
		t.Errorf("error %v, and says %q; want that there is no such claim, and what is left out", err, stderr)
	}
	api.forbidden[servicesPath] = true // but for those of shop
	_, _, err = kubectl(t, api, "explain", "thief/web")
	if err == nil || !strings.HasPrefix(err.Error(), "as far as could be read, there is no claim of the Service thief/web: ") || !strings.HasSuffix(err.Error(), "give that with -n to read it alone") {
		t.Errorf("of a Service that was not read: %v", err)
	}
}

// TestDesk_OIDC: a user may be one that kubectl knows by an OpenID provider.
func TestDesk_OIDC(t *testing.T) {
	token := "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"exp":32503680000}`)) + ".e30" // of the year 3000
	user := &clientcmdapi.AuthInfo{AuthProvider: &clientcmdapi.AuthProviderConfig{
		Name: "oidc", Config: map[string]string{"idp-issuer-url": "https://idp.example", "client-id": "kubectl", "id-token": token},
	}}
	if stdout, stderr, err := kubectlAs(t, smallCluster(), user, "list"); stdout != deskList || err != nil {
		t.Errorf("list prints %q, and %q: %v", stdout, stderr, err)
	}
}

func TestDesk_DoesNotGuessTheConfiguration(t *testing.T) {
	const here, there = `{"cluster-cidr":["10.128.0.0/14"]}`, `{"cluster-cidr":["10.0.0.0/8"]}`
	for name, test := range map[string]struct {
		leases []coordinationv1.Lease
		says   string
		fails  bool
	}{
		"nobody publishes":   {[]coordinationv1.Lease{announcing("node-2", "{}", "")}, "Give a node's configuration with --config=FILE", true},
		"a Lease of no Node": {[]coordinationv1.Lease{announcing("gone", "{}", here)}, "no node publishes its configuration", true},
		"unreadable":         {[]coordinationv1.Lease{announcing("node-2", "{}", "{")}, "Lease origin-node/node-2: metadata.annotations[network.openshift.io/egress-configuration]", true},
		"off":                {[]coordinationv1.Lease{announcing("node-2", "{}", `{"egress-snat":["false"]}`)}, "egress SNAT is off on the nodes", true},
		"they differ": {[]coordinationv1.Lease{announcing("node-1", "{}", there), announcing("node-2", "{}", here), announcing("node-3", "{}", here)},
			"warning: the nodes differ in their configuration; the plan uses that of most nodes. node-2, node-3: " + here + ". node-1: " + there, false},
	} {
		api := smallCluster()
		api.setLeases(test.leases...)
		stdout, stderr, err := kubectl(t, api, "list")
		said := stderr
		if err != nil {
			said += err.Error()
		}
		if !strings.Contains(said, test.says) || (err != nil) != test.fails || test.fails && stdout != "" {
			t.Errorf("%s: %v, prints %q, %q; want %q", name, err, stdout, stderr, test.says)
		}
	}
}

func TestDesk_LostHolder(t *testing.T) {
	api := smallCluster()
	lease := announcing("node-2", `{"203.0.113.10": {"epoch": 3}}`, `{"cluster-cidr":["10.128.0.0/14"]}`)
	lease.Spec.RenewTime.Time = time.Now().Add(-time.Minute)
	api.setLeases(lease)
	if stdout, _, err := kubectl(t, api, "addresses"); err != nil || strings.Contains(stdout, "lost") {
		t.Errorf("%v: a node whose process is dead has its addresses:\n%s", err, stdout)
	}
	nodes := api.lists[nodesPath].(map[string]any)["items"].([]v1.Node)
	nodes[1].Status.Conditions[0].Status = v1.ConditionFalse
	stdout, _, err := kubectl(t, api, "addresses")
	if err != nil || !strings.Contains(stdout, "node-2 (lost)") {
		t.Errorf("%v: want node-2 (lost):\n%s", err, stdout)
	}
	if stdout, _, err := kubectl(t, api, "list", "--no-headers"); err != nil || strings.Count(stdout, "<dropped>") != 2 {
		t.Errorf("%v: want two pods whose packets are dropped:\n%s", err, stdout)
	}
}

// TestDesk_Migrate: commands for what is granted, comments for what people have to decide, and a comparison that finds what would be lost.
func TestDesk_Migrate(t *testing.T) {
	api := smallCluster()
	allow := func(more string) {
		api.setLeases(announcing("node-2", `{"203.0.113.10": {"epoch": 3}}`, `{"cluster-cidr":["10.128.0.0/14"]`+more+`}`))
	}
	const (
		commands = `kubectl patch service -n shop db --type=merge -p '{"metadata":{"annotations":{"network.openshift.io/egress-ip":"203.0.113.11"}}}'
kubectl patch service -n shop web --type=merge -p '{"metadata":{"annotations":{"network.openshift.io/egress-ip":"203.0.113.10"}}}'
`
		thief = "# thief/web: its claim is refused as it is: OwnedByOtherNamespace: egress IP 203.0.113.10 belongs to the namespace shop, for its Service shop/web is older\n"
		same  = `with the annotations: the bindings of the cluster are the same, byte for byte: 3 of IPv4, 0 of IPv6
with the annotations and without external IPs: the bindings of the cluster are the same, byte for byte: 3 of IPv4, 0 of IPv6
`
	)
	allow(`,"egress-snat-allowed-cidrs":["203.0.113.0/24"]`)
	for _, test := range []struct {
		args string
		want string
		err  error
	}{{"migrate", commands, nil}, {"migrate -A", commands + thief, errUndecided}, {"migrate --check", same, nil}} {
		out, errs, err := kubectl(t, api, strings.Fields(test.args)...)
		if diff := cmp.Diff(test.want, out); diff != "" || errs != "" || !errors.Is(err, test.err) {
			t.Errorf("%s: %v, %s (-want +got):\n%s", test.args, err, errs, diff)
		}
	}
	services := api.lists[servicesPath]
	bare := claiming("shop", "both", 1, "203.0.113.12")
	bare.Spec.ExternalIPs = append(bare.Spec.ExternalIPs, "ff02::1")
	done := claiming("shop", "done", 1, "203.0.113.13")
	done.Annotations = map[string]string{cluster.EgressIPAnnotation: "203.0.113.13"}
	api.lists[servicesPath] = map[string]any{"kind": "ServiceList", "apiVersion": "v1", "items": []v1.Service{bare, done}}
	const both = "# shop/both: its claim is refused as it is: InvalidAddress: egress IP ff02::1 is not a unicast address that packets can come from\n" +
		`kubectl patch service -n shop both --type=merge -p '{"metadata":{"annotations":{"network.openshift.io/egress-ip":"203.0.113.12,ff02::1"}}}'` + "\n"
	if out, _, err := kubectl(t, api, "migrate"); out != both || !errors.Is(err, errUndecided) {
		t.Errorf("one IP family is refused: %v, %s", err, out)
	}
	if out, _, err := kubectl(t, api, "migrate", "--namespace=bank"); err != nil || out != "# no Service in the namespace bank needs a command\n" {
		t.Errorf("nothing to do: %v, %s", err, out)
	}
	allow("")
	if out, _, err := kubectl(t, api, "migrate"); !errors.Is(err, errUndecided) || !strings.Contains(out, "# shop/done: without external IPs its claim would be refused: NotAllowed: ") {
		t.Errorf("a Service with the annotation and without a permission: %v, %s", err, out)
	}
	api.lists[servicesPath] = services
	out, _, err := kubectl(t, api, "migrate")
	const permission = "# shop/db: without external IPs its claim would be refused: NotAllowed: egress IP 203.0.113.11 is named by the annotation only, and no argument of the nodes allows it: add its network to proxyArguments.egress-snat-allowed-cidrs " +
		"(which then limits all egress IPs), or add shop=CIDR to proxyArguments.egress-snat-namespace-cidrs (which then limits the egress IPs of this namespace)\n"
	if !errors.Is(err, errUndecided) || !strings.Contains(out, permission+"kubectl patch service -n shop db ") {
		t.Errorf("without a permission: %v, %s", err, out)
	}
	if out, _, err := kubectl(t, api, "migrate", "--check"); err == nil || !strings.Contains(err.Error(), "with the annotations and without external IPs, something would change: the Service shop/") {
		t.Errorf("without a permission, --check: %v, %s", err, out)
	}
}

func TestDesk_CompletionIsOfThePlugin(t *testing.T) {
	root := commandFor([]string{"/bin/kubectl_complete-egress", "l"})
	var out bytes.Buffer
	root.SetOut(&out)
	if err := root.ExecuteContext(t.Context()); err != nil || !strings.HasPrefix(out.String(), "list\t") {
		t.Errorf("%v: completions %q, want list", err, out.String())
	}
}

func TestDesk_HelpIsItsOwn(t *testing.T) {
	for _, c := range newDeskCommand().Commands() {
		if c.Name() != "version" && (c.Long != deskHelps[c.Name()].long || c.Long == "" || strings.Contains(c.Example, "openshift egress")) {
			t.Errorf("%s has the help of a node's command", c.Name())
		}
	}
}

// TestDesk_PrintsNoControlCharacters: whatever others write into annotations, Leases and EndpointSlices, no command sends it to the
// terminal as it is.
func TestDesk_PrintsNoControlCharacters(t *testing.T) {
	const evil = "\x1b]0;owned\x07\x1b[2J\u202e\u009b31m\r"
	escaped := func(text string) string { // as JSON allows it, and YAML
		quoted := ""
		for _, r := range text {
			quoted += fmt.Sprintf(`\u%04x`, r)
		}
		return `"` + quoted + `"`
	}
	leases := map[string][]coordinationv1.Lease{
		"addresses":     {announcing("node-2", `{`+escaped(evil)+`: {"epoch": `+escaped(evil)+`}}`, `{"cluster-cidr":["10.128.0.0/14"]}`)},
		"no JSON":       {announcing("node-2", evil, `{"cluster-cidr":["10.128.0.0/14"]}`), announcing("node-1", `{}`, evil)},
		"argument":      {announcing("node-2", `{}`, `{`+escaped(evil)+`: ["x"]}`)},
		"value":         {announcing("node-2", `{}`, `{"cluster-cidr":[`+escaped(evil)+`], "egress-snat-assign-nodes": [`+escaped(evil)+`]}`)},
		"configuration": {announcing("node-2", `{}`, evil)},
	}
	for name, of := range leases {
		api := smallCluster()
		hostile := claiming("shop", "web", 9, "203.0.113.10")
		hostile.Annotations = map[string]string{cluster.Annotation: evil}
		wrong := claiming("shop", "db", 8, evil)
		endpoints := endpointsOf("shop", "web", "10.128.0.11", "node-1")
		endpoints.Endpoints[0].TargetRef.Name, endpoints.Endpoints[0].NodeName = evil, ptr.To(evil)
		foreign := endpointsOf("shop", "api", "10.128.0.14", "node-1")
		foreign.Endpoints[0].TargetRef.Namespace = evil
		services := []v1.Service{hostile, wrong, claiming("shop", "api", 3, "203.0.113.12")}
		for path, kind := range map[string]string{servicesPath: "ServiceList", ownServices: "ServiceList"} {
			api.lists[path] = map[string]any{"kind": kind, "apiVersion": "v1", "items": services}
		}
		for _, path := range []string{slicesPath, ownSlices} {
			api.lists[path] = map[string]any{"kind": "EndpointSliceList", "apiVersion": "discovery.k8s.io/v1", "items": []discovery.EndpointSlice{endpoints, foreign}}
		}
		api.setLeases(of...)
		for _, command := range []string{"list", "list -A -o wide", "list -o json", "list -o yaml", "refused", "refused -o wide", "refused -o yaml", "refused -o json", "addresses", "addresses -o wide",
			"explain 10.128.0.11", "explain 10.128.0.14 -o wide", "explain shop/web -o wide", "explain shop/api", "explain shop/db -o yaml", "pool"} {
			out, errOut, err := kubectl(t, api, strings.Fields(command)...)
			if err != nil {
				errOut += errorText(err)
			}
			if i := strings.IndexFunc(out+errOut, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
				t.Errorf("%s, %s: unprintable text: %q", name, command, out+errOut)
			}
		}
	}
}
