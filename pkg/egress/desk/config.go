package desk

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/kernel"
)

// published is a configuration, and the nodes that publish it, sorted.
type published struct {
	text  string
	nodes []string
}

// config returns what the plan depends on: as it was given, or as most nodes publish it. A doubt says that others
// publish something else.
func (d *Desk) config(objects cluster.Objects) (config egress.Config, doubts []string, err error) {
	if d.Plan != nil {
		return *d.Plan, nil, nil
	}
	all := publishedIn(objects)
	if objects.Leases == nil {
		return egress.Config{}, nil, errors.New("the plan depends on the nodes' configuration, which they publish in their Leases, and these may not be read. Give a node's configuration with --config=FILE")
	}
	if len(all) == 0 {
		return egress.Config{}, nil, fmt.Errorf("no node publishes its configuration in a Lease of the namespace %s, and the plan depends on it: "+
			"nodes publish it if they steer and hold an egress IP. Give a node's configuration with --config=FILE, or another namespace with --lease-namespace", d.LeaseNamespace)
	}
	if len(all) > 1 {
		doubts = []string{fmt.Sprintf("the nodes differ in their configuration; the plan uses that of most nodes. %s: %s. %s: %s. To use another one, give it with --config=FILE",
			several(all[0].nodes), all[0].text, several(all[1].nodes), all[1].text)}
	}
	config, err = d.Parse(fmt.Sprintf("Lease %s/%s: metadata.annotations[%s]", d.LeaseNamespace, all[0].nodes[0], holders.ConfigurationAnnotation), all[0].text)
	return config, doubts, err
}

// publishedIn returns what nodes publish, first what most do. A Lease counts as long as its Node exists.
func publishedIn(objects cluster.Objects) (all []published) {
	nodes := map[string][]string{}
	for _, lease := range objects.Leases {
		text, given := lease.Annotations[holders.ConfigurationAnnotation]
		if given && hasNode(objects.Nodes, lease) {
			nodes[text] = append(nodes[text], lease.Name)
		}
	}
	for text, names := range nodes {
		slices.Sort(names)
		all = append(all, published{text, names})
	}
	slices.SortFunc(all, func(a, b published) int {
		return cmp.Or(cmp.Compare(len(b.nodes), len(a.nodes)), cmp.Compare(a.text, b.text))
	})
	return all
}

func hasNode(nodes []*v1.Node, lease *coordinationv1.Lease) bool {
	return nodes == nil || slices.ContainsFunc(nodes, func(n *v1.Node) bool { return n.Name == lease.Name })
}

// several returns some names for a message.
func several(names []string) string { return kernel.Listed(names, 3, "more") }
