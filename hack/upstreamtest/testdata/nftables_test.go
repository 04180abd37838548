package nftables

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/knftables"

	iptablestest "k8s.io/kubernetes/pkg/util/iptables/testing"
)

// recorded records the transactions and a hash of what the kernel has after each. It refuses the next ones if
// told to.
type recorded struct {
	knftables.Interface
	fake           *knftables.Fake
	fail, refusals int
}

// record is what NewFakeProxier's proxier gets in the place of the fake.
func record(fake *knftables.Fake) knftables.Interface {
	return &recorded{Interface: fake, fake: fake}
}

func (r *recorded) Run(ctx context.Context, tx *knftables.Transaction) error {
	iptablestest.Record("transaction", tx.String())
	if r.refusals < r.fail {
		r.refusals++
		return errors.New("refused")
	}
	err := r.Interface.Run(ctx, tx)
	iptablestest.Record(fmt.Sprintf("error %v, dump %x", err, sha256.Sum256([]byte(r.fake.Dump()))), "")
	return err
}

func TestUpstreamtestClusters(t *testing.T) {
	for seed := range clusters(t) {
		for _, family := range []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol} {
			t.Run(fmt.Sprintf("%s %d", family, seed), func(t *testing.T) {
				iptablestest.Record(fmt.Sprintf("cluster %d %s", seed, family), "")
				_, p := NewFakeProxier(family)
				play(t, &cluster{Rand: rand.New(rand.NewSource(int64(seed))), family: family, proxier: p}, seed)
			})
		}
	}
}

// play lets things happen and syncs, now and then in full, now and then in vain.
func play(t *testing.T, c *cluster, seed int) {
	p := c.proxier
	nft, ok := p.nftables.(*recorded)
	if !ok {
		t.Fatal("the proxier has another nftables than what records")
	}
	for step := range 30 {
		c.happen()
		if seed%5 == 4 && step == 10 {
			c.grow()
		}
		if c.chance(10) {
			p.needFullSync = true
		}
		for chain := range inOrder(p.staleChains) {
			// Whether a chain has been stale for a second must not depend on how long this takes.
			p.staleChains[chain] = choose(c, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
		}
		nft.refusals, nft.fail = 0, choose(c, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2)
		full := p.needFullSync
		err := p.syncProxyRules()
		if err == nil && nft.refusals > 0 { // only stale chains were not deleted
			full = true
		}
		if err != nil && nft.refusals == 0 {
			t.Fatalf("step %d: the sync gave %v", step, err)
		}
		iptablestest.Record(fmt.Sprintf("sync full=%t succeeded=%t", full, err == nil), "")
		checkExtension(t, full, err == nil)
	}
}
