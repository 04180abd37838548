package kubeproxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/balancer"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/desk"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/steerer"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
	"github.com/openshift/origin-node/pkg/kernel/nft"
	"github.com/openshift/origin-node/pkg/kernel/portsecurity"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// DryRun prints to out the egress rules for the objects as they are now, as the input of
// iptables-restore or nft for each IP family, with a comment at each binding's rule and
// the refusals at the end. As root it lets that program check them, and returns its
// complaint. What steers packets to the nodes that have their egress IPs follows as a shell script. In the nftables back end that
// has the rules, too, and only the bindings stand before it. It changes nothing
// in the kernel. Manifests are served to it on the loopback, as to a node.
func (p *Proxy) DryRun(ctx context.Context, out, warnings io.Writer) (err error) {
	if !p.flags.enabled && !p.tunnelFlags.enabled {
		return p.config.Errorf("proxyArguments.egress-snat", "egress SNAT is off, so there is nothing to print")
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if p.overrides.Manifests != "" {
		remove, err := p.serveManifests(klog.NewContext(ctx, logr.Discard())) // they are read once
		if err != nil {
			return err
		}
		defer remove()
	}
	if p.tunnelFlags.enabled {
		if err := p.dryRunTunnel(ctx, out, warnings); err != nil || !p.flags.enabled {
			return err
		}
	}
	p.extension.NodeName = p.nodeName()
	p.takeRegistrations(warnings)
	objects, err := p.listObjects(ctx, warnings)
	if err != nil {
		return p.explain(err)
	}
	p.trySteering(ctx, warnings)
	if fast := p.extension.Ways.Kernel.Fast; fast != nil {
		defer func() { err = errors.Join(err, fast.Close()) }()
	}
	var errs []error
	for _, family := range []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol} {
		planned, err := cluster.PlanFor(family, p.extension.Config, objects)
		if p.inOneTable(family, planned, objects) {
			errs = append(errs, err, printPlan(out, family, planned, bindingsOf(planned)))
			continue
		}
		payload, program, payloadErr := p.payload(family, planned)
		errs = append(errs, err, payloadErr, printPlan(out, family, planned, payload))
		if len(payload) == 0 {
			continue
		}
		if os.Geteuid() != 0 {
			_, _ = fmt.Fprintf(warnings, "Not root: the %s rules were not checked with %s\n", family, program)
			continue
		}
		if err := p.test(ctx, family, payload); err != nil {
			errs = append(errs, fmt.Errorf("the %s rules would not be accepted: %w", family, err))
		}
	}
	return errors.Join(append(errs, p.printSteering(ctx, out, warnings, objects))...)
}

// steeringFor returns which ways this node's packets take for these objects.
func (p *Proxy) steeringFor(family v1.IPFamily, objects cluster.Objects) (kernel.Steering, error) {
	return steerer.For(family, p.extension.Config, p.extension.Ways.Kernel, p.extension.PortBlocks, objects)
}

// inOneTable tells whether what steers packets has the rules of a plan, too.
func (p *Proxy) inOneTable(family v1.IPFamily, planned plan.Plan, objects cluster.Objects) bool {
	if p.extension.Backend != reconcile.NFTables || p.extension.Steering.Mode == holders.Off || os.Geteuid() != 0 {
		return false
	}
	ways, _ := p.steeringFor(family, objects) // its error is told with what steers
	return ways.Self.IsValid() && len(planned.Desired().ClusterCIDRs) > 0
}

// bindingsOf returns the bindings of a plan as comments.
func bindingsOf(planned plan.Plan) []byte {
	var out bytes.Buffer
	for _, b := range planned.Bindings {
		fmt.Fprintf(&out, "# %s\n", bindingText(b))
	}
	return out.Bytes()
}

// bindingText says what a binding is, in one line.
func bindingText(b plan.Binding) string {
	return kernel.Printable(fmt.Sprintf("pod %s leaves from %s for %s: Service %s", b.Pod, b.EgressIP, b.Protocol, b.Service))
}

