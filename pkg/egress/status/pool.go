package status

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"time"
)

// Pool is how the nodes stand that egress IPs are put on, as far as one of them knows.
type Pool struct {
	// Node is the one that knows.
	Node string `json:"node"`
	// Votes of the nodes of the pool are live, Of is how many there are. Majority: these may take egress IPs.
	Votes    int  `json:"votes"`
	Of       int  `json:"of"`
	Majority bool `json:"majority"`
	// Problem is why the node does not hear the others, nor they it; empty if nothing is in the way.
	Problem string `json:"problem,omitempty"`
	// Members are the nodes of the pool, and others that still have addresses of it, sorted by name.
	Members []PoolMember `json:"members"`
	// Unheld are the addresses that no live node has, sorted.
	Unheld []UnheldAddress `json:"unheld"`

	// FromAPI and LeftOut are as in [Snapshot]. Votes, networks and drains are not known then.
	FromAPI bool     `json:"-"`
	LeftOut []string `json:"-"`
}

// The states of a [PoolMember].
const (
	Live     = "live"
	Draining = "draining"
	Dead     = "dead"
	// Leaving: its node is not in the pool any more.
	Leaving = "leaving"
	// Unknown: nothing was ever heard of it.
	Unknown = "unknown"
)

// PoolMember is a node of the pool.
type PoolMember struct {
	Name string `json:"name"`
	// State is [Live], or one of the others.
	State string `json:"state"`
	// Networks are its subnets: it could hold the addresses in those that are up.
	Networks []PoolNetwork `json:"networks,omitempty"`
	// Held are its addresses, sorted; of a dead node, those that it had. This node has an address that it hands over until its
	// pods use the next node.
	Held []netip.Addr `json:"held,omitempty"`
}

// PoolNetwork is a subnet of a node.
type PoolNetwork struct {
	Prefix netip.Prefix `json:"prefix"`
	Up     bool         `json:"up"`
}

// UnheldAddress is an address that no live node of the pool has.
type UnheldAddress struct {
	IP    netip.Addr `json:"ip"`
	Since time.Time  `json:"since,omitzero"`
	// UsedBy is the MAC of another host that has it, Lost the dead node that had it last; empty if there is none.
	UsedBy string `json:"usedBy,omitempty"`
	Lost   string `json:"lost,omitempty"`
	// Why says of nodes of the pool why they cannot hold it, by name.
	Why map[string]string `json:"why,omitempty"`
}

// PoolSource knows how the pool stands. A [Source] may be one as well.
type PoolSource interface {
	// PoolStatus returns how the pool stands; an error if the node has no part in it.
	PoolStatus() (Pool, error)
	// Drain has the node give its addresses to others, or not any more. What is remembered counts after a restart as
	// well.
	Drain(now, remember bool) error
}

const (
	poolPath    = "/v1/pool"
	drainPath   = "/v1/drain"
	undrainPath = "/v1/undrain"
	// untilRestart is a query of drainPath.
	untilRestart = "until=restart"
)

// addPool adds what is about the pool.
func (s *server) addPool(mux *http.ServeMux) {
	source, ok := s.source.(PoolSource)
	if !ok {
		return
	}
	tell := func(w http.ResponseWriter, err error) {
		var pool Pool
		if err == nil {
			pool, err = source.PoolStatus()
		}
		s.tell(w, pool, err, http.StatusConflict)
	}
	change := func(now bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			tell(w, source.Drain(now, r.URL.RawQuery != untilRestart))
		}
	}
	mux.HandleFunc("GET "+poolPath, func(w http.ResponseWriter, _ *http.Request) { tell(w, nil) })
	mux.HandleFunc("POST "+drainPath, change(true))
	mux.HandleFunc("POST "+undrainPath, change(false))
}

// Pool returns how the pool stands.
func (c *Client) Pool(ctx context.Context) (Pool, error) {
	return c.pool(ctx, http.MethodGet, poolPath)
}

// Drain has the node give its addresses to others, also after a restart if it is to remember that, and returns how the
// pool stood then.
func (c *Client) Drain(ctx context.Context, remember bool) (Pool, error) {
	if remember {
		return c.pool(ctx, http.MethodPost, drainPath)
	}
	return c.pool(ctx, http.MethodPost, drainPath+"?"+untilRestart)
}

// Undrain ends a Drain.
func (c *Client) Undrain(ctx context.Context) (Pool, error) {
	return c.pool(ctx, http.MethodPost, undrainPath)
}

func (c *Client) pool(ctx context.Context, method, resource string) (pool Pool, err error) {
	err = c.document(ctx, clientTimeout, method, resource, &pool)
	return pool, err
}

// Own returns the node's own part; an error if it has none.
func (p Pool) Own() (PoolMember, error) {
	for _, m := range p.Members {
		if m.Name == p.Node {
			return m, nil
		}
	}
	return PoolMember{}, errors.New("the node is not among the members that it tells of")
}
