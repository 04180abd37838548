//go:build linux

package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
)

// pluginDir has the network plugins of Debian's package containernetworking-plugins.
const pluginDir = "/usr/lib/cni"

// MissingPlugins says what to install if the machine lacks the plugins that a lab with Config.PointToPoint needs; empty otherwise.
func MissingPlugins() string {
	for _, plugin := range []string{"ptp", "static"} {
		if _, err := os.Stat(filepath.Join(pluginDir, plugin)); err != nil {
			return fmt.Sprintf("%v: apt-get install containernetworking-plugins", err)
		}
	}
	return ""
}

// connect gives a pod its network by the plugin ptp, with the addresses of its number.
func (l *Lab) connect(ctx context.Context, h *Host, n network) error {
	config, err := json.Marshal(l.pointToPoint(n, h.number))
	if err != nil {
		return err
	}
	cmd := h.Node.Command(ctx, filepath.Join(pluginDir, "ptp"))
	cmd.Env = append(cmd.Env, "CNI_COMMAND=ADD", "CNI_CONTAINERID="+h.Name, "CNI_NETNS=/run/netns/"+h.Name, "CNI_IFNAME=eth0", "CNI_PATH="+pluginDir)
	cmd.Stdin = bytes.NewReader(config)
	out, err := cmd.Output() // an error, too, is in the output
	if err != nil {
		return fmt.Errorf("%s: plugin ptp: %w: %s", h.Name, err, out)
	}
	if h.uplink.name, err = nodesEnd(out); err != nil {
		return fmt.Errorf("%s: plugin ptp: %w", h.Name, err)
	}
	h.note("eth0", l.families(n.host(h.number)))
	return l.waitPlugged(ctx, h)
}

// nodesEnd reads the name of a pod's interface on its node from what the plugin says (CNI 1.0, "Success").
func nodesEnd(said []byte) (string, error) {
	var result struct {
		Interfaces []struct{ Name, Sandbox string }
	}
	if err := json.Unmarshal(said, &result); err != nil {
		return "", err
	}
	for _, i := range result.Interfaces {
		if i.Sandbox == "" {
			return i.Name, nil
		}
	}
	return "", fmt.Errorf("it names no interface of the node: %s", said)
}

// pointToPoint is the plugin's configuration for a pod.
func (l *Lab) pointToPoint(n network, number int) map[string]any {
	var addresses, routes []map[string]string
	gateways := l.families(n.host(gatewayNumber))
	for i, p := range l.families(n.host(number)) {
		gateway := gateways[i].Addr()
		addresses = append(addresses, map[string]string{"address": p.String(), "gateway": gateway.String()})
		routes = append(routes, map[string]string{"dst": netip.PrefixFrom(gateway, 0).Masked().String()})
	}
	return map[string]any{
		"cniVersion": "1.0.0", "name": strings.ToLower(l.cfg.Prefix), "type": "ptp",
		"ipam": map[string]any{"type": "static", "addresses": addresses, "routes": routes},
	}
}
