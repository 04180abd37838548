package manifests

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// writeFiles makes dir hold these files besides what it holds.
func writeFiles(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// loadText loads a folder that holds one file.
func loadText(t testing.TB, name, text string) (*Objects, error) {
	t.Helper()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{name: text})
	objects, err := Load(dir)
	if err != nil {
		err = errors.New(strings.ReplaceAll(err.Error(), dir+"/", ""))
	}
	return objects, err
}

func mustLoad(t testing.TB, name, text string) *Objects {
	t.Helper()
	objects, err := loadText(t, name, text)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

const goodService = `apiVersion: v1
kind: Service
metadata:
  name: web
spec:
  clusterIP: 172.30.0.10
  externalIPs: [192.0.2.7]
  ports:
  - port: 80
`

const clusterNetwork = `apiVersion: config.openshift.io/v1
kind: Network
metadata:
  name: cluster
spec:
  clusterNetwork:
  - {hostPrefix: 23, cidr: 10.128.0.0/14}
  serviceNetwork: [172.30.0.0/16]
  externalIP:
    policy:
      allowedCIDRs: [203.0.113.0/24]
      rejectedCIDRs: [203.0.113.7/32]
    autoAssignCIDRs: [198.51.100.0/24]
status:
  clusterNetwork:
  - {hostPrefix: 23, cidr: 10.132.0.0/14}
  serviceNetwork: ['fd02::/112']
`

func serviceCIDR(name, cidrs string) string {
	return fmt.Sprintf("---\napiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata: {name: %s}\nspec:\n  cidrs: [%s]\n", name, cidrs)
}

func TestLoad_BrokenObject(t *testing.T) {
	tests := []struct {
		name string
		file string // a.yaml if empty
		text string
		want string // all of the error
	}{{
		name: "empty",
		want: `a.yaml: is empty; if it is meant to hold nothing, write a comment or remove it`,
	}, {
		name: "syntax",
		text: "# comment\napiVersion: v1\nkind: [Service\nmetadata: {}\n",
		want: `a.yaml:3: not YAML: did not find expected ',' or ']'`,
	}, {
		name: "syntax in a later document",
		text: goodService + "---\n" + "a: b: c\n",
		want: `a.yaml:11: not YAML: mapping values are not allowed in this context`,
	}, {
		name: "tab",
		text: "apiVersion: v1\nkind: Service\nspec:\n\tports: []\n",
		want: `a.yaml:4: not YAML: found character that cannot start any token`,
	}, {
		name: "not UTF-8",
		text: "# fine\n---\nkind: \xff\n",
		want: `a.yaml:3: not UTF-8 text`,
	}, {
		name: "not an object",
		text: "# c\n- a\n- b\n",
		want: `a.yaml:2: a value of type array is written where an object with fields is wanted`,
	}, {
		name: "scalar",
		text: "hello\n",
		want: `a.yaml:1: a value of type string is written where an object with fields is wanted`,
	}, {
		name: "kind missing",
		text: "\n\napiVersion: v1\nmetadata: {name: a}\n",
		want: `a.yaml:3: apiVersion and kind are needed; accepted: ` + accepted,
	}, {
		name: "kind not accepted",
		text: "apiVersion: apps/v1\n# what for?\nkind: Deployment\nmetadata: {name: a, namespace: b}\n",
		want: `a.yaml:3: Deployment b/a: kind: kind "Deployment" of apiVersion "apps/v1" is not accepted; accepted: ` + accepted,
	}, {
		name: "version not accepted",
		text: "apiVersion: discovery.k8s.io/v1beta1\nkind: EndpointSlice\nmetadata: {name: a}\n",
		want: `a.yaml:2: EndpointSlice a: kind: kind "EndpointSlice" of apiVersion "discovery.k8s.io/v1beta1" is not accepted; accepted: ` + accepted,
	}, {
		name: "kind is a number",
		text: "apiVersion: v1\nkind: 5\n",
		want: `a.yaml:2: kind: a value of type number is written where a string is wanted`,
	}, {
		name: "unknown fields",
		text: strings.Replace(goodService, "  externalIPs:", "  externalIP: 1.2.3.4\n  externalIPs:", 1) + "    nodeProt: 5\n",
		want: `a.yaml:7: Service web: unknown field "spec.externalIP"` + "\n" +
			`a.yaml:11: Service web: unknown field "spec.ports[0].nodeProt"`,
	}, {
		name: "case matters",
		text: strings.Replace(goodService, "clusterIP", "clusterip", 1),
		want: `a.yaml:6: Service web: unknown field "spec.clusterip"`,
	}, {
		name: "duplicate field",
		text: goodService + "  clusterIP: 172.30.0.11\n",
		want: `a.yaml:10: field "clusterIP" is written twice, first on line 6`,
	}, {
		name: "duplicate field in JSON",
		file: "a.json",
		text: "{\"apiVersion\":\"v1\",\n\"kind\":\"Namespace\",\n\"metadata\":{\n\"name\":\"a\",\n\"name\":\"b\"}}",
		want: `a.json:5: Namespace b: duplicate field "metadata.name"`,
	}, {
		name: "type of an item's field",
		text: goodService + "  - port: \"443\"\n    name: https\n",
		want: `a.yaml:10: Service web: spec.ports.port: a value of type string is written where a number (int32) is wanted`,
	}, {
		name: "number too large",
		text: strings.Replace(goodService, "80", "99999999999", 1),
		want: `a.yaml:9: Service web: spec.ports.port: a value of type number 99999999999 is written where a number (int32) is wanted`,
	}, {
		name: "yes is a bool, as to kubectl",
		text: strings.Replace(goodService, "name: web", "name: web\n  labels:\n    a: b\n    egress: yes", 1),
		want: `a.yaml:7: Service web: metadata.labels: a value of type bool is written where a string is wanted`,
	}, {
		name: "invalid values",
		text: strings.ReplaceAll(strings.Replace(goodService, "[192.0.2.7]", "\n  - 192.0.2.7\n  - 300.1.1.1", 1), "80", "0"),
		want: `a.yaml:9: Service default/web: spec.externalIPs[1]: Invalid value: "300.1.1.1": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)` + "\n" +
			`a.yaml:11: Service default/web: spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive` + "\n" +
			`a.yaml:11: Service default/web: spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive`,
	}, {
		name: "label with dots",
		text: strings.Replace(goodService, "name: web", "name: web\n  labels:\n    example.com/x: ok\n    example.com/y: not ok", 1),
		want: `a.yaml:7: Service default/web: metadata.labels: Invalid value: "not ok": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
	}, {
		name: "no name",
		text: "apiVersion: v1\nkind: Namespace\nmetadata:\n  labels: {}\n",
		want: `a.yaml:3: Namespace: metadata.name: Required value: name or generateName is required`,
	}, {
		name: "namespace on a node",
		text: "apiVersion: v1\nkind: Node\nmetadata:\n  name: a\n  namespace: b\n",
		want: `a.yaml:5: Node b/a: metadata.namespace: Forbidden: not allowed on this type`,
	}, {
		name: "no cluster IP",
		text: strings.Replace(goodService, "  clusterIP: 172.30.0.10\n", "", 1),
		want: `a.yaml:5: Service default/web: spec.clusterIP: Required value: there is no API server to allocate one: write it in the file ("None" for a headless Service)`,
	}, {
		name: "one of two cluster IPs",
		text: goodService + "  ipFamilyPolicy: RequireDualStack\n",
		want: `a.yaml:5: Service default/web: spec.clusterIPs[1]: Required value: an address of each family is needed (ipFamilies: [IPv4], ipFamilyPolicy: RequireDualStack); there is no API server to allocate one: write it in the file`,
	}, {
		name: "two cluster IPs but single stack",
		text: goodService + "  clusterIPs: [172.30.0.10, fd00::10]\n  ipFamilyPolicy: SingleStack\n",
		want: `a.yaml:11: Service default/web: spec.ipFamilyPolicy: Invalid value: "SingleStack": must be 'RequireDualStack' or 'PreferDualStack' when there are two cluster IPs or IP families`,
	}, {
		name: "two cluster IPs of one family",
		text: goodService + "  clusterIPs: [172.30.0.10, 172.30.0.11]\n",
		want: `a.yaml:5: Service default/web: spec.ipFamilies[1]: Duplicate value: "IPv4"` + "\n" +
			`a.yaml:10: Service default/web: spec.clusterIPs: Invalid value: ["172.30.0.10","172.30.0.11"]: may specify no more than one IP for each IP family`,
	}, {
		name: "node port missing",
		text: goodService + "  type: NodePort\n",
		want: `a.yaml:9: Service default/web: spec.ports[0].nodePort: Required value: there is no API server to allocate one: write it in the file`,
	}, {
		name: "node port out of range",
		text: goodService + "    nodePort: 70000\n  type: NodePort\n",
		want: `a.yaml:10: Service default/web: spec.ports[0].nodePort: Invalid value: 70000: must be between 1 and 65535, inclusive`,
	}, {
		name: "health check node port missing",
		text: goodService + "  type: LoadBalancer\n  externalTrafficPolicy: Local\n",
		want: `a.yaml:5: Service default/web: spec.healthCheckNodePort: Required value: there is no API server to allocate one: write it in the file`,
	}, {
		name: "status of a load balancer",
		text: goodService + "  type: LoadBalancer\nstatus:\n  loadBalancer:\n    ingress:\n    - ip: nope\n",
		want: `a.yaml:14: Service default/web: status.loadBalancer.ingress[0].ip: Invalid value: "nope": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`,
	}, {
		name: "EndpointSlice",
		text: "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: a}\naddressType: IPv4\nendpoints:\n- addresses: [10.0.0.1]\n- addresses:\n  - fd00::1\n",
		want: `a.yaml:8: EndpointSlice default/a: endpoints[1].addresses: Invalid value: "fd00::1": must be an IPv4 address`,
	}, {
		name: "Endpoints",
		text: "apiVersion: v1\nkind: Endpoints\nmetadata: {name: a}\nsubsets:\n- addresses:\n  - ip: 127.0.0.1\n  ports: [{port: 80}]\n",
		want: `a.yaml:6: Endpoints default/a: subsets[0].addresses[0].ip: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)`,
	}, {
		name: "Endpoints whose slice is invalid",
		text: "apiVersion: v1\nkind: Endpoints\nmetadata: {name: a}\nsubsets:\n- addresses:\n  - ip: 10.0.0.1\n  ports: [{name: x, port: 80}, {name: x, port: 81}]\n",
		want: `a.yaml:4: Endpoints default/a: subsets: its EndpointSlice would be invalid: ports[1].name: Duplicate value: "x"`,
	}, {
		name: "ServiceCIDR without CIDRs",
		text: "apiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata: {name: a}\nspec:\n  cidrs: []\n",
		want: `a.yaml:5: ServiceCIDR a: spec.cidrs: Required value: at least one CIDR required`,
	}, {
		name: "ServiceCIDR of three CIDRs",
		text: serviceCIDR("a", "10.0.0.0/16, 10.1.0.0/16, fd00::/64"),
		want: `a.yaml:6: ServiceCIDR a: spec.cidrs: Invalid value: ["10.0.0.0/16","10.1.0.0/16","fd00::/64"]: may only hold up to 2 values`,
	}, {
		name: "ServiceCIDR of one family",
		text: serviceCIDR("a", "10.0.0.0/16, 10.1.0.0/16"),
		want: `a.yaml:6: ServiceCIDR a: spec.cidrs: Invalid value: ["10.0.0.0/16","10.1.0.0/16"]: may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64`,
	}, {
		name: "ServiceCIDRs that are none",
		text: "apiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata: {name: a, namespace: b}\nspec:\n  cidrs:\n  - fd00::0/64\n  - 10.0.0.1/16\n",
		want: `a.yaml:3: ServiceCIDR b/a: metadata.namespace: Forbidden: not allowed on this type` + "\n" +
			`a.yaml:6: ServiceCIDR b/a: spec.cidrs[0]: Invalid value: "fd00::0/64": must be in canonical form ("fd00::/64")` + "\n" +
			`a.yaml:7: ServiceCIDR b/a: spec.cidrs[1]: Invalid value: "10.0.0.1/16": must not have bits set beyond the prefix length`,
	}, {
		name: "unknown field of a ServiceCIDR",
		text: serviceCIDR("a", "10.0.0.0/16") + "  cidr: 10.0.0.0/16\n",
		want: `a.yaml:7: ServiceCIDR a: unknown field "spec.cidr"`,
	}, {
		name: "ServiceCIDR twice",
		text: serviceCIDR("a", "10.0.0.0/16") + serviceCIDR("a", "10.1.0.0/16"),
		want: `a.yaml:8: ServiceCIDR a: the same object is written twice, first as ServiceCIDR a at a.yaml:2`,
	}, {
		name: "Network of another name",
		text: strings.Replace(clusterNetwork, "name: cluster", "name: other", 1),
		want: `a.yaml:4: Network other: metadata.name: Invalid value: "other": a cluster has one Network, and its name is "cluster"`,
	}, {
		name: "Network without a name",
		text: strings.Replace(clusterNetwork, "name: cluster", "labels: {}", 1),
		want: `a.yaml:3: Network: metadata.name: Required value: name or generateName is required`,
	}, {
		name: "unknown field of a Network",
		text: strings.Replace(clusterNetwork, "allowedCIDRs", "allowedCIDR", 1),
		want: `a.yaml:11: Network cluster: unknown field "spec.externalIP.policy.allowedCIDR"`,
	}, {
		name: "Network of another group",
		text: strings.Replace(clusterNetwork, "config.openshift.io", "operator.openshift.io", 1),
		want: `a.yaml:2: Network cluster: kind: kind "Network" of apiVersion "operator.openshift.io/v1" is not accepted; accepted: ` + accepted,
	}, {
		name: "CIDRs of a Network",
		text: strings.NewReplacer(
			"10.128.0.0/14", "10.128.0.0", "172.30.0.0/16", "172.30.0.0/33", "203.0.113.0/24", "203.0.113/24",
			"203.0.113.7/32", "''", "198.51.100.0/24", "example.com", "10.132.0.0/14", "010.132.0.0/14", "fd02::/112", "fd02::/129",
		).Replace(clusterNetwork),
		want: strings.ReplaceAll(`a.yaml:7: Network cluster: spec.clusterNetwork[0].cidr: Invalid value: "10.128.0.0": WANTED
a.yaml:8: Network cluster: spec.serviceNetwork[0]: Invalid value: "172.30.0.0/33": WANTED
a.yaml:11: Network cluster: spec.externalIP.policy.allowedCIDRs[0]: Invalid value: "203.0.113/24": WANTED
a.yaml:12: Network cluster: spec.externalIP.policy.rejectedCIDRs[0]: Invalid value: "": WANTED
a.yaml:13: Network cluster: spec.externalIP.autoAssignCIDRs[0]: Invalid value: "example.com": WANTED
a.yaml:16: Network cluster: status.clusterNetwork[0].cidr: Invalid value: "010.132.0.0/14": WANTED
a.yaml:17: Network cluster: status.serviceNetwork[0]: Invalid value: "fd02::/129": WANTED`, "WANTED", "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"),
	}, {
		name: "item of a list",
		text: "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Namespace\n  metadata:\n    name: a\n- apiVersion: v1\n  kind: Service\n  metadata:\n    name: b\n  spec:\n    clusterIP: None\n    type: What\n    ports: []\n",
		want: `a.yaml:14: Service default/b: spec.type: Unsupported value: "What": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"`,
	}, {
		name: "wrong kind in a typed list",
		text: "apiVersion: v1\nkind: ServiceList\nitems:\n- apiVersion: v1\n  kind: Namespace\n  metadata:\n    name: a\n",
		want: `a.yaml:5: Namespace a: kind: a ServiceList holds only objects of kind Service`,
	}, {
		name: "list in a list",
		text: "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: List\n",
		want: `a.yaml:5: kind: a List inside of a list is not accepted`,
	}, {
		name: "null in a list",
		text: "apiVersion: v1\nkind: List\nitems:\n- null\n",
		want: `a.yaml:4: apiVersion and kind are needed; accepted: ` + accepted,
	}, {
		name: "unknown field of a list",
		text: "apiVersion: v1\nkind: List\nitem: []\n",
		want: `a.yaml:3: List: unknown field "item"`,
	}, {
		name: "twice in a file",
		text: goodService + "---\n" + goodService,
		want: `a.yaml:11: Service default/web: the same object is written twice, first as Service default/web at a.yaml:1`,
	}, {
		name: "Endpoints twice",
		text: manyEndpoints("a", 1) + "---\n" + manyEndpoints("a", 2),
		want: `a.yaml:9: Endpoints default/a: the same object is written twice, first as Endpoints default/a at a.yaml:1`,
	}, {
		name: "cluster IP and node port twice",
		text: goodService + "    nodePort: 30080\n  type: NodePort\n---\n" + strings.Replace(goodService, "web", "web2", 1) + "    nodePort: 30080\n  type: NodePort\n",
		want: `a.yaml:18: Service default/web2: spec.clusterIP: the cluster IP 172.30.0.10 belongs already to Service default/web at a.yaml:1` + "\n" +
			`a.yaml:22: Service default/web2: spec.ports[0].nodePort: the node port TCP 30080 belongs already to Service default/web at a.yaml:1`,
	}, {
		name: "two objects in flow style",
		text: "{apiVersion: v1, kind: Namespace, metadata: {name: a}}\n{apiVersion: v1, kind: Namespace, metadata: {name: b}}\n",
		want: `a.yaml:2: not YAML: did not find expected <document start>`,
	}, {
		name: "alias that contains itself",
		text: "apiVersion: v1\nkind: Namespace\nmetadata: &a\n  name: x\n  labels: *a\n",
		want: `a.yaml:1: not YAML: anchor 'a' value contains itself`,
	}, {
		name: "alias bomb",
		text: "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f]\nh: &h [*g,*g,*g,*g,*g,*g,*g,*g]\ni: [*h,*h,*h,*h,*h,*h,*h,*h]\n",
		want: `a.yaml:1: aliases make this document larger than 64 MiB`,
	}, {
		name: "field of an alias",
		text: "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Namespace\n  metadata: &m\n    name: a\n    nam: b\n- apiVersion: v1\n  kind: Node\n  metadata: *m\n",
		want: `a.yaml:8: Namespace a: unknown field "metadata.nam"` + "\n" + `a.yaml:8: Node a: unknown field "metadata.nam"`,
	}, {
		name: "JSON syntax",
		file: "a.json",
		text: "{\"apiVersion\": \"v1\",\n \"kind\": }\n",
		want: `a.json:2: not JSON: invalid character '}' looking for beginning of value`,
	}, {
		name: "JSON cut off",
		file: "a.json",
		text: "{\"apiVersion\": \"v1\",\n \"kind\": \"Namespace\",\n",
		want: `a.json:3: not JSON: unexpected EOF`,
	}, {
		name: "YAML in a JSON file",
		file: "a.json",
		text: goodService,
		want: `a.json:1: not JSON: invalid character 'a' looking for beginning of value`,
	}, {
		name: "field of a second JSON value, indented with tabs",
		file: "a.json",
		text: "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"a\"}}\n\n{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"Node\",\n\t\"metadata\": {\n\t\t\"name\": \"A\\u00e4\"\n\t}\n}\n",
		want: `a.json:7: Node Aä: metadata.name: Invalid value: "Aä": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
	}, {
		name: "time",
		text: "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n  creationTimestamp: yesterday\n",
		want: `a.yaml:1: Namespace a: parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"`,
	}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.file == "" {
				test.file = "a.yaml"
			}
			_, err := loadText(t, test.file, test.text)
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Errorf("-want +got:\n%s\n%s", diff, err)
			}
		})
	}
}

