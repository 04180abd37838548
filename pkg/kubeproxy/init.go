package kubeproxy

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	proxyconfig "k8s.io/kubernetes/pkg/proxy/apis/config"
	proxyutil "k8s.io/kubernetes/pkg/proxy/util"
)

// sysctls has the kernel's settings. In a container without privileges it is read-only.
const sysctls = "/proc/sys"

// Init makes the settings of the kernel that kube-proxy needs and that a container without privileges cannot make, and nothing
// else. A node process may run meanwhile.
func (p *Proxy) Init(ctx context.Context) error {
	p.options.InitAndExit = true
	p.logStart(ctx)
	_, _, err := p.newServer(ctx, &notifier{})
	return err
}

// leaveSysctls has kube-proxy leave the kernel's settings as they are where it cannot change them: it would end with an error
// if one is another than Init has made it, or if the configuration has changed since.
func (p *Proxy) leaveSysctls(ctx context.Context) error {
	readOnly, err := isReadOnly(sysctls)
	if readOnly {
		p.options.Config().Linux.Conntrack = proxyconfig.KubeProxyConntrackConfiguration{}
		klog.FromContext(ctx).Info("Leaving conntrack's settings as they are, because this container may not change them; 'start node --init-only' makes them", "folder", sysctls)
		p.leaveRouteLocalnet(ctx, sysctls)
	}
	return err
}

// leaveRouteLocalnet has kube-proxy serve no node ports on loopback addresses, unless the setting below a folder that they need is made.
func (p *Proxy) leaveRouteLocalnet(ctx context.Context, folder string) {
	config, setting := p.options.Config(), filepath.Join(folder, "net/ipv4/conf/all/route_localnet")
	if made, err := os.ReadFile(setting); config.Mode != proxyconfig.ProxyModeIPTables || err == nil && strings.TrimSpace(string(made)) == "1" {
		return
	}
	addresses := proxyutil.NewNodePortAddresses(v1.IPv4Protocol, config.NodePortAddresses) // which knows no keywords
	const localhost = "localhost"                                                          // a keyword since 1.37
	loopback := slices.Contains(config.NodePortAddresses, localhost) ||
		addresses.ContainsIPv4Loopback() && !slices.Contains(config.NodePortAddresses, proxyconfig.NodePortAddressesPrimary)
	if *config.IPTables.LocalhostNodePorts && loopback {
		klog.FromContext(ctx).Info("Node ports are not served on loopback addresses, because this container may not make the setting that they need; 'start node --init-only' makes it", "setting", setting)
	}
	config.IPTables.LocalhostNodePorts = new(bool)
}

// isReadOnly tells whether nothing can be written below a folder.
func isReadOnly(folder string) (bool, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(folder, &stat); err != nil {
		return false, fmt.Errorf("look at %s: %w", folder, err)
	}
	return stat.Flags&unix.ST_RDONLY != 0, nil
}
