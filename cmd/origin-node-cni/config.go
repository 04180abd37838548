package main

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/cni"
)

// config is the plugin's entry in the list of plugins.
type config struct {
	types.PluginConf
	// Socket is the node's. Notes for the node lie beside it.
	Socket      string `json:"socket"`
	WaitSeconds int    `json:"waitSeconds"`
	// Unanswered says which pods start while no node process answers.
	Unanswered unanswered `json:"unanswered"`
}

type unanswered string

const (
	claimed unanswered = "claimed"
	refuse  unanswered = "refuse"
	start   unanswered = "start"
)

// parse returns as much of the configuration as can be read, also with an error.
func parse(stdin []byte) (*config, error) {
	c := &config{Socket: attachments.DefaultSocket, WaitSeconds: 10, Unanswered: claimed}
	if err := json.Unmarshal(stdin, c); err != nil {
		return c, types.NewError(types.ErrDecodingFailure, "origin-node-cni: reading the configuration", err.Error())
	}
	invalid := func(format string, args ...any) error {
		return types.NewError(types.ErrInvalidNetworkConfig, "origin-node-cni: "+fmt.Sprintf(format, args...), "")
	}
	switch {
	case !filepath.IsAbs(c.Socket):
		return c, invalid("socket is %q; expected an absolute path", c.Socket)
	case c.WaitSeconds < 1 || c.WaitSeconds > 100:
		return c, invalid("waitSeconds is %d; expected 1 to 100", c.WaitSeconds)
	case c.Unanswered != claimed && c.Unanswered != refuse && c.Unanswered != start:
		return c, invalid("unanswered is %q; expected %s, %s or %s", c.Unanswered, claimed, refuse, start)
	}
	if err := version.ParsePrevResult(&c.PluginConf); err != nil {
		return c, types.NewError(types.ErrDecodingFailure, "origin-node-cni: reading prevResult", err.Error())
	}
	return c, nil
}

func (c *config) wait() time.Duration { return time.Duration(c.WaitSeconds) * time.Second }

// requestOf returns what the node is to be told of a container. ok is false if it is no concern of the node's.
func (c *config) requestOf(args *skel.CmdArgs) (request cni.Request, ok bool, err error) {
	pod := podOf(args.Args)
	switch {
	case args.IfName != cni.Interface || pod.Namespace == "" || pod.Name == "" || c.PrevResult == nil:
		return cni.Request{}, false, nil
	case pod.UID == "" && !c.mayBeBound(pod):
		return cni.Request{}, false, nil
	case pod.UID == "":
		return cni.Request{}, false, types.NewError(types.ErrInvalidEnvironmentVariables, fmt.Sprintf(
			"origin-node-cni: CNI_ARGS of the pod %s have no K8S_POD_UID; use a newer container runtime, or take the plugin out of the list", pod), "")
	}
	result, err := current.NewResultFromResult(c.PrevResult)
	if err != nil {
		return cni.Request{}, false, types.NewError(types.ErrDecodingFailure, "origin-node-cni: reading prevResult", err.Error())
	}
	request = cni.Request{
		ContainerID: args.ContainerID, IfName: args.IfName, Netns: args.Netns, Pod: pod,
		IPs: addressesOf(result, args.IfName), Interfaces: interfacesOf(result),
	}
	return request, len(request.IPs) > 0, nil
}

// mayBeBound tells whether a pod may be bound, so that it must not start while nobody knows which pod it is, or its address. It may where
// the claims cannot be read.
func (c *config) mayBeBound(pod attachments.Pod) bool {
	namespaces, err := attachments.ReadClaims(attachments.Claims(c.Socket))
	return pod.Namespace != "" && c.Unanswered != start && (namespaces[pod.Namespace] || ifExists(err) != nil)
}

// interfacesOf returns the names of those on the node.
func interfacesOf(result *current.Result) (names []string) {
	for _, i := range result.Interfaces {
		if i.Sandbox == "" && i.Name != "" {
			names = append(names, i.Name)
		}
	}
	return names
}

// addressesOf returns those of an interface in the pod. An address without an interface is the pod's, too. They are all
// addresses of a result that marks none as the pod's.
func addressesOf(result *current.Result, ifName string) (ips []netip.Addr) {
	var all []netip.Addr
	for _, config := range result.IPs {
		ip, ok := netip.AddrFromSlice(config.Address.IP)
		if !ok {
			continue
		}
		all = append(all, ip.Unmap())
		if i := config.Interface; i != nil && *i >= 0 && *i < len(result.Interfaces) {
			if of := result.Interfaces[*i]; of.Name != ifName || of.Sandbox == "" {
				continue
			}
		}
		ips = append(ips, ip.Unmap())
	}
	if len(ips) == 0 {
		return all
	}
	return ips
}

// podOf reads CNI_ARGS, as kubelet's runtimes set them.
func podOf(args string) (pod attachments.Pod) {
	for pair := range strings.SplitSeq(args, ";") {
		switch key, value, _ := strings.Cut(pair, "="); key {
		case "K8S_POD_NAMESPACE":
			pod.Namespace = value
		case "K8S_POD_NAME":
			pod.Name = value
		case "K8S_POD_UID":
			pod.UID = value
		}
	}
	return pod
}
