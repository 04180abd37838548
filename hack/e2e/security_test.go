package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/hack/lab"
)

const rbacFile = "../../images/node/rbac.yaml"

// everybodys rights are those of every authenticated user, in any cluster.
var everybodys = []string{
	"create selfsubjectaccessreviews.authorization.k8s.io",
	"create selfsubjectreviews.authentication.k8s.io",
	"create selfsubjectrulesreviews.authorization.k8s.io",
}

// nodesRights are what else a node may do to objects of any name. Of the Networks it sees one, the one
// that means anything.
var nodesRights = []string{
	"create events",
	"create events.events.k8s.io",
	"list endpointslices.discovery.k8s.io",
	"list nodes",
	"list servicecidrs.networking.k8s.io",
	"list services",
	"patch events",
	"patch events.events.k8s.io",
	"watch endpointslices.discovery.k8s.io",
	"watch nodes",
	"watch servicecidrs.networking.k8s.io",
	"watch services",
}

// leaseNamespace is where nodes announce their egress IPs, and leaseRights are what a node may do there
// besides.
const leaseNamespace = "origin-node"

var leaseRights = []string{
	"create leases.coordination.k8s.io",
	"list leases.coordination.k8s.io",
	"patch leases.coordination.k8s.io",
	"watch leases.coordination.k8s.io",
	"list secrets origin-node-keys",
	"update secrets origin-node-keys",
	"watch secrets origin-node-keys",
}

// TestRights_WhatANodeNeedsAndNothingElse: every verb is tried on every resource that the API server
// has, with a node's own credentials; and the API server is asked, which knows verbs that no
// request has.
func TestRights_WhatANodeNeedsAndNothingElse(t *testing.T) {
	w := newIdleWorld(t, settings{nodes: 1})
	w.installNetworks()
	node := w.as(w.members[0].File("node.kubeconfig"))

	w.scenario("every verb on every resource", func() { w.tryEverything(node) })
	w.scenario("what the API server says", func() {
		for _, namespace := range []string{"default", "kube-system"} {
			w.says(node, namespace)
		}
		w.says(node, leaseNamespace, leaseRights...)
	})
	w.scenario("what would do most harm", func() { w.tryHarm(node) })
	w.scenario("the one Network that means anything", func() {
		networks := "/apis/config.openshift.io/v1/networks"
		for path, want := range map[string]bool{
			networks + "/cluster": false, networks + "/other": false, networks: false, networks + "?watch=true": false,
			networks + "?fieldSelector=metadata.name%3Dcluster": true, networks + "?fieldSelector=metadata.name%3Dother": false,
		} {
			if status, err := node.request(w.Context(), http.MethodGet, path, nil); err != nil || (status != http.StatusForbidden) != want {
				w.Errorf("GET %s: %d, %v; want it allowed: %v", path, status, err, want)
			}
		}
	})
}

// somebody is a user of the API server.
type somebody struct {
	config *rest.Config
	client kubernetes.Interface
	http   *http.Client
}

// as returns the user of a kubeconfig, in the control plane's namespace.
func (w *world) as(kubeconfig string) *somebody {
	w.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	w.must(err)
	config.Dial, config.QPS = w.Control().DialContext, -1
	client, err := kubernetes.NewForConfig(config)
	w.must(err)
	httpClient, err := rest.HTTPClientFor(config)
	w.must(err)
	w.Cleanup(httpClient.CloseIdleConnections)
	return &somebody{config, client, httpClient}
}

// request makes one and returns the status of the answer.
func (s *somebody) request(ctx context.Context, method, path string, header http.Header) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	body := io.Reader(nil)
	if method != http.MethodGet {
		body = strings.NewReader("{}")
	}
	r, err := http.NewRequestWithContext(ctx, method, s.config.Host+path, body)
	if err != nil {
		return 0, err
	}
	maps.Copy(r.Header, header)
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", string(types.MergePatchType))
	} else if method != http.MethodGet {
		r.Header.Set("Content-Type", "application/json")
	}
	response, err := s.http.Do(r)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// attempt is a verb on a resource.
type attempt struct{ right, method, path string }