// trySteering finds out whether this kernel can steer packets, and if it cannot, has what a node does without be printed.
func (p *Proxy) trySteering(ctx context.Context, warnings io.Writer) {
	if p.extension.Steering.Mode == holders.Off {
		return
	}
	if os.Geteuid() != 0 {
		_, _ = fmt.Fprintln(warnings, "Not root: the rules are those of a node that does not steer; what steers packets to other nodes was not printed")
		return
	}
	p.extension.PortSecurity.Unavailable = portsecurity.Available(ctx)
	if err := p.findFastPath(ctx); err != nil { // which settings are changed depends on whether it is there
		_, _ = fmt.Fprintf(warnings, "All packets would take the slow path (proxyArguments.%s): %v\n", fastPathKey, err)
	}
	blocks, err := p.trySteeringWithBlocks(ctx)
	if blocks != nil {
		_, _ = fmt.Fprintf(warnings, "Pods would get no source ports of their own (proxyArguments.%s): %v\n", portBlocksKey, blocks)
	}
	if err != nil {
		_, _ = fmt.Fprintf(warnings, "Packets would not be sent to the nodes that have their egress IPs (proxyArguments.%s=%s): %v\n", steeringKey, p.extension.Steering.Mode, err)
		if p.extension.Steering.Mode != holders.Required {
			p.extension.Steering.Mode = holders.Off
		}
	}
}

