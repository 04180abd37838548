package kubeproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	configv1 "github.com/openshift/api/config/v1"
	v1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/origin-node/pkg/egress"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
	"github.com/openshift/origin-node/pkg/kernel/nftables"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
	"github.com/openshift/origin-node/pkg/manifests"
)

// DryRun prints to out the egress rules for the objects as they are now, as the input of
// iptables-restore or nft for each IP family, with a comment above each binding's rule and
// the refusals at the end. As root it lets that program check them, and returns its
// complaint. It changes nothing.
func (p *Proxy) DryRun(ctx context.Context, out, warnings io.Writer) error {
	if !p.flags.enabled {
		return p.config.Errorf("proxyArguments.egress-snat", "egress SNAT is off, so there is nothing to print")
	}
	p.extension.NodeName = p.nodeName()
	objects, err := p.listObjects(ctx)
	if err != nil {
		return p.explain(err)
	}
	var errs []error
	for _, family := range []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol} {
		planned, err := egress.PlanFor(family, p.extension, objects)
		payload, program := p.payload(planned)
		errs = append(errs, err, printPlan(out, family, planned, payload))
		if payload == nil {
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
	return errors.Join(errs...)
}

// payload returns what would be written, and the program that can check it.
func (p *Proxy) payload(planned plan.Plan) (payload []byte, program string) {
	nft := p.extension.Backend == reconcile.NFTables
	comments := make(map[kernel.Binding]string, len(planned.Bindings))
	for _, b := range planned.Bindings {
		comments[b.InKernel()] = b.Service.String()
		if !nft { // whose elements speak for themselves
			comments[b.InKernel()] = fmt.Sprintf("pod %s leaves from %s for %s: Service %s", b.Pod, b.EgressIP, b.Protocol, b.Service)
		}
	}
	if nft {
		return nftables.Payload(planned.Desired(), comments), "nft --check"
	}
	return iptables.Payload(planned.Desired(), comments), "iptables-restore --test"
}

func (p *Proxy) test(ctx context.Context, family v1.IPFamily, payload []byte) error {
	if p.extension.Backend == reconcile.NFTables {
		return nftables.Check(ctx, payload)
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

// listObjects returns what plans are made from, of the manifests or the API server.
func (p *Proxy) listObjects(ctx context.Context) (egress.Objects, error) {
	if p.overrides.Manifests != "" {
		return p.loadObjects()
	}
	config, err := p.clientConfig()
	if err != nil {
		return egress.Objects{}, p.config.Errorf(p.kubeconfigPath(), "%w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return egress.Objects{}, p.config.Errorf(p.kubeconfigPath(), "%w", err)
	}
	services, err := client.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return egress.Objects{}, fmt.Errorf("listing Services: %w", err)
	}
	slices, err := client.DiscoveryV1().EndpointSlices(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return egress.Objects{}, fmt.Errorf("listing EndpointSlices: %w", err)
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return egress.Objects{}, fmt.Errorf("listing Nodes: %w", err)
	}
	cidrs, err := client.NetworkingV1().ServiceCIDRs().List(ctx, metav1.ListOptions{})
	if err != nil && !apierrors.IsNotFound(err) { // API servers before Kubernetes 1.33 have none
		return egress.Objects{}, fmt.Errorf("listing ServiceCIDRs: %w", err)
	}
	network, err := p.clusterNetwork(ctx)
	return egress.Objects{
		Services: pointers(services.Items), EndpointSlices: pointers(slices.Items), Nodes: pointers(nodes.Items),
		ServiceCIDRs: serviceCIDRs(pointers(cidrs.Items)), Network: network,
	}, err
}

func (p *Proxy) loadObjects() (egress.Objects, error) {
	objects, err := manifests.Load(p.overrides.Manifests)
	if err != nil {
		return egress.Objects{}, fmt.Errorf("--manifests: %w", err)
	}
	result := egress.Objects{
		Services: objects.Services, EndpointSlices: objects.EndpointSlices, Nodes: objects.Nodes,
		ServiceCIDRs: serviceCIDRs(objects.ServiceCIDRs),
	}
	if len(objects.Networks) > 0 {
		result.Network = objects.Networks[0] // there is one at most
	}
	return result, nil
}

// clusterNetwork returns OpenShift's Network, or nil if the cluster has none.
func (p *Proxy) clusterNetwork(ctx context.Context) (*configv1.Network, error) {
	client, err := p.networkClient()
	if err != nil {
		return nil, err
	}
	return egress.ClusterNetwork(ctx, client)
}

func serviceCIDRs(objects []*networkingv1.ServiceCIDR) []string {
	var cidrs []string
	for _, object := range objects {
		cidrs = append(cidrs, object.Spec.CIDRs...)
	}
	return cidrs
}

func pointers[T any](items []T) []*T {
	result := make([]*T, 0, len(items))
	for i := range items {
		result = append(result, &items[i])
	}
	return result
}
