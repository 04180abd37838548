package sourceports

import (
	"context"
	"net/url"
	"strconv"

	"github.com/openshift/origin-node/pkg/egress/status"
	"github.com/openshift/origin-node/pkg/kernel/conntrack"
)

// protocolNames are those of protocols with ports, by number.
var protocolNames = map[uint8]string{6: "tcp", 17: "udp", 132: "sctp"}

// Users returns a list of [status.PortUser], for a query that [status.AskedPort] reads.
func Users(ctx context.Context, query url.Values) (any, error) {
	asked, err := status.AskedPort(query)
	if err != nil {
		return nil, err
	}
	flows, err := conntrack.Users(ctx, asked)
	users := []status.PortUser{}
	for _, f := range flows {
		name, known := protocolNames[f.Protocol]
		if !known {
			name = strconv.Itoa(int(f.Protocol))
		}
		users = append(users, status.PortUser{Pod: f.Source, Protocol: name, Destination: f.Destination})
	}
	return users, err
}
