package usage

import (
	"context"
	"net/url"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/kernel"
)

// Users returns a list of [status.PortUser], for a query that [status.AskedPort] reads.
func (c *Counter) Users(ctx context.Context, query url.Values) (any, error) {
	asked, err := status.AskedPort(query)
	if err != nil {
		return nil, err
	}
	flows, err := c.tables[v1.IPFamily(kernel.FamilyOf(asked.Addr()))].Users(ctx, asked)
	users := []status.PortUser{}
	for _, f := range flows {
		users = append(users, status.PortUser{Pod: f.Source, Protocol: protocolName(f.Protocol), Destination: f.Destination})
	}
	return users, err
}
