package manifests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// describe writes an EndpointSlice in a line per endpoint.
func describe(slice *discoveryv1.EndpointSlice) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", slice.AddressType)
	for _, p := range slice.Ports {
		fmt.Fprintf(&b, " %s:%s/%d", *p.Name, *p.Protocol, *p.Port)
	}
	b.WriteByte('\n')
	for _, e := range slice.Endpoints {
		fmt.Fprintf(&b, "%s %t", strings.Join(e.Addresses, ","), *e.Conditions.Ready)
		if e.NodeName != nil {
			fmt.Fprintf(&b, " node=%s", *e.NodeName)
		}
		if e.Hostname != nil {
			fmt.Fprintf(&b, " host=%s", *e.Hostname)
		}
		if e.TargetRef != nil {
			fmt.Fprintf(&b, " target=%s/%s", e.TargetRef.Namespace, e.TargetRef.Name)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

const head1 = "apiVersion: v1\nkind: Endpoints\nmetadata:\n  name: web\n  namespace: shop\n"

func TestMirror_SlicesOfEndpoints(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{{
		name: "both families, not ready, references",
		text: head1 + `subsets:
- addresses:
  - ip: 10.0.0.2
    nodeName: n1
    hostname: h
    targetRef: {kind: Pod, namespace: shop, name: web-2, uid: u2}
  - ip: fd00::2
  notReadyAddresses:
  - ip: 10.0.0.1
  ports:
  - {name: http, port: 8080}
  - {name: dns, port: 53, protocol: UDP}
`,
		want: []string{
			"IPv4 dns:UDP/53 http:TCP/8080\n10.0.0.1 false\n10.0.0.2 true node=n1 host=h target=shop/web-2\n",
			"IPv6 dns:UDP/53 http:TCP/8080\nfd00::2 true\n",
		},
	}, {
		name: "subsets with the same addresses are one, others are not",
		text: head1 + `subsets:
- addresses: [{ip: 10.0.0.1}, {ip: 10.0.0.2}]
  ports: [{name: a, port: 1}]
- addresses: [{ip: 10.0.0.2}, {ip: 10.0.0.1}]
  ports: [{name: b, port: 2}]
- addresses: [{ip: 10.0.0.1}]
  ports: [{name: c, port: 3}]
`,
		want: []string{
			"IPv4 a:TCP/1 b:TCP/2\n10.0.0.1 true\n10.0.0.2 true\n",
			"IPv4 c:TCP/3\n10.0.0.1 true\n",
		},
	}, {
		name: "not ready trumps ready",
		text: head1 + `subsets:
- notReadyAddresses: [{ip: 10.0.0.1}]
  ports: [{port: 1}]
- addresses: [{ip: 10.0.0.1}]
  ports: [{port: 1}]
`,
		want: []string{"IPv4 :TCP/1\n10.0.0.1 false\n"},
	}, {
		name: "no ports",
		text: head1 + "subsets:\n- addresses: [{ip: 10.0.0.1}]\n",
		want: []string{"IPv4\n10.0.0.1 true\n"},
	}, {
		name: "no subsets",
		text: head1,
	}, {
		name: "a lock",
		text: head1 + "  annotations: {control-plane.alpha.kubernetes.io/leader: '{}'}\nsubsets:\n- addresses: [{ip: 10.0.0.1}]\n",
	}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, slice := range mustLoad(t, "a.yaml", test.text).EndpointSlices {
				got = append(got, describe(slice))
				if slice.Ports == nil {
					t.Error("ports are nil, that means all ports")
				}
			}
			less := func(list []string) map[string]int { // the order is that of names
				m := map[string]int{}
				for _, s := range list {
					m[s]++
				}
				return m
			}
			if diff := cmp.Diff(less(test.want), less(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestMirror_Metadata(t *testing.T) {
	slice := mustLoad(t, "a.yaml", head1+`  uid: the-uid
  creationTimestamp: 2024-01-02T03:04:05Z
  labels: {app: web, service.kubernetes.io/headless: "", kubernetes.io/service-name: wrong}
  annotations:
    keep: this
    endpoints.kubernetes.io/last-change-trigger-time: "2024-01-02T03:04:05Z"
    kubectl.kubernetes.io/last-applied-configuration: "{}"
subsets:
- addresses: [{ip: 10.0.0.1}]
`).EndpointSlices[0]
	want := map[string]string{
		"app": "web", "service.kubernetes.io/headless": "",
		"kubernetes.io/service-name":             "web",
		"endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
	}
	if diff := cmp.Diff(want, slice.Labels); diff != "" {
		t.Errorf("labels, -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"keep": "this"}, slice.Annotations); diff != "" {
		t.Errorf("annotations, -want +got:\n%s", diff)
	}
	owner := slice.OwnerReferences[0]
	if owner.Kind != "Endpoints" || owner.UID != "the-uid" || slice.CreationTimestamp.IsZero() || slice.Namespace != "shop" {
		t.Errorf("got %v", slice.ObjectMeta)
	}
}

func TestMirror_TooManyAddressesForOneSlice(t *testing.T) {
	seen := map[string]bool{}
	names := map[string]bool{}
	for _, slice := range mustLoad(t, "a.yaml", manyEndpoints(strings.Repeat("long.", 12)+"abc", 2500)).EndpointSlices {
		if n := len(slice.Endpoints); n > 1000 || n < 100 {
			t.Errorf("%d endpoints in a slice", n)
		}
		if len(slice.Name) > validation.DNS1123SubdomainMaxLength || names[slice.Name] {
			t.Errorf("name %q", slice.Name)
		}
		names[slice.Name] = true
		for _, e := range slice.Endpoints {
			seen[e.Addresses[0]] = true
		}
	}
	if len(seen) != 2500 || len(names) != 3 {
		t.Errorf("%d addresses in %d slices", len(seen), len(names))
	}
}

// TestMirror_NameStaysWhenAnAddressChanges: a slice must not be replaced because an address changed.
func TestMirror_NameStaysWhenAnAddressChanges(t *testing.T) {
	name := func(ip string) string {
		return mustLoad(t, "a.yaml", head1+"subsets:\n- addresses: [{ip: "+ip+"}]\n  ports: [{port: 80}]\n").EndpointSlices[0].Name
	}
	if a, b := name("10.0.0.1"), name("10.0.0.2"); a != b {
		t.Errorf("%s became %s", a, b)
	}
}

func TestMirror_BesideSlicesOfTheSameService(t *testing.T) {
	const slice = "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}\naddressType: IPv4\nendpoints: [{addresses: [10.0.0.9]}]\n"
	const subsets = "subsets:\n- addresses: [{ip: 10.0.0.1}]\n"
	const skip = "  labels: {endpointslice.kubernetes.io/skip-mirror: \"true\"}\n"
	const service = "---\napiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\nspec: {clusterIP: 10.96.0.1, ports: [{port: 80}], selector: {app: web}}\n"
	for _, test := range []struct {
		name, text string
		want       int
	}{
		{"of a Service with a selector", head1 + subsets + slice + service, 1},
		{"slices of a Service with a selector were not saved", head1 + subsets + service, 1},
		{"of a Service without a selector", head1 + subsets + slice + strings.Replace(service, ", selector: {app: web}", "", 1), 2},
		{"both count", head1 + subsets + slice, 2},
		{"a copy of the slices", head1 + skip + subsets + slice, 1},
		{"the slices were not saved", head1 + skip + subsets, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := len(mustLoad(t, "a.yaml", test.text).EndpointSlices); got != test.want {
				t.Errorf("got %d slices, want %d", got, test.want)
			}
		})
	}
}