// tryEverything fails unless the node may do what it needs, and everybody may, and nothing else.
func (w *world) tryEverything(node *somebody) {
	w.Helper()
	attempts := w.attempts()
	allowed := map[string]bool{}
	var mu sync.Mutex
	var workers sync.WaitGroup
	next := make(chan attempt)
	for range 4 {
		workers.Go(func() {
			for a := range next {
				status, err := node.request(w.Context(), a.method, a.path, nil)
				mu.Lock()
				switch {
				case err != nil || status == http.StatusUnauthorized:
					w.Errorf("%s %s: %d, %v", a.method, a.path, status, err)
				case status != http.StatusForbidden:
					allowed[a.right] = true
				}
				mu.Unlock()
			}
		})
	}
	for _, a := range attempts {
		next <- a
	}
	close(next)
	workers.Wait()
	want := slices.Sorted(slices.Values(slices.Concat(everybodys, nodesRights)))
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(allowed))); diff != "" {
		w.Errorf("what the node may do (-want +got):\n%s", diff)
	}
	w.Logf("%d attempts, of which %d are allowed", len(attempts), len(allowed))
}

// attempts are all verbs on all resources that the API server has, in all versions. Nothing comes of
// those that are allowed: there is no object "nobody", no Event is made of nothing, and the rest is
// only tried.
func (w *world) attempts() (result []attempt) {
	w.Helper()
	_, lists, err := w.Client().Discovery().ServerGroupsAndResources()
	w.must(err)
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		w.must(err)
		prefix := "/apis/" + list.GroupVersion
		if gv.Group == "" {
			prefix = "/api/" + gv.Version
		}
		for _, r := range list.APIResources {
			result = append(result, attemptsOn(prefix, gv.Group, r)...)
		}
	}
	if len(result) < 500 {
		w.Fatalf("%d attempts are not all", len(result))
	}
	return result
}

func attemptsOn(prefix, group string, r metav1.APIResource) []attempt {
	resource, subresource, _ := strings.Cut(r.Name, "/")
	collection := prefix + "/" + resource
	if r.Namespaced {
		collection = prefix + "/namespaces/kube-system/" + resource
	}
	object := collection + "/nobody"
	if subresource != "" {
		object += "/" + subresource
		collection = object
	}
	name := r.Name
	if group != "" {
		name = resource + "." + group
		if subresource != "" {
			name += "/" + subresource
		}
	}
	const try = "?dryRun=All"
	attempts := []attempt{
		{"get", http.MethodGet, object},
		{"create", http.MethodPost, collection + try}, {"update", http.MethodPut, object + try},
		{"patch", http.MethodPatch, object + try}, {"delete", http.MethodDelete, object + try},
	}
	if subresource == "" {
		attempts = append(attempts, attempt{"list", http.MethodGet, collection + "?limit=1"},
			attempt{"watch", http.MethodGet, collection + "?watch=true&timeoutSeconds=1"},
			attempt{"deletecollection", http.MethodDelete, collection + try + "&fieldSelector=metadata.name%3Dnobody"})
	}
	for i := range attempts {
		attempts[i].right += " " + name
	}
	return attempts
}

// says fails unless the API server says of a user that it has the rights of everybody and of a node, in
// a namespace, and these further ones.
func (w *world) says(node *somebody, namespace string, further ...string) {
	w.Helper()
	review, err := node.client.AuthorizationV1().SelfSubjectRulesReviews().Create(w.Context(), &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace},
	}, metav1.CreateOptions{})
	w.must(err)
	if review.Status.Incomplete {
		w.Fatalf("the API server does not know all rights: %s", review.Status.EvaluationError)
	}
	got := map[string]bool{}
	for _, rule := range review.Status.ResourceRules {
		for _, right := range rightsOf(rbacv1.PolicyRule{Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames}) {
			got[right.String()] = true
		}
	}
	want := slices.Concat(everybodys, nodesRights, []string{
		"list networks.config.openshift.io cluster", "watch networks.config.openshift.io cluster",
	}, further)
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got))); diff != "" {
		w.Errorf("what the node may do in the namespace %s (-want +got):\n%s", namespace, diff)
	}
}

