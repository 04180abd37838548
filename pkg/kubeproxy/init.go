package kubeproxy

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
	proxyconfig "k8s.io/kubernetes/pkg/proxy/apis/config"
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

// leaveSysctls has kube-proxy leave conntrack's settings as they are where it cannot change them: it would end with an error
// if somebody else had changed one since Init.
func (p *Proxy) leaveSysctls(ctx context.Context) error {
	readOnly, err := isReadOnly(sysctls)
	if readOnly {
		p.options.Config().Linux.Conntrack = proxyconfig.KubeProxyConntrackConfiguration{}
		klog.FromContext(ctx).Info("Leaving conntrack's settings as they are, because this container may not change them; 'start node --init-only' makes them", "folder", sysctls)
	}
	return err
}

// isReadOnly tells whether nothing can be written below a folder.
func isReadOnly(folder string) (bool, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(folder, &stat); err != nil {
		return false, fmt.Errorf("look at %s: %w", folder, err)
	}
	return stat.Flags&unix.ST_RDONLY != 0, nil
}
