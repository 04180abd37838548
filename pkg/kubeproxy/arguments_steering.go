package kubeproxy

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/klog/v2"
	proxyconfig "k8s.io/kubernetes/pkg/proxy/apis/config"

	"github.com/openshift/origin-node/pkg/egress"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/kept"
	"github.com/openshift/origin-node/pkg/egress/keys"
	"github.com/openshift/origin-node/pkg/egress/metallb"
	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/handover"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// steeringFlags are the values of the arguments that say how packets get to the nodes that hold
// their egress IPs.
type steeringFlags struct {
	mode, transport, fastPath, markMask, leaseNamespace, keyFile, metalLBNamespace, portBlocks string
	port, announcePort                                                                         uint16
}

// The names of these arguments.
const (
	steeringKey       = "egress-snat-steering"
	transportKey      = "egress-snat-steering-transport"
	fastPathKey       = "egress-snat-fast-path"
	portKey           = "egress-snat-steering-port"
	markMaskKey       = "egress-snat-mark-mask"
	leaseNamespaceKey = "egress-snat-lease-namespace"
	announcePortKey   = "egress-snat-announce-port"
	keyFileKey        = "egress-snat-key-file"
	metalLBKey        = "egress-snat-metallb-namespace"
	portBlocksKey     = "egress-snat-port-blocks"
)

func (f *steeringFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.mode, steeringKey, string(holders.Auto), "Whether a pod's packets are sent to the node that has the pod's egress IP, if that is another node. "+
		"'auto': where this kernel can do that. An egress IP that no node has is used where the pod runs. "+
		"'required': always. Packets of pods whose egress IP is on no node are refused, and a kernel that cannot steer is an error. 'off': never. Every pod uses its egress IP where it runs.")
	fs.StringVar(&f.transport, transportKey, string(steering.VXLAN), "How packets get to the node that has their egress IP. 'vxlan': through a tunnel between the nodes. "+
		"'direct': the node is their next hop. That does not reduce the MTU, but all nodes must be on one L2 network, and no node may be the router of other nodes' pods. Use the same value on all nodes.")
	fs.StringVar(&f.fastPath, fastPathKey, fastPathSteered, "Whether packets of established TCP and UDP flows take a shorter way through the kernel. It needs a kernel that can do that, and a process that may load programs into it (CAP_BPF, CAP_PERFMON; CAP_SYS_ADMIN where conntrack is a module). "+
		"'steered': packets that one node sends to another, and packets that unbound pods send from their node's own address, with their answers. 'all': also packets of bound pods that leave from the pod's own node. 'off': all packets pass all rules. "+
		"On the shorter way, packets bypass the firewall rules of these nodes and the counters of the rules: these see only the first packets of each flow, and those that end it. Where the shorter way is in use, the node changes up to two settings of conntrack.")
	fs.Uint16Var(&f.port, portKey, 4799, "The UDP port of the tunnel, the same on all nodes. It must be open between the nodes.")
	fs.StringVar(&f.markMask, markMaskKey, "0x7e", "The bits of packet marks that steering uses: at least 6 adjacent bits that no other component uses.")
	fs.StringVar(&f.leaseNamespace, leaseNamespaceKey, holders.DefaultNamespace, "The namespace in which each node has a Lease that tells which egress IPs it has.")
	fs.Uint16Var(&f.announcePort, announcePortKey, 4798, "The UDP port on which nodes also announce their egress IPs directly to each other, the same on all nodes. "+
		"It must be open between the nodes. 0: nodes learn of moves only from the Leases, so not while the API server is away.")
	fs.StringVar(&f.keyFile, keyFileKey, "", "A file with the key by which nodes authenticate each other, the same on all nodes: a line of at least 16 characters, for example the output of 'openssl rand -hex 32'. "+
		"If it has several lines, the first is used to sign and encrypt, and all are accepted. Without a file, the nodes create keys, change them every 30 days, and share them in the Secret "+keys.SecretName+" in the namespace of the Leases.")
	fs.StringVar(&f.metalLBNamespace, metalLBKey, metallb.DefaultNamespace, "The namespace of MetalLB. If MetalLB announces a load-balancer IP in layer 2 mode, the announcing node counts as the node that has it. The pool does not place addresses that MetalLB has to announce. "+
		"Empty: MetalLB is ignored.")
	fs.StringVar(&f.portBlocks, portBlocksKey, "0", "How many source ports of its egress IPs a pod gets for itself alone, if it starts with the CNI plugin: a power of two from 64 to 8192, for example 512. The pod uses the same ports inside, so an address and a port identify the pod. "+
		"The number limits the pod's simultaneous connections to one address and port; a pod that uses three quarters of them there, by TCP, gets a second block of the same size, once, if enough are free. "+
		"A Service's annotation "+cluster.PortBlockAnnotation+" sets another number for its pods. Use the same value on all nodes. 0: all pods of an egress IP share its ports. Needs "+steeringKey+".")
}

// The values of egress-snat-fast-path.
const fastPathSteered, fastPathAll, fastPathOff = "steered", "all", "off"

