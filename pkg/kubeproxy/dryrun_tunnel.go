package kubeproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/reconcile"
	"github.com/openshift/origin-node/pkg/kernel/redirect"
	"github.com/openshift/origin-node/pkg/tunnel"
	"github.com/openshift/origin-node/pkg/tunnel/plan"
)

// dryRunTunnel prints the rules of the tunnel's ports for the objects as they are now, and the problems. It changes
// nothing.
func (p *Proxy) dryRunTunnel(ctx context.Context, out, warnings io.Writer) (err error) {
	p.tunnel.NodeName = p.nodeName()
	if p.tunnel.Backend, err = tunnelBackend(ctx, p.extension.Proxier); err != nil && os.Geteuid() != 0 {
		_, _ = fmt.Fprintln(warnings, "Not root: the rules of the tunnel's ports are those of a kernel that has nftables")
		p.tunnel.Backend = reconcile.NFTables
	} else if err != nil {
		_, _ = fmt.Fprintf(warnings, "Connections would be redirected by chains of iptables: %v\n", err)
	}
	nodes, configMap, err := p.listForTunnel(ctx)
	if err != nil {
		return p.explain(err)
	}
	var errs []error
	var problems []plan.Problem
	for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
		planned := tunnel.PlanFor(family, p.tunnel, nodes, configMap)
		r := planned.Redirects
		payload, err := redirect.Payload(p.tunnel.Backend, family, r)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "# %s: %d ports to the tunnel server, %d node addresses\n%s",
			family, len(r.Secure.Ports)+len(r.Insecure.Ports), len(r.Nodes), payload)
		errs = append(errs, err)
		problems = append(problems, planned.Problems...)
	}
	for i, problem := range problems {
		if !slices.Contains(problems[:i], problem) { // that of the ConfigMap is in both families' plans
			_, err := fmt.Fprintf(out, "# Not redirected: %s\n", kernel.Printable(problem.String()))
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// listForTunnel returns the Nodes, and the ConfigMap: nil if there is none, as among manifests, or if it may not be read.
func (p *Proxy) listForTunnel(ctx context.Context) ([]*v1.Node, *v1.ConfigMap, error) {
	var objects cluster.Objects
	name := p.tunnel.ConfigMap
	if err := p.list(ctx, &objects, "nodes"); err != nil || name.Name == "" {
		return objects.Nodes, nil, err
	}
	client, err := newClient(p, kubernetes.NewForConfig)
	if err != nil {
		return nil, nil, err
	}
	configMap, err := client.CoreV1().ConfigMaps(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return objects.Nodes, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("getting the ConfigMap %s: %w", name, err)
	}
	return objects.Nodes, configMap, nil
}
