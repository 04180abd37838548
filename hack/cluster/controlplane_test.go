//go:build linux

package cluster

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/openshift/origin-node/hack/lab"
)

// soon bounds everything that takes a second or two on an idle machine.
const soon = 30 * time.Second

// TestControlPlane_OneIPFamily: the control plane of the tests serves in each IP family alone.
func TestControlPlane_OneIPFamily(t *testing.T) {
	t.Parallel()
	RequireBinaries(t)
	for _, tt := range []struct {
		name   string
		config lab.Config
		cidr   netip.Prefix
	}{
		{"IPv4", lab.Config{Control: true}, ServiceCIDRV4},
		{"IPv6", lab.Config{Control: true, IPv6Only: true}, ServiceCIDRV6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := lab.ForTest(t, tt.config)
			c := ForTest(t, Config{Host: l.Control()})
			service, err := c.CreateService(t.Context(), NewService("default", "web", nil, nil))
			if err != nil {
				t.Fatal(err)
			}
			if ips := service.Spec.ClusterIPs; len(ips) != 1 || !tt.cidr.Contains(netip.MustParseAddr(ips[0])) {
				t.Errorf("cluster IPs %v are not one of %s", ips, tt.cidr)
			}
			link, err := c.NewLink()
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "kubeconfig")
			if err := c.WriteKubeconfig(t.Context(), file, Kubeconfig{Server: link.URL()}); err != nil {
				t.Fatal(err)
			}
			version, err := clientFrom(t, l.Node(), file).Discovery().ServerVersion()
			if err != nil {
				t.Fatalf("ask over a link: %v", err)
			}
			if want := vendoredKubernetes(t); version.GitVersion != want {
				t.Errorf("the API server is %s, want %s as in go.mod", version.GitVersion, want)
			}
		})
	}
}

// clientFrom is a client with a kubeconfig on a host.
func clientFrom(t *testing.T, host *lab.Host, file string) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	config.Dial = host.DialContext
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestNew_NamesWhatIsMissing: without its binaries there is no control plane, and the error says which.
func TestNew_NamesWhatIsMissing(t *testing.T) {
	_, err := New(t.Context(), Config{Binaries: t.TempDir(), Dir: t.TempDir()})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want an error that a binary does not exist", err)
	}
}