// proxyMarks are the bits of kube-proxy's marks, 0x4000 and 0x8000.
const proxyMarks = 0xc000

// takeSteering parses these arguments.
func (p *Proxy) takeSteering() error {
	f := &p.flags.steering
	for _, value := range []*string{&f.mode, &f.fastPath} {
		if *value == "false" {
			*value = string(holders.Off) // as YAML reads off without quotes
		}
	}
	mode, s := holders.Mode(f.mode), egress.Ways{
		LeaseNamespace: f.leaseNamespace, MetalLBNamespace: f.metalLBNamespace,
		Kernel: steering.Config{Transport: steering.Transport(f.transport), Port: f.port, AnnouncePort: f.announcePort},
	}
	var errs []error
	complain := func(key, format string, args ...any) {
		errs = append(errs, p.config.Errorf("proxyArguments."+key, format, args...))
	}
	if mode != holders.Auto && mode != holders.Required && mode != holders.Off {
		complain(steeringKey, "invalid value %q: expected %q, %q or %q", f.mode, holders.Auto, holders.Required, holders.Off)
	}
	if s.Kernel.Transport != steering.VXLAN && s.Kernel.Transport != steering.Direct {
		complain(transportKey, "invalid value %q: expected %q or %q", f.transport, steering.VXLAN, steering.Direct)
	}
	if f.fastPath != fastPathSteered && f.fastPath != fastPathAll && f.fastPath != fastPathOff {
		complain(fastPathKey, "invalid value %q: expected %q, %q or %q", f.fastPath, fastPathSteered, fastPathAll, fastPathOff)
	}
	if f.port == 0 {
		complain(portKey, "invalid value 0: expected a UDP port from 1 to 65535")
	}
	if f.announcePort == f.port {
		complain(announcePortKey, "invalid value %d: the tunnel has this port; choose another one", f.announcePort)
	}
	fromFile, err := readKeys(f.keyFile)
	if err != nil {
		complain(keyFileKey, "%w", err)
	}
	s.Keys, s.KeptKeys = fromFile, keptKeys(p.flags.socket)
	if problems := validation.IsDNS1123Label(f.leaseNamespace); len(problems) > 0 {
		complain(leaseNamespaceKey, "invalid value %q: expected the name of a namespace: %s", f.leaseNamespace, problems[0])
	}
	if problems := validation.IsDNS1123Label(f.metalLBNamespace); f.metalLBNamespace != "" && len(problems) > 0 {
		complain(metalLBKey, "invalid value %q: expected the name of a namespace, or nothing: %s", f.metalLBNamespace, problems[0])
	}
	blocks, err := portblocks.ParseSize(f.portBlocks)
	if err != nil {
		complain(portBlocksKey, "%w", err)
	}
	mask, err := parseMarkMask(f.markMask)
	if err != nil {
		complain(markMaskKey, "%w", err)
	}
	s.Kernel.MarkMask = mask
	if p.overrides.Manifests != "" { // nobody tells where egress IPs are
		if mode == holders.Required {
			complain(steeringKey, "%q needs an API server: remove the argument, or start without --manifests", f.mode)
		}
		mode = holders.Off
	}
	if masquerade := p.masqueradeMark(); p.flags.enabled && mode != holders.Off && mask&masquerade != 0 {
		complain(markMaskKey, "invalid value %q: kube-proxy masquerades packets with the mark 0x%x; choose other bits, or another masquerade bit of kube-proxy", f.markMask, masquerade)
	}
	if blocks > 0 && mode == holders.Off {
		complain(portBlocksKey, "port blocks work only with an API server and with steering: set %s to 0, or start without --manifests and with %s other than %q", portBlocksKey, steeringKey, holders.Off)
	}
	s.Kernel.PortBlocks = blocks > 0
	p.extension.Steering, p.extension.Ways, p.extension.PortBlocks = cluster.Steering{Mode: mode}, s, blocks
	return errors.Join(errs...)
}

// keptFile returns the path of a file that a node keeps: in the usual folder, or beside its socket if that is not the usual one.
func keptFile(socket, name string) string {
	if socket == status.DefaultSocket || socket == "" {
		return filepath.Join(kept.Folder, name)
	}
	return socket + "." + name
}

// drainNote is there as long as the node with this socket is drained.
func drainNote(socket string) string { return socket + ".drained" }

// keptKeys has the keys that nodes share, keptNodes what Nodes registered with.
func keptKeys(socket string) string  { return keptFile(socket, "keys") }
func keptNodes(socket string) string { return keptFile(socket, "nodes") }

