package kubeproxy

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	proxyconfig "k8s.io/kubernetes/pkg/proxy/apis/config"

	"github.com/openshift/origin-node/pkg/kernel/nft"
	"github.com/openshift/origin-node/pkg/tunnel"
)

// tunnelFlags are the values of the arguments of the tunnel's ports.
type tunnelFlags struct {
	enabled, fromPods, anyDestination bool
	secure, insecure, labels          []string
	configMap                         string
}

// The names of these arguments.
const (
	tunnelKey               = "tunnel-ports"
	tunnelSecureKey         = "tunnel-secure-address"
	tunnelInsecureKey       = "tunnel-insecure-address"
	tunnelLabelsKey         = "tunnel-node-labels"
	tunnelConfigMapKey      = "tunnel-ports-configmap"
	tunnelFromPodsKey       = "tunnel-from-pods"
	tunnelAnyDestinationKey = "tunnel-any-destination"
)

func (f *tunnelFlags) add(fs *pflag.FlagSet) {
	fs.BoolVar(&f.enabled, tunnelKey, false, "Connections of this node to the kubelets of nodes behind a tunnel go to the tunnel server. "+
		"For nodes on which the API server or the monitoring runs. 'false' removes its rules when the node starts.")
	fs.StringSliceVar(&f.secure, tunnelSecureKey, nil, "ADDRESS:PORT of the tunnel server, one of each IP family at most, to which connections to port 10250 and to the ConfigMap's https-proxy-ports go. Required.")
	fs.StringSliceVar(&f.insecure, tunnelInsecureKey, nil, "ADDRESS:PORT of the tunnel server, one of each IP family at most, to which connections to port 10255 and to the ConfigMap's other ports go. Without it they are not redirected.")
	fs.StringSliceVar(&f.labels, tunnelLabelsKey, []string{"openyurt.io/is-edge-worker=true", "openyurt.io/edge-enable-reverseTunnel-client=true"},
		"The labels of a node that has the tunnel's agent: any of them. All other nodes are reached directly, if they are Ready.")
	fs.StringVar(&f.configMap, tunnelConfigMapKey, "kube-system/yurt-tunnel-server-cfg", "NAMESPACE/NAME of a ConfigMap that has more ports, in OpenYurt's keys dnat-ports-pair, http-proxy-ports and https-proxy-ports; empty for none. "+
		"images/node/rbac-tunnel.yaml has the right to read it.")
	fs.BoolVar(&f.fromPods, tunnelFromPodsKey, false, "Connections of the pods of this node, which are those from the cluster CIDRs, go to the tunnel server as well.")
	fs.BoolVar(&f.anyDestination, tunnelAnyDestinationKey, false, "Connections of this node to the tunnel's ports go to the tunnel server whatever their destination address, not only those to nodes behind the tunnel. Addresses of nodes that are reached directly, and of the tunnel server, are exempt. OpenYurt does the same. Cannot be combined with "+tunnelFromPodsKey+".")
}

// takeTunnel parses these arguments.
func (p *Proxy) takeTunnel() error {
	f := p.tunnelFlags
	var errs []error
	complain := func(key string, err error) {
		if err != nil {
			errs = append(errs, p.config.Errorf("proxyArguments."+key, "%w", err))
		}
	}
	c := tunnel.Config{
		AnyDestination: f.anyDestination,
		MinSyncPeriod:  min(100*time.Millisecond, p.extension.SyncPeriod/2), SyncPeriod: p.extension.SyncPeriod,
	}
	var err error
	c.Secure, err = parseTunnelAddresses(f.secure)
	complain(tunnelSecureKey, err)
	c.Insecure, err = parseTunnelAddresses(f.insecure)
	complain(tunnelInsecureKey, err)
	c.Labels, err = parseLabels(f.labels)
	complain(tunnelLabelsKey, err)
	c.ConfigMap, err = parseConfigMap(f.configMap)
	complain(tunnelConfigMapKey, err)
	if f.fromPods {
		c.Sources = nft.Prefixes(nft.Ranges(p.extension.ClusterCIDRs)) // those that overlap or touch are one
	}
	p.tunnel = c
	if len(errs) > 0 || !f.enabled {
		return errors.Join(errs...)
	}
	return p.checkTunnel()
}

// checkTunnel returns why the arguments do not go together.
func (p *Proxy) checkTunnel() error {
	switch c := p.tunnel; {
	case len(c.Secure) == 0:
		return p.config.Errorf("proxyArguments."+tunnelSecureKey, "missing: %s is \"true\", so set it to the address and port of the tunnel server, for example 192.0.2.10:10263", tunnelKey)
	case p.options.Config().Mode == proxyconfig.ProxyModeIPVS:
		return p.config.Errorf("proxyArguments."+tunnelKey, "the proxy mode \"ipvs\" is not supported: use \"iptables\" or \"nftables\", or set it to \"false\"")
	case p.tunnelFlags.fromPods && len(c.Sources) == 0:
		return p.config.Errorf("proxyArguments."+tunnelFromPodsKey, "it needs proxyArguments.%s: the networks of the pods", clusterCIDRKey)
	case p.tunnelFlags.fromPods && c.AnyDestination:
		return p.config.Errorf("proxyArguments."+tunnelFromPodsKey, "it does not go together with %s: what pods say to each other at the tunnel's ports would go to the tunnel server, too", tunnelAnyDestinationKey)
	case p.tunnelFlags.fromPods:
		for _, a := range append(c.Secure, c.Insecure...) {
			if a.Addr().IsLoopback() {
				return p.config.Errorf("proxyArguments."+tunnelFromPodsKey, "connections of pods cannot be sent to %s: let the tunnel server listen on an address of the node", a)
			}
		}
	}
	return nil
}

func parseTunnelAddresses(texts []string) (addresses []netip.AddrPort, err error) {
	var v4, v6 bool
	for _, text := range texts {
		a, err := netip.ParseAddrPort(strings.TrimSpace(text))
		addr := a.Addr()
		switch {
		case err != nil || a.Port() == 0 || addr.IsUnspecified() || addr.IsMulticast() || addr.Zone() != "" || addr.Is4In6():
			return nil, fmt.Errorf("invalid value %q: expected the address of a host and a port, for example 192.0.2.10:10263 or [2001:db8::10]:10263", text)
		case addr.Is4() && v4, addr.Is6() && v6:
			return nil, fmt.Errorf("%q is another address of the same IP family; give one of each at most", text)
		}
		v4, v6 = v4 || addr.Is4(), v6 || addr.Is6()
		addresses = append(addresses, a)
	}
	return addresses, nil
}

func parseLabels(texts []string) (labels []tunnel.Label, err error) {
	for _, text := range texts {
		key, value, ok := strings.Cut(strings.TrimSpace(text), "=")
		if problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); !ok || len(problems) > 0 {
			return nil, fmt.Errorf("invalid value %q: expected a label and its value, for example openyurt.io/is-edge-worker=true", text)
		}
		labels = append(labels, tunnel.Label{Key: key, Value: value})
	}
	if len(labels) == 0 {
		return nil, errors.New("empty: expected a label and its value at least, for example openyurt.io/is-edge-worker=true")
	}
	return labels, nil
}

func parseConfigMap(text string) (types.NamespacedName, error) {
	if text == "" {
		return types.NamespacedName{}, nil
	}
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || len(validation.IsDNS1123Label(namespace))+len(validation.IsDNS1123Subdomain(name)) > 0 {
		return types.NamespacedName{}, fmt.Errorf("invalid value %q: expected NAMESPACE/NAME of a ConfigMap, or nothing", text)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}
