package nodeconfig

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	legacyconfigv1 "github.com/openshift/api/legacyconfig/v1"
)

func quantity(s string) *resource.Quantity {
	q := resource.MustParse(s)
	return &q
}

func TestUnused_Fields(t *testing.T) {
	data, err := os.ReadFile("testdata/node-config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		data string
		want []string
	}{{
		name: "nothing",
		data: header + "nodeName: a\nservingInfo: {bindAddress: 0.0.0.0:1}\nproxyArguments: {v: [4]}\nmasterClientConnectionOverrides: {qps: 1}\n",
	}, {
		name: "empty values",
		data: header + "nodeIP: ''\ndnsNameservers: []\nkubeletArguments: {}\npodManifestConfig: null\nenableUnidling: false\nnetworkConfig: {mtu: 0}\n",
	}, {
		name: "everything",
		data: string(data),
		want: []string{
			"authConfig.authenticationCacheSize", "authConfig.authenticationCacheTTL",
			"authConfig.authorizationCacheSize", "authConfig.authorizationCacheTTL",
			"dnsBindAddress", "dnsDomain", "dnsIP", "dnsRecursiveResolvConf",
			"dockerConfig.dockerShimRootDirectory", "dockerConfig.dockerShimSocket", "dockerConfig.execHandlerName",
			"enableUnidling", "imageConfig.format", "kubeletArguments",
			"networkConfig.mtu", "networkConfig.networkPluginName", "networkPluginName", "nodeIP",
			"podManifestConfig.fileCheckIntervalSeconds", "podManifestConfig.path",
			"servingInfo.bindNetwork", "servingInfo.certFile", "servingInfo.clientCA", "servingInfo.keyFile", "servingInfo.namedCertificates",
			"volumeConfig.localQuota.perFSGroup", "volumeDirectory",
		},
	}} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, mustParse(t, tc.data).Unused()); diff != "" {
				t.Errorf("Unused differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFiles_ResolvedSortedUnique(t *testing.T) {
	c := mustParse(t, header+"masterKubeConfig: b/../a\nproxyArguments: {config: [z, z], kubeconfig: [/k, ''], egress_snat_key-file: [/keys], write_config_to: [w]}\n")
	want := []string{"/etc/origin/node/a", "/etc/origin/node/node-config.yaml", "/etc/origin/node/z", "/k", "/keys"}
	if diff := cmp.Diff(want, c.Files()); diff != "" {
		t.Errorf("Files differ (-want +got):\n%s", diff)
	}
}

func TestErrorf_Line(t *testing.T) {
	c := mustParse(t, "# first line\n"+header+"proxyArguments:\n  cluster-cidr:\n  - 10.0.0.0/8\n  a.b: [x]\n  egress_snat: [x]\n")
	for _, tc := range []struct {
		path string
		want int
	}{
		{"proxyArguments.cluster-cidr[0]", 6},
		{"proxyArguments.cluster-cidr[7]", 5},
		{"proxyArguments.a.b[0]", 7},
		{"proxyArguments.a.c", 4},
		{"proxyArguments.egress-snat", 8},
		{"proxyArguments.mode", 4},
		{"servingInfo.bindAddress", 2},
		{"", 2},
	} {
		if got := c.Errorf(tc.path, "wrong").Line; got != tc.want {
			t.Errorf("%q is on line %d, want %d", tc.path, got, tc.want)
		}
	}
	err := c.Errorf("nodeName", "%d: %w", 1, fs.ErrInvalid)
	if !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("%v does not wrap its cause", err)
	}
	if diff := cmp.Diff("/etc/origin/node/node-config.yaml:2: nodeName: 1: invalid argument", err.Error()); diff != "" {
		t.Errorf("message differs (-want +got):\n%s", diff)
	}
}

func TestNearest_Misspellings(t *testing.T) {
	candidates := []string{"cluster-cidr", "cleanup", "v", "proxy-mode", "proxy-port-range"}
	for word, want := range map[string]string{
		"cluster-cidr":  "cluster-cidr",
		"cluster_cidr":  "cluster-cidr",
		"clustercidrs":  "cluster-cidr",
		"cluster-cdir":  "cluster-cidr",
		"PROXY-MODE":    "proxy-mode",
		"cleenup":       "cleanup",
		"V":             "v",
		"x":             "",
		"":              "",
		"kubelet-thing": "",
	} {
		if got := Nearest(word, candidates); got != want {
			t.Errorf("Nearest(%q) is %q, want %q", word, got, want)
		}
	}
}

func TestDistance_Symmetric(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0},
		{"abc", "acb", 1}, {"abcd", "badc", 2}, {"kitten", "sitting", 3}, {"ca", "abc", 3}, {"é", "e", 1},
	} {
		if got := distance([]rune(tc.a), []rune(tc.b)); got != tc.want {
			t.Errorf("distance(%q, %q) is %d, want %d", tc.a, tc.b, got, tc.want)
		}
		if got := distance([]rune(tc.b), []rune(tc.a)); got != tc.want {
			t.Errorf("distance(%q, %q) is %d, want %d", tc.b, tc.a, got, tc.want)
		}
	}
}

// TestParse_AllFields sets every field of the type: the walker can fill each of
// them, also a new one of the vendored type, and loses none.
func TestParse_AllFields(t *testing.T) {
	var want legacyconfigv1.NodeConfig
	fill(t, reflect.ValueOf(&want).Elem())
	want.Kind, want.APIVersion = kind, apiVersion
	want.NodeIP, want.DNSIP, want.DNSNameservers = "192.0.2.1", "192.0.2.1", []string{"192.0.2.1:53"}
	want.DNSBindAddress, want.ServingInfo.BindAddress, want.ServingInfo.BindNetwork = "127.0.0.1:53", "192.0.2.1:1", "tcp"
	want.IPTablesSyncPeriod, want.AuthConfig.AuthenticationCacheTTL, want.AuthConfig.AuthorizationCacheTTL = "1s", "1s", "1s"
	for _, marshal := range []func(any) ([]byte, error){yaml.Marshal, json.Marshal} {
		data, err := marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, mustParse(t, string(data)).NodeConfig); diff != "" {
			t.Errorf("Parse of %s differs (-want +got):\n%s", data, diff)
		}
	}
}

// fill sets v to a value that is not empty and survives Parse.
func fill(t *testing.T, v reflect.Value) {
	switch {
	case v.Type() == quantityType:
		v.Set(reflect.ValueOf(*quantity("1500m")))
	case v.Type() == argumentsType:
		v.Set(reflect.ValueOf(legacyconfigv1.ExtendedArguments{"a": {"b", "true", "4", "<<", "~"}, "c": nil}))
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(0))
		fill(t, v.Index(1))
	case v.Kind() == reflect.String:
		v.SetString("/yes: 'no' # \"5\"")
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(7)
	case v.CanUint():
		v.SetUint(7)
	case v.CanFloat():
		v.SetFloat(0.1)
	default:
		t.Fatalf("a field of type %s: teach the walker and this test", v.Type())
	}
}
