package main

import (
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/openshift/origin-node/pkg/egress/cni"
)

func main() {
	skel.PluginMainFuncs(skel.CNIFuncs{Add: add, Del: del, Check: check, GC: collect, Status: status},
		version.PluginSupports(cni.Versions...),
		"origin-node-cni: starts a pod when the node has its egress bindings in the kernel")
}
