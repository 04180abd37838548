package cmd

import (
	"fmt"
	"slices"
	"strings"
)

// elsewhere says who runs the components of origin's node that this program does not.
var elsewhere = map[string]string{
	"kubelet": "it is the kubelet's own service, kubelet.service",
	"plugins": "the network plugin runs as the cluster's network operator has deployed it",
	"dns":     "the cluster's DNS operator runs it",
}

const proxyComponent = "proxy"

// checkComponents makes sure that the proxy is what is asked for, as origin's --enable and
// --disable have it: enable names what to run, disable takes away from that.
func checkComponents(enable, disable []string) error {
	for _, name := range slices.Concat(enable, disable) {
		if name != proxyComponent && elsewhere[name] == "" {
			return fmt.Errorf("unknown component %q; the components of a node are %s", name, strings.Join([]string{"dns", "kubelet", "plugins", proxyComponent}, ", "))
		}
	}
	for _, name := range enable {
		if where := elsewhere[name]; where != "" {
			return fmt.Errorf("--enable=%s: this program runs the proxy only; %s", name, where)
		}
	}
	if slices.Contains(disable, proxyComponent) {
		return fmt.Errorf("--disable=%s: the proxy is all that this program runs, so nothing is left to start", proxyComponent)
	}
	return nil
}