func TestLoad_BrokenFolder(t *testing.T) {
	dir := t.TempDir()
	_, err := Load(filepath.Join(dir, "none"))
	if !errors.Is(err, os.ErrNotExist) || err.Error() != dir+"/none: read folder: no such file or directory" {
		t.Errorf("got %v", err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "b.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(createFile(t, filepath.Join(dir, "c.yaml")), maxFileSize+1); err != nil {
		t.Fatal(err)
	}
	writeFiles(t, dir, map[string]string{"d.yaml": goodService, "e.yaml": goodService})
	_, err = Load(dir)
	want := strings.ReplaceAll(`DIR/a.yaml: find file: no such file or directory
DIR/b.yaml: is not a regular file (mode prw-------)
DIR/c.yaml: is larger than 64 MiB
DIR/e.yaml:1: Service default/web: the same object is written twice, first as Service default/web at DIR/d.yaml:1`, "DIR", dir)
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	var first *Error
	if !errors.As(err, &first) || first.File != dir+"/a.yaml" {
		t.Errorf("first error: %v", first)
	}
}

// TestLoad_DeepNesting: neither the decoders nor what walks their trees may run out of
// stack.
func TestLoad_DeepNesting(t *testing.T) {
	const n = 200_000
	for name, text := range map[string]string{
		"a.yaml": "a: " + strings.Repeat("[", n) + strings.Repeat("]", n),
		"b.yaml": strings.Repeat("- ", n) + "a",
		"c.yaml": strings.Repeat("{a: ", 9000) + "1" + strings.Repeat("}", 9000),
		"d.yaml": strings.Repeat("{a: ", 9000) + "1, a: 1, a: 2" + strings.Repeat("}", 9000),
		"a.json": strings.Repeat("[", n) + strings.Repeat("]", n),
		"b.json": strings.Repeat(`{"a":`, 9000) + "1" + strings.Repeat("}", 9000),
	} {
		if _, err := loadText(t, name, text); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func createFile(t *testing.T, path string) string {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLoad_AnyFolder is about everything that a folder may look like.
func TestLoad_AnyFolder(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"a.yaml": "# a comment\n--- # another\n" + goodService + "---\n---\n# nothing\n...\n---\nnull\n--- {apiVersion: v1, kind: Namespace, metadata: {name: flow}}\n",
		"b.yml":  "\ufeff%YAML 1.1\n---\r\napiVersion: v1\r\nkind: ServiceList\r\nmetadata: {resourceVersion: \"5\"}\r\nitems:\r\n- metadata:\r\n    name: b\r\n    namespace: other\r\n    creationTimestamp: 2024-01-02T03:04:05Z\r\n    resourceVersion: \"7\"\r\n    uid: u-b\r\n  spec: {clusterIPs: [fd00::1, 10.0.0.1], ports: [{port: 53, protocol: UDP}]}\r\n",
		"g.yaml": clusterNetwork + serviceCIDR("v4", "10.0.0.0/16") + serviceCIDR("dual", "10.1.0.0/16, 'fd00::/64'") + "status: {conditions: [{type: Ready, status: 'True', reason: a, message: b, lastTransitionTime: 2024-01-02T03:04:05Z}]}\n",
		"c.json": `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"c1","annotations":{"x":"\ud83d\ude00\/"}}}{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"},"status":{"addresses":[{"type":"InternalIP","address":"10.1.1.1"}]}}]}`,
		// None of these is read.
		".hidden.yaml": "{", "d.txt": "{", "e.yaml~": "{", "f.yaml.bak": "{", "yaml": "{",
	})
	if err := os.Mkdir(filepath.Join(dir, "sub.yaml"), 0o755); err != nil {
		t.Fatal(err)
	}
	objects, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range resources {
		for _, o := range r.of(objects) {
			names = append(names, r.kind+" "+keyOf(o))
			if o.GetResourceVersion() != "" || o.GetUID() == "" || o.GetObjectKind().GroupVersionKind().Kind != r.kind {
				t.Errorf("%s: version %q, UID %q, kind %v", keyOf(o), o.GetResourceVersion(), o.GetUID(), o.GetObjectKind())
			}
		}
	}
	want := []string{"Service default/web", "Service other/b", "Node /n1", "Namespace /c1", "Namespace /flow",
		"ServiceCIDR /dual", "ServiceCIDR /v4", "Network /cluster"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	b := objects.Services[1]
	if b.UID != "u-b" || b.CreationTimestamp.UTC().String() != "2024-01-02 03:04:05 +0000 UTC" {
		t.Errorf("UID %q, created %v", b.UID, b.CreationTimestamp)
	}
	if web := objects.Services[0]; !web.CreationTimestamp.IsZero() || web.UID != derivedUID("Service", "default", "web") {
		t.Errorf("UID %q, created %v", web.UID, web.CreationTimestamp)
	}
	if got := objects.Namespaces[0].Annotations["x"]; got != "😀/" {
		t.Errorf("annotation %q", got)
	}
	if network := objects.Networks[0]; network.UID != derivedUID("Network", "", "cluster") || len(network.Status.ServiceNetwork) != 1 {
		t.Errorf("UID %q, status %v", network.UID, network.Status)
	}
	if len(objects.ServiceCIDRs[0].Status.Conditions) != 1 {
		t.Errorf("status of the ServiceCIDR is lost: %v", objects.ServiceCIDRs[0].Status)
	}
	if len(objects.Nodes[0].Status.Addresses) != 1 {
		t.Errorf("status of the node is lost: %v", objects.Nodes[0].Status)
	}
}

// TestLoad_ServiceDefaults compares what is derived with what the API server makes.
func TestLoad_ServiceDefaults(t *testing.T) {
	tests := []struct {
		name, spec string
		want       string // type, clusterIP, clusterIPs, policy, families
	}{
		{"IPv4", "clusterIP: 10.0.0.1", "ClusterIP 10.0.0.1 [10.0.0.1] SingleStack [IPv4]"},
		{"IPv6", "clusterIP: fd00::1", "ClusterIP fd00::1 [fd00::1] SingleStack [IPv6]"},
		{"dual", "clusterIPs: [fd00::1, 10.0.0.1]", "ClusterIP fd00::1 [fd00::1 10.0.0.1] RequireDualStack [IPv6 IPv4]"},
		{"dual preferred", "clusterIPs: [10.0.0.1, fd00::1], ipFamilyPolicy: PreferDualStack", "ClusterIP 10.0.0.1 [10.0.0.1 fd00::1] PreferDualStack [IPv4 IPv6]"},
		{"preferred, not got", "clusterIP: 10.0.0.1, ipFamilyPolicy: PreferDualStack", "ClusterIP 10.0.0.1 [10.0.0.1] PreferDualStack [IPv4]"},
		{"headless", "clusterIP: None, selector: {a: b}", "ClusterIP None [None] SingleStack [IPv4]"},
		{"headless dual", "clusterIP: None, selector: {a: b}, ipFamilies: [IPv6], ipFamilyPolicy: RequireDualStack", "ClusterIP None [None] RequireDualStack [IPv6 IPv4]"},
		{"headless, no selector", "clusterIP: None", "ClusterIP None [None] RequireDualStack [IPv4 IPv6]"},
		{"headless, no selector, single", "clusterIP: None, ipFamilyPolicy: SingleStack, ipFamilies: [IPv6]", "ClusterIP None [None] SingleStack [IPv6]"},
		{"load balancer without node ports", "clusterIP: 10.0.0.1, type: LoadBalancer", "LoadBalancer 10.0.0.1 [10.0.0.1] SingleStack [IPv4]"},
		{"external name", "type: ExternalName, externalName: example.com", "ExternalName  [] - []"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			objects := mustLoad(t, "a.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 80}], "+test.spec+"}\n")
			spec := objects.Services[0].Spec
			policy := "-"
			if spec.IPFamilyPolicy != nil {
				policy = string(*spec.IPFamilyPolicy)
			}
			got := fmt.Sprintf("%s %s %v %s %v", spec.Type, spec.ClusterIP, spec.ClusterIPs, policy, spec.IPFamilies)
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if port := spec.Ports[0]; port.Protocol != v1.ProtocolTCP || port.TargetPort.IntValue() != 80 {
				t.Errorf("port is not defaulted: %v", port)
			}
		})
	}
}

func TestLoad_IsDeterministic(t *testing.T) {
	parts := []string{
		goodService,
		strings.NewReplacer("web", "api", "0.10", "0.11").Replace(goodService),
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: a, labels: {z: z, b: b, c: c}}\n",
		manyEndpoints("web", 2500),
	}
	one := mustLoad(t, "a.yaml", strings.Join(parts, "---\n"))
	for range 5 {
		parts = append(parts[1:], parts[0])
		if diff := cmp.Diff(one, mustLoad(t, "b.yaml", strings.Join(parts, "---\n"))); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	}
}

// manyEndpoints is an Endpoints object with n addresses.
func manyEndpoints(name string, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: v1\nkind: Endpoints\nmetadata: {name: %s}\nsubsets:\n- ports: [{port: 8080}]\n  addresses:\n", name)
	for i := range n {
		fmt.Fprintf(&b, "  - ip: 10.%d.%d.%d\n", 1+i>>16, i>>8&255, i&255)
	}
	return b.String()
}

func TestLoader_KeepsWhatIsUnchanged(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"a.yaml": goodService, "b.yaml": manyEndpoints("web", 3)})
	l := newLoader(dir)
	load := func() (*v1.Service, *discoveryv1.EndpointSlice) {
		t.Helper()
		objects, err := l.load()
		if err != nil {
			t.Fatal(err)
		}
		return objects.Services[0], objects.EndpointSlices[0]
	}
	service, slice := load()
	writeFiles(t, dir, map[string]string{"a.yaml": goodService + "# changed\n"})
	service2, slice2 := load()
	if service == service2 {
		t.Error("a changed file was not read")
	}
	if slice != slice2 {
		t.Error("an unchanged file was decoded again")
	}
}
