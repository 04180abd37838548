package manifests

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzLoadFile: no file makes the decoder panic, and what it accepts is valid
// and complete, so that preparing it again changes nothing.
func FuzzLoadFile(f *testing.F) {
	for _, text := range []string{
		goodService, head1, manyEndpoints("a", 3), clusterNetwork, serviceCIDR("a", "10.0.0.0/16, 'fd00::/64'"),
		"apiVersion: v1\nkind: List\nitems:\n- &a {apiVersion: v1, kind: Node, metadata: {name: a}}\n- *a\n",
		"apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: a}\naddressType: IPv4\nports: [{port: 1}, null]\nendpoints: [{addresses: [10.0.0.1], hints: {forZones: [{name: a}]}}]\n",
		"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {clusterIPs: [10.0.0.1, 'fd00::1'], type: LoadBalancer, sessionAffinity: ClientIP, ports: [{port: 80, targetPort: http, nodePort: 30000}]}\nstatus: {loadBalancer: {ingress: [{ip: 1.2.3.4}]}}\n",
		"a: &a\n  b: *a\n<<: [*a, *a]\n---\n...\n%YAML 1.1\n--- {}\n",
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a","creationTimestamp":null}}`,
	} {
		f.Add([]byte(text), false)
		f.Add([]byte(text), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, isJSON bool) {
		name := "a.yaml"
		if isJSON {
			name = "a.json"
		}
		objects, errs := decodeFile(name, data)
		for _, e := range errs {
			if strings.Contains(e.Error(), "cannot be handled") {
				t.Errorf("a panic: %v", e)
			}
			if e.File != name || e.Line < 0 || e.Line > 1+len(data) || e.Error() == "" {
				t.Errorf("error %+v", e)
			}
		}
		if len(errs) > 0 {
			return
		}
		for _, o := range objects {
			before := o.DeepCopyObject()
			if errs := prepare(o.resource, o.apiObject); len(errs) > 0 {
				t.Errorf("%s is not valid: %v", o.title(), errs)
			}
			if diff := cmp.Diff(before, o.apiObject); diff != "" {
				t.Errorf("%s was not complete:\n%s", o.title(), diff)
			}
		}
		assemble(objects)
	})
}