// readKeys reads a key file; none if it has no name.
func readKeys(file string) (holders.Keys, error) {
	if file == "" {
		return nil, nil
	}
	if !filepath.IsAbs(file) {
		return nil, fmt.Errorf("invalid value %q: expected the absolute path of a file", file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	parsed, err := holders.ParseKeys(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return parsed, nil
}

// masqueradeMark is the mark of what kube-proxy masquerades.
func (p *Proxy) masqueradeMark() uint32 {
	proxy := p.options.Config()
	bit := proxy.IPTables.MasqueradeBit
	if proxy.Mode == proxyconfig.ProxyModeNFTables {
		bit = proxy.NFTables.MasqueradeBit
	}
	if bit == nil || *bit < 0 { // kube-proxy refuses that
		return 0
	}
	return 1 << *bit
}

// parseMarkMask parses a mask of marks. It must have room for the marks of package steering.
func parseMarkMask(text string) (uint32, error) {
	const least = 6 // bits
	mask, err := strconv.ParseUint(text, 0, 32)
	if err != nil {
		return 0, fmt.Errorf("invalid value %q: expected a mask, for example 0x7e", text)
	}
	shifted := mask >> bits.TrailingZeros64(mask|1<<32)
	switch {
	case bits.OnesCount64(mask) < least || shifted&(shifted+1) != 0:
		return 0, fmt.Errorf("invalid value %q: expected at least %d bits side by side, for example 0x7e", text, least)
	case mask&proxyMarks != 0:
		return 0, fmt.Errorf("invalid value %q: the bits 0x%x are kube-proxy's; use others, for example 0x7e", text, mask&proxyMarks)
	}
	return uint32(mask), nil
}

// checkSteering switches steering off if this kernel cannot do it, or returns an error if it is
// required. A node that does not steer removes what an earlier run has left.
func (p *Proxy) checkSteering(ctx context.Context) error {
	s := &p.extension.Steering
	if s.Mode == holders.Off {
		return p.endSteering(ctx)
	}
	blocks, err := p.trySteeringWithBlocks(ctx)
	if ctx.Err() != nil { // the node was stopped: that says nothing of the kernel
		return context.Cause(ctx)
	}
	if blocks != nil {
		klog.FromContext(ctx).Error(blocks, "Pods get no source ports of their own. Remove the cause and restart the node, or remove the argument", "argument", "proxyArguments."+portBlocksKey)
	}
	if err == nil {
		p.warnOfOthers(ctx)
		if err := handover.Cleanup(ctx); err != nil { // this node may not be in the pool any more
			klog.FromContext(ctx).Error(err, "Cannot remove the nftables table of a drain; it has no effect any more")
		}
		return nil
	}
	if s.Mode == holders.Required {
		return p.config.Errorf("proxyArguments."+steeringKey, "packets cannot be sent to the nodes that have their egress IPs: %w", err)
	}
	klog.FromContext(ctx).Error(err, "This node cannot send packets to the nodes that hold their egress IPs: its pods whose egress IP is on another node use it here, and get no answers. Remove the cause and restart the node, or set the argument to \"off\"",
		"argument", "proxyArguments."+steeringKey)
	s.Mode, s.Unavailable = holders.Off, err
	p.tellOthers(ctx)
	return cleanupSteering(ctx, p.extension.Backend)
}

// endSteering removes what an earlier run has left, and gives back its blocks of source ports.
func (p *Proxy) endSteering(ctx context.Context) error {
	steered := p.tellOthers(ctx)
	err := cleanupSteering(ctx, p.extension.Backend)
	if steered && err == nil {
		p.giveBlocksBack(ctx)
	}
	return err
}

// trySteeringWithBlocks returns why this kernel cannot steer packets, or nil. If it may be able to without blocks of source ports, pods get none:
// blocks is why.
func (p *Proxy) trySteeringWithBlocks(ctx context.Context) (blocks, err error) {
	if err = steeringAvailable(ctx, p.extension.Ways.Kernel); err == nil || p.extension.PortBlocks == 0 {
		return nil, err
	}
	blocks = err
	p.extension.PortBlocks, p.extension.Ways.Kernel.PortBlocks = 0, false
	return blocks, steeringAvailable(ctx, p.extension.Ways.Kernel)
}

// warnOfOthers logs other software's rules and settings that may keep packets from being steered. 'openshift egress verify' says it again.
func (p *Proxy) warnOfOthers(ctx context.Context) {
	logger := klog.FromContext(ctx)
	config := p.extension.Ways.Kernel
	for _, config.Family = range steeredFamilies() {
		warnings, err := steering.Warnings(ctx, config, p.extension.ClusterCIDRs)
		if err != nil {
			logger.Error(err, "Cannot look for rules and settings of other software that stop steered packets", "ipFamily", config.Family)
		}
		for _, warning := range warnings {
			logger.Error(nil, "Packets that need another node may be dropped", "ipFamily", config.Family, "reason", warning)
		}
	}
}

// steeredFamilies are those that the kernel has.
func steeredFamilies() []kernel.Family {
	if ipv6Enabled() {
		return []kernel.Family{kernel.IPv4, kernel.IPv6}
	}
	return []kernel.Family{kernel.IPv4}
}

// steeringAvailable returns why packets cannot be steered in an IP family that the kernel has. One that both say is said
// once.
func steeringAvailable(ctx context.Context, config steering.Config) error {
	var errs []error
	for _, config.Family = range steeredFamilies() {
		err := probed(ctx, func() error { return steering.Available(ctx, config) })
		if err != nil && !slices.ContainsFunc(errs, func(other error) bool { return other.Error() == err.Error() }) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
