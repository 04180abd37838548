package cmd

import (
	"fmt"
	"slices"
	"strings"
)

// elsewhere describes how the other components of origin's node are run.
var elsewhere = map[string]string{
	"kubelet": "kubelet.service runs the kubelet",
	"plugins": "the cluster's network operator deploys the network plugin",
	"dns":     "the cluster's DNS operator deploys DNS",
}

const proxyComponent = "proxy"

// checkComponents returns an error unless origin's flags --enable and --disable select the proxy and
// nothing else: enable names the components to run, disable removes some of these.
func checkComponents(enable, disable []string) error {
	for _, name := range slices.Concat(enable, disable) {
		if name != proxyComponent && elsewhere[name] == "" {
			return fmt.Errorf("unknown component %q: the components of a node are %s", name, strings.Join([]string{"dns", "kubelet", "plugins", proxyComponent}, ", "))
		}
	}
	for _, name := range enable {
		if where := elsewhere[name]; where != "" {
			return fmt.Errorf("--enable=%s: this program runs only the proxy; %s", name, where)
		}
	}
	if slices.Contains(disable, proxyComponent) {
		return fmt.Errorf("--disable=%s: this program runs only the proxy, so nothing is left to start", proxyComponent)
	}
	return nil
}
