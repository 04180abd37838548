package egress

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/openshift/origin-node/hack/clustertest"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/egress/poolnode"
)

// TestFaults_OfThePool: a node that does not hear the others says so, as long as that is so.
func TestFaults_OfThePool(t *testing.T) {
	lab.InNamespace(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		config := Config{Config: cluster.Config{NodeName: "node-a", Steering: cluster.Steering{Mode: holders.Auto}}, Membership: poolnode.Membership{Port: 17948}}
		config.Pool = cluster.Pool{Networks: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/28")}, Nodes: labels.SelectorFromSet(labels.Set{"pool": "yes"})}
		e := New(ctx, config)
		e.steerer = e.newSteerer(ctx, nil, v1.IPv4Protocol)
		e.Reporter.SetParts(e.parts())
		defer e.running.Wait()
		defer cancel()
		e.keys.Set(holders.Keys{make([]byte, 32)})
		self := clustertest.NewNode("node-a", "192.0.2.2", v1.ConditionTrue)
		self.Labels = map[string]string{"pool": "yes"}
		e.setNode(self)
		for _, command := range []string{"ip address add 192.0.2.2/32 dev lo", "ip link set lo up"} {
			if out, err := exec.CommandContext(ctx, "sh", "-c", command).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", command, err, out)
			}
		}
		e.pool.Start(e.steerer)
		for _, family := range cluster.Families {
			e.state.Update(family)
			e.pool.Sync(family)
		}
		for _, keys := range []holders.Keys{{make([]byte, 32)}, nil} {
			e.keys.Set(keys)
			has := keys != nil
			clustertest.Eventually(t, fmt.Sprintf("it has a part in the pool, with a key: %v", has), func() bool {
				_, err := e.PoolStatus()
				return err == nil && (e.pool.Absent() == nil) == has
			})
			problems := strings.Join(e.Snapshot().SteeringProblems, "\n")
			e.Reporter.FaultsChanged()
			troubles := e.events.Standing(plan.Service{})
			status, err := e.PoolStatus()
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(problems, "has no key") == has || (len(troubles) == 1) == has || strings.Contains(status.Problem, "has no key") == has || (clustertest.ValuesByReason(t, "egress_snat_steering_fault")["pool"] == 1) == has {
				t.Errorf("has a key: %v; problems %q, Events %v, pool %q, metric %v", has, problems, troubles, status.Problem, clustertest.ValuesByReason(t, "egress_snat_steering_fault"))
			}
		}
	})
}

// TestExtension_SaysWhyThereIsNoPool, and why this node has no part in one.
func TestExtension_SaysWhyThereIsNoPool(t *testing.T) {
	config := Config{Config: cluster.Config{NodeName: "node-a", Steering: cluster.Steering{Mode: holders.Auto}}}
	config.Ways.LeaseNamespace = "origin-node"
	inPool := config
	inPool.Pool = cluster.Pool{Networks: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/28")}, Nodes: labels.SelectorFromSet(labels.Set{"pool": "yes"})}
	unavailable := inPool
	unavailable.Steering = cluster.Steering{Mode: holders.Off, Unavailable: errors.New("no nftables here")}
	for want, c := range map[string]Config{
		"egress-snat-assign-cidrs is not set":                   config,
		"cannot send packets to other nodes: no nftables here":  unavailable,
		"waits for objects of the API server (EndpointSlices, ": inPool,
	} {
		e := New(t.Context(), c)
		for name, err := range map[string]error{"status": func() error { _, err := e.PoolStatus(); return err }(), "drain": e.Drain(true, false)} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
	}
	e := New(t.Context(), inPool)
	const noKey = "it has no key by which the other nodes know it: "
	if err := e.Reporter.NoKey(); !strings.Contains(err.Error(), noKey+"the Secret origin-node/origin-node-keys is not read yet") {
		t.Errorf("no key yet: %v", err)
	}
	e.Reporter.KeysFail(errors.New("somebody has deleted it"))
	if err := e.poolConfig().NoKey(); !strings.Contains(err.Error(), noKey+"somebody has deleted it") {
		t.Errorf("no key: %v", err)
	}
}

// TestExtension_WiresThePool: the watchdog asks for it, and it waits for rules.
func TestExtension_WiresThePool(t *testing.T) {
	config := nodeConfig
	config.NodeName, config.Steering.Mode = "node-a", holders.Auto
	config.MinSyncPeriod, config.SyncPeriod = time.Millisecond, time.Hour
	config.Pool = cluster.Pool{Networks: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/28")}, Nodes: labels.SelectorFromSet(labels.Set{"pool": "yes"})}
	e := New(t.Context(), config)
	wired := e.poolConfig()
	if missing := wired.Missing(); !slices.Equal(missing, e.gate.Missing()) || len(missing) == 0 {
		t.Errorf("it waits for %v, want %v", missing, e.gate.Missing())
	}
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	if wired.Await(ctx, v1.IPv4Protocol); ctx.Err() == nil {
		t.Error("it does not wait for a sync")
	}
	if since := e.Summary().DueSince; !since.IsZero() {
		t.Errorf("due since %v", since)
	}
	for _, family := range cluster.Families {
		e.state.Update(family)
		e.pool.Sync(family)
	}
	if since := e.Summary().DueSince; since.IsZero() {
		t.Error("a pool that does not follow the plans is not due")
	}
}