// tryHarm tries what a thief of a node's credentials would do.
func (w *world) tryHarm(node *somebody) {
	w.Helper()
	ctx, client := w.Context(), node.client
	secret := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "password"}, StringData: map[string]string{"password": "secret"}}
	_, err := w.Client().CoreV1().Secrets("kube-system").Create(ctx, secret, metav1.CreateOptions{})
	w.must(err)
	ignore := func(_ any, err error) error { return err }
	for what, err := range map[string]error{
		"read a Secret":        ignore(client.CoreV1().Secrets("kube-system").Get(ctx, "password", metav1.GetOptions{})),
		"list its Secrets":     ignore(client.CoreV1().Secrets(leaseNamespace).List(ctx, metav1.ListOptions{})),
		"make one there":       ignore(client.CoreV1().Secrets(leaseNamespace).Create(ctx, &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "more"}}, metav1.CreateOptions{})),
		"delete the keys":      client.CoreV1().Secrets(leaseNamespace).Delete(ctx, "origin-node-keys", metav1.DeleteOptions{}),
		"list all Secrets":     ignore(client.CoreV1().Secrets("").List(ctx, metav1.ListOptions{})),
		"run a pod":            ignore(client.CoreV1().Pods("default").Create(ctx, cluster.NewPod("default", "pod", "node-1", nil), metav1.CreateOptions{})),
		"make a Service":       ignore(client.CoreV1().Services("default").Create(ctx, cluster.NewService("default", "svc", nil, []string{"203.0.113.1"}), metav1.CreateOptions{})),
		"change a Service":     ignore(client.CoreV1().Services("default").Patch(ctx, "kubernetes", types.MergePatchType, []byte(`{"spec":{"externalIPs":["203.0.113.1"]}}`), metav1.PatchOptions{})),
		"delete a Service":     client.CoreV1().Services("default").Delete(ctx, "kubernetes", metav1.DeleteOptions{}),
		"make an endpoint":     ignore(client.DiscoveryV1().EndpointSlices("default").Create(ctx, newEndpointSlice("default", "slice", "kubernetes", "10.128.0.5"), metav1.CreateOptions{})),
		"delete a node":        client.CoreV1().Nodes().Delete(ctx, "node-1", metav1.DeleteOptions{}),
		"change its status":    ignore(client.CoreV1().Nodes().PatchStatus(ctx, "node-1", []byte(`{"status":{"addresses":[]}}`))),
		"delete all Events":    client.EventsV1().Events("default").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
		"delete a namespace":   client.CoreV1().Namespaces().Delete(ctx, "default", metav1.DeleteOptions{}),
		"get somebody's token": ignore(client.CoreV1().ServiceAccounts("kube-system").CreateToken(ctx, "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})),
		"get more rights": ignore(client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "more"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, Name: cluster.NodeGroup}},
		}, metav1.CreateOptions{})),
	} {
		if !apierrors.IsForbidden(err) {
			w.Errorf("to %s: %v; want it forbidden", what, err)
		}
	}
	for header, value := range map[string]string{"Impersonate-User": "admin", "Impersonate-Group": "system:masters", "Impersonate-Uid": "1"} {
		impersonate := http.Header{"Impersonate-User": {"admin"}}
		impersonate.Set(header, value)
		if status, err := node.request(ctx, http.MethodGet, "/api/v1/secrets", impersonate); err != nil || status != http.StatusForbidden {
			w.Errorf("to be somebody else with %s: %d, %v; want %d", header, status, err, http.StatusForbidden)
		}
	}
	for _, path := range []string{"/metrics", "/logs/", "/configz", "/debug/pprof/", "/debug/flags/v"} {
		if status, err := node.request(ctx, http.MethodGet, path, nil); err != nil || status != http.StatusForbidden {
			w.Errorf("GET %s: %d, %v; want %d", path, status, err, http.StatusForbidden)
		}
	}
}

// newEndpointSlice is one that somebody makes by hand, of the Service's port.
func newEndpointSlice(namespace, name, service string, addresses ...string) *discovery.EndpointSlice {
	slice := &discovery.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{discovery.LabelServiceName: service}},
		AddressType: discovery.AddressTypeIPv4,
	}
	number, protocol, portName := int32(port), v1.ProtocolTCP, "tcp"
	slice.Ports = []discovery.EndpointPort{{Name: &portName, Port: &number, Protocol: &protocol}}
	for _, address := range addresses {
		slice.Endpoints = append(slice.Endpoints, discovery.Endpoint{Addresses: []string{address}})
		if strings.Contains(address, ":") {
			slice.AddressType = discovery.AddressTypeIPv6
		}
	}
	return slice
}

// right is one that a role gives.
type right struct{ verb, group, resource, name string }

func (r right) String() string {
	text := r.verb + " " + r.resource
	if r.group != "" {
		text += "." + r.group
	}
	return strings.TrimSpace(text + " " + r.name)
}

func rightsOf(rules ...rbacv1.PolicyRule) (rights []right) {
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						rights = append(rights, right{verb, group, resource, name})
					}
				}
			}
		}
	}
	return rights
}

// shippedRights are those of images/node/rbac.yaml in the whole cluster.
func (w *world) shippedRights() (rights []right) {
	w.Helper()
	text, err := os.ReadFile(rbacFile)
	w.must(err)
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var role rbacv1.ClusterRole
		err := documents.Decode(&role)
		if errors.Is(err, io.EOF) {
			return rights
		}
		w.must(err)
		if role.Kind == "ClusterRole" {
			rights = append(rights, rightsOf(role.Rules...)...)
		}
	}
}

