// Package kubeproxy runs the vendored kube-proxy as OpenShift's node does.
//
// It owns the way from a NodeConfig to kube-proxy's options ([New]): first defaults, then
// the NodeConfig's own fields, then its proxyArguments, which are kube-proxy's flags and
// this project's. It attaches the egress extension and runs the server ([Proxy.Run]),
// tells systemd how that goes, removes all rules ([Proxy.Cleanup]), or says which egress
// rules it would write ([Proxy.DryRun]).
//
// It is the only importer of kube-proxy's command package. What it needs of that beyond
// upstream's exports is patches/0002.
package kubeproxy
