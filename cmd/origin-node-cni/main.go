package main

import (
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/version"
)

func main() {
	skel.PluginMainFuncs(skel.CNIFuncs{Add: add, Del: del, Check: check, GC: collect, Status: status},
		version.PluginSupports("1.0.0", "1.1.0"),
		"origin-node-cni: starts a pod when the node has its egress bindings in the kernel")
}