// TestRights_MissingOneIsNamedInTheLog: with all but one of the rights that we ship, its log says which one
// that is. So each of them is needed.
func TestRights_MissingOneIsNamedInTheLog(t *testing.T) {
	belongsTo(t, usual)
	w := newIdleWorld(t, settings{nodes: 1})
	w.installNetworks()
	w.putNetwork(nil, lab.ClusterV4, lab.ClusterV6)
	m := w.members[0]
	w.namespace("shop")
	owner := w.service("shop", "web", w.ips(10), nil)
	w.younger(owner)
	w.namespace("thief")

	// contend has something refused: there is an Event to be made.
	contend := func() {
		w.Helper()
		svc := w.service("thief", "web", w.ips(10), nil)
		w.eventually(func() error {
			select {
			case <-m.Ended():
				return nil
			default:
			}
			if events, err := w.warnings(svc); err == nil && len(events) > 0 || strings.Contains(m.Printed.String(), "cannot ") {
				return err
			}
			return errors.New("there is no Event")
		})
		w.deleteService("thief", "web")
	}
	w.scenario("with all of them it lacks nothing", func() {
		m.Start()
		m.Ready()
		contend()
		if _, errs, status := m.Openshift("start", "node", "--config="+m.Config(), "--dry-run"); status != 0 {
			w.Errorf("the dry run ended with status %d: %s", status, errs)
		}
		m.Stop()
		if log := m.Printed.String(); strings.Contains(log, "orbidden") || strings.Contains(log, "cannot ") {
			w.Error("the log says that something is forbidden")
		}
	})
	for i, missing := range w.shippedRights() {
		w.scenario("without "+missing.String(), func() {
			if missing.verb == "patch" {
				w.Skip("an Event is patched when it is 20 minutes old; the tests of Events in pkg/egress have that")
			}
			user := fmt.Sprintf("without-%d", i)
			w.grantAllBut(user, func(r right) bool { return r == missing })
			w.must(w.WriteKubeconfig(w.Context(), m.File("node.kubeconfig"), cluster.Kubeconfig{User: user, Server: m.link.URL()}))
			says := fmt.Sprintf(`cannot %s resource \"%s\" in API group \"%s\"`, missing.verb, missing.resource, missing.group)
			if missing.verb == "list" {
				_, errs, status := m.Openshift("start", "node", "--config="+m.Config(), "--dry-run")
				if want := strings.ReplaceAll(says, `\`, ""); status == 0 || !strings.Contains(errs, want) {
					w.Errorf("the dry run ended with status %d, and says %q; want %q", status, errs, want)
				}
			}
			m.Configure("")
			if missing.verb == "list" {
				// API servers that cannot stream a list into a watch (KEP-3157) are asked for it.
				m.Configure(`feature-gates: ["WatchListClient=false"]`)
			}
			m.Anew()
			began := time.Now()
			if missing.resource == "events" {
				contend()
			}
			m.Says(says)
			w.Logf("says so after %s", time.Since(began).Round(time.Millisecond))
			m.Kill()
		})
	}
	w.scenario("without the Role for Leases", func() {
		w.grantAllBut("without-leases", func(right) bool { return false })
		w.must(w.WriteKubeconfig(w.Context(), m.File("node.kubeconfig"), cluster.Kubeconfig{User: "without-leases", Server: m.link.URL()}))
		m.Configure("")
		m.Anew()
		m.Says(`resource \"leases\"`)
		m.Says("apply images/node/rbac.yaml, which has the namespace of the Leases")
		m.Kill()
	})
}

// grantAllBut gives a user what we ship, but for the rights that are missing.
func (w *world) grantAllBut(user string, missing func(right) bool) {
	w.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}}
	granted := slices.DeleteFunc(w.shippedRights(), missing)
	for _, r := range granted {
		rule := rbacv1.PolicyRule{Verbs: []string{r.verb}, APIGroups: []string{r.group}, Resources: []string{r.resource}}
		if r.name != "" {
			rule.ResourceNames = []string{r.name}
		}
		role.Rules = append(role.Rules, rule)
	}
	_, err := w.Client().RbacV1().ClusterRoles().Create(w.Context(), role, metav1.CreateOptions{})
	w.must(err)
	_, err = w.Client().RbacV1().ClusterRoleBindings().Create(w.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	w.must(err)
	w.eventually(func() error { // the API server's authorizer learns of it like everybody
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: granted[0].verb, Group: granted[0].group, Resource: granted[0].resource,
		}}}
		review, err := w.Client().AuthorizationV1().SubjectAccessReviews().Create(w.Context(), review, metav1.CreateOptions{})
		if err == nil && !review.Status.Allowed {
			err = fmt.Errorf("%s may not %s yet", user, granted[0])
		}
		return err
	})
}
