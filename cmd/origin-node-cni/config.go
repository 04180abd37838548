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
	// Claims is the file with the namespaces that have claims.
	Claims string `json:"claims"`
}

type unanswered string

const (
	claimed unanswered = "claimed"
	refuse  unanswered = "refuse"
	start   unanswered = "start"
)

func parse(stdin []byte) (*config, error) {
	c := &config{Socket: "/run/origin-node/cni.sock", WaitSeconds: 10, Unanswered: claimed, Claims: attachments.DefaultClaims}
	if err := json.Unmarshal(stdin, c); err != nil {
		return nil, types.NewError(types.ErrDecodingFailure, "origin-node-cni: reading the configuration", err.Error())
	}
	invalid := func(format string, args ...any) error {
		return types.NewError(types.ErrInvalidNetworkConfig, "origin-node-cni: "+fmt.Sprintf(format, args...), "")
	}
	switch {
	case !filepath.IsAbs(c.Socket):
		return nil, invalid("socket is %q; expected an absolute path", c.Socket)
	case !filepath.IsAbs(c.Claims):
		return nil, invalid("claims is %q; expected an absolute path", c.Claims)
	case c.WaitSeconds < 1 || c.WaitSeconds > 100:
		return nil, invalid("waitSeconds is %d; expected 1 to 100", c.WaitSeconds)
	case c.Unanswered != claimed && c.Unanswered != refuse && c.Unanswered != start:
		return nil, invalid("unanswered is %q; expected %s, %s or %s", c.Unanswered, claimed, refuse, start)
	}
	if err := version.ParsePrevResult(&c.PluginConf); err != nil {
		return nil, types.NewError(types.ErrDecodingFailure, "origin-node-cni: reading prevResult", err.Error())
	}
	return c, nil
}

func (c *config) wait() time.Duration { return time.Duration(c.WaitSeconds) * time.Second }

// attachments and released are the node's folders beside its socket.
func (c *config) attachments() string { return filepath.Join(filepath.Dir(c.Socket), "attachments") }
func (c *config) released() string    { return filepath.Join(filepath.Dir(c.Socket), "released") }

// requestOf returns what the node is to be told of a container. ok is false if it is no concern of the node's.
func (c *config) requestOf(args *skel.CmdArgs) (request cni.Request, ok bool, err error) {
	pod := podOf(args.Args)
	if args.IfName != cni.Interface || pod.Namespace == "" || pod.Name == "" || c.PrevResult == nil {
		return cni.Request{}, false, nil
	}
	result, err := current.NewResultFromResult(c.PrevResult)
	if err != nil {
		return cni.Request{}, false, types.NewError(types.ErrDecodingFailure, "origin-node-cni: reading prevResult", err.Error())
	}
	request = cni.Request{ContainerID: args.ContainerID, IfName: args.IfName, Netns: args.Netns, Pod: pod, IPs: addressesOf(result, args.IfName)}
	return request, len(request.IPs) > 0, nil
}

// addressesOf returns those of an interface in the pod. An address without an interface is the pod's, too.
func addressesOf(result *current.Result, ifName string) (ips []netip.Addr) {
	for _, config := range result.IPs {
		if i := config.Interface; i != nil && *i >= 0 && *i < len(result.Interfaces) {
			if of := result.Interfaces[*i]; of.Name != ifName || of.Sandbox == "" {
				continue
			}
		}
		if ip, ok := netip.AddrFromSlice(config.Address.IP); ok {
			ips = append(ips, ip.Unmap())
		}
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
