// Package kubeproxy runs the vendored kube-proxy as OpenShift's node does.
//
// It turns a NodeConfig into kube-proxy's options ([New]): first defaults, then the NodeConfig's own fields, then its proxyArguments, which
// are the flags of kube-proxy and of this project ([ArgumentsHelp]). It attaches the extensions (egress and tunnel) and runs the server
// ([Proxy.Run]), notifies systemd, removes all rules ([Proxy.Cleanup]), or prints the rules that the extensions would write
// ([Proxy.DryRun]). One node process runs in a network namespace.
//
// It is the only importer of kube-proxy's command package. patches/0002 exports what it needs
// beyond upstream's exports.
package kubeproxy