// printSteering prints what steers the packets of both IP families.
func (p *Proxy) printSteering(ctx context.Context, out, warnings io.Writer, objects cluster.Objects) error {
	if p.extension.Steering.Mode == holders.Off || os.Geteuid() != 0 {
		return nil
	}
	config := p.extension.Ways.Kernel
	var errs []error
	for _, family := range []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol} {
		planned, _ := cluster.PlanFor(family, p.extension.Config, objects) // its error is told with the rules
		desired := planned.Desired()
		var err error
		if desired.Steering, err = p.steeringFor(family, objects); err != nil {
			errs = append(errs, err)
		}
		if len(desired.ClusterCIDRs) == 0 || !desired.Steering.Self.IsValid() {
			_, err = fmt.Fprintf(out, "# %s: nothing is steered without a cluster CIDR, and without a Node object of the name %q that has an InternalIP\n", family, p.extension.NodeName)
			errs = append(errs, err)
			continue
		}
		config.Family, config.NodeIP = kernel.Family(family), desired.Steering.Self
		script, table, err := steering.Script(ctx, config, desired)
		if err != nil {
			errs = append(errs, fmt.Errorf("print what steers %s packets: %w", family, err))
			continue
		}
		switch err := nft.Check(ctx, table); {
		case errors.Is(err, nft.ErrNoTool) && p.extension.Backend == reconcile.IPTables: // which does not need it
			_, _ = fmt.Fprintf(warnings, "The nftables table that steers %s packets was not checked: %v\n", family, err)
		case err != nil:
			errs = append(errs, fmt.Errorf("the nftables table that steers %s packets would not be accepted: %w", family, err))
		}
		_, err = fmt.Fprintf(out, "# %s: what steers packets to the nodes that have their egress IPs, as a shell script\n%s", family, script)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// payload returns what would be written, and the program that can check it.
func (p *Proxy) payload(family v1.IPFamily, planned plan.Plan) (payload []byte, program string, err error) {
	table := p.extension.Backend == reconcile.NFTables
	comments := make(map[kernel.Binding]string, len(planned.Bindings))
	for _, b := range planned.Bindings {
		comments[b.InKernel()] = b.Service.String()
		if !table { // whose elements speak for themselves
			comments[b.InKernel()] = bindingText(b)
		}
	}
	if table {
		text, err := steering.LocalText(kernel.Family(family), planned.Desired(), comments)
		return []byte(text), "nft --check", err
	}
	return iptables.Payload(planned.Desired(), comments), "iptables-restore --test", nil
}

func (p *Proxy) test(ctx context.Context, family v1.IPFamily, payload []byte) error {
	if p.extension.Backend == reconcile.NFTables {
		return nft.Check(ctx, payload)
	}
	return iptables.NewWriter(kernel.Family(family)).Check(ctx, payload)
}

func printPlan(out io.Writer, family v1.IPFamily, p plan.Plan, payload []byte) error {
	if _, err := fmt.Fprintf(out, "# %s: %d bindings to %d egress IPs, %d refused\n%s", family, len(p.Bindings), len(p.EgressIPs()), len(p.Refusals), payload); err != nil {
		return err
	}
	for _, r := range p.Refusals {
		if _, err := fmt.Fprintf(out, "# Refused: Service %s: %s: %s\n", r.Service, r.Reason, kernel.Printable(r.Message)); err != nil {
			return err
		}
	}
	return nil
}

// listObjects returns what plans are made from. It warns of what it can do without.
func (p *Proxy) listObjects(ctx context.Context, warnings io.Writer) (objects cluster.Objects, err error) {
	err = p.list(ctx, &objects, "services", "endpointslices", "nodes", "servicecidrs", "networks")
	if err == nil && p.extension.Steering.Mode != holders.Off {
		err = p.listHolders(ctx, &objects, warnings)
	}
	return objects, err
}

// list adds to objects all those of some kinds, as [desk.Add] does.
func (p *Proxy) list(ctx context.Context, objects *cluster.Objects, paths ...string) error {
	config, err := newClient(p, func(c *rest.Config) (*rest.Config, error) { return c, nil })
	if err != nil {
		return err
	}
	return desk.Add(ctx, config, p.extension.Ways.LeaseNamespace, objects, paths...)
}

// listHolders adds which addresses nodes have, this one among them, and where others are on its networks. Rules do not wait for the right to
// list Leases, nor what MetalLB announces.
func (p *Proxy) listHolders(ctx context.Context, objects *cluster.Objects, warnings io.Writer) error {
	if err := p.list(ctx, objects, "leases"); err != nil {
		_, _ = fmt.Fprintf(warnings, "It is not known which egress IPs other nodes have: %v\n", holders.Explain(err, nil))
	}
	own, err := holders.OwnAddressesNow(steering.Device)
	objects.Held = map[netip.Addr]bool{}
	for _, ip := range own.Addresses {
		objects.Held[ip] = true
	}
	err = errors.Join(err, p.addBalanced(ctx, objects, warnings))
	var hardwareErr error
	objects.Hardware, hardwareErr = steering.Neighbours()
	return errors.Join(err, hardwareErr)
}

// addBalanced adds what MetalLB announces, if that counts.
func (p *Proxy) addBalanced(ctx context.Context, objects *cluster.Objects, warnings io.Writer) error {
	if !p.extension.FollowsMetalLB() {
		return nil
	}
	dynamicClient, err := newClient(p, dynamic.NewForConfig)
	if err != nil {
		return err
	}
	discoveryClient, err := newClient(p, discovery.NewDiscoveryClientForConfig)
	if err != nil {
		return err
	}
	if err := balancer.Add(ctx, objects, dynamicClient, discoveryClient, p.extension.NodeName, p.extension.Ways.MetalLBNamespace); err != nil {
		_, _ = fmt.Fprintf(warnings, "It is not known which load-balancer IPs MetalLB announces from this node: %v\n", err)
	}
	return nil
}

// takeRegistrations has the plan know what Nodes registered with, as far as the node has kept that where this user can read it.
func (p *Proxy) takeRegistrations(warnings io.Writer) {
	file := keptNodes(p.flags.socket)
	if p.overrides.Manifests != "" {
		return
	}
	if err := cluster.CheckKeptNodes(file); err != nil {
		_, _ = fmt.Fprintf(warnings, "What Nodes tell now counts as what they registered with: %v\n", err)
		return
	}
	p.extension.KeptNodes = file
}
