package kubeproxy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"
)

// TestLeaveRouteLocalnet_NeverSet: kube-proxy would end where it cannot make the setting, so it is to need none that is not made. The log
// says what is missing, if anything is.
func TestLeaveRouteLocalnet_NeverSet(t *testing.T) {
	for _, test := range []struct {
		arguments, setting string
		serves, told       bool
	}{
		{"", "0\n", false, true},
		{"", "1\n", true, false},
		{"", "", false, true}, // no such file
		{"nodeport-addresses: [localhost]", "0\n", false, true},
		{"nodeport-addresses: [localhost, 192.0.2.0/24]", "0\n", false, true},
		{"nodeport-addresses: [primary, localhost]", "0\n", false, true},
		{"nodeport-addresses: [primary]", "0\n", false, false},
		{"nodeport-addresses: [192.0.2.0/24]", "0\n", false, false},
		{"iptables-localhost-nodeports: ['false']", "0\n", false, false},
		{"proxy-mode: [nftables]", "0\n", true, false}, // which serves none there
	} {
		folder := t.TempDir()
		file := filepath.Join(folder, "net/ipv4/conf/all/route_localnet")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if test.setting != "" {
			if err := os.WriteFile(file, []byte(test.setting), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p := &Proxy{options: set(t, "proxyArguments: {"+test.arguments+"}").options}
		told := false
		logger := funcr.New(func(_, text string) { told = strings.Contains(text, "--init-only") }, funcr.Options{})
		p.leaveRouteLocalnet(klog.NewContext(t.Context(), logger), folder)
		if serves := *p.options.Config().IPTables.LocalhostNodePorts; serves != test.serves || told != test.told {
			t.Errorf("{%s} with %q: it serves node ports on loopback: %t, the log says so: %t; want %t, %t", test.arguments, test.setting, serves, told, test.serves, test.told)
		}
	}
}
