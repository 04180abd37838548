package status

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
)

// PortUsersPath is that of a list of [PortUser], as a [Resource]. Its query says of which port: see [AskedPort].
const PortUsersPath = "/v1/portusers"

// PortUser is a tracked flow of this node that leaves from an egress IP and a port.
type PortUser struct {
	Pod         netip.Addr     `json:"pod"`
	Protocol    string         `json:"protocol"`
	Destination netip.AddrPort `json:"destination"`
}

// askedPort is the query's parameter.
const askedPort = "port"

// AskedPort returns which egress IP and port a query is about.
func AskedPort(query url.Values) (netip.AddrPort, error) {
	asked, err := netip.ParseAddrPort(query.Get(askedPort))
	if err != nil {
		return asked, fmt.Errorf("%s=%.100q: expected an egress IP and a port", askedPort, query.Get(askedPort))
	}
	return asked, nil
}

// PortUsers returns the tracked flows that leave from an egress IP and a port. It costs the node a dump of its conntrack table.
func (c *Client) PortUsers(ctx context.Context, asked netip.AddrPort) (users []PortUser, err error) {
	err = c.Get(ctx, PortUsersPath+"?"+url.Values{askedPort: {asked.String()}}.Encode(), &users)
	return users, err
}
