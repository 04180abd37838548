package iptables

import (
	"errors"
	"fmt"
	"math/rand"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	utiliptables "k8s.io/kubernetes/pkg/util/iptables"
	iptablestest "k8s.io/kubernetes/pkg/util/iptables/testing"
)

// faulty refuses what it is given if told to.
type faulty struct {
	*iptablestest.FakeIPTables
	fail bool
}

func (f *faulty) RestoreAll(data []byte, flush utiliptables.FlushFlag, counters utiliptables.RestoreCountersFlag) error {
	if f.fail {
		iptablestest.Record("refused", string(data))
		return errors.New("refused")
	}
	return f.FakeIPTables.RestoreAll(data, flush, counters)
}

func TestUpstreamtestClusters(t *testing.T) {
	for seed := range clusters(t) {
		for _, family := range []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol} {
			t.Run(fmt.Sprintf("%s %d", family, seed), func(t *testing.T) {
				iptablestest.Record(fmt.Sprintf("cluster %d %s", seed, family), "")
				ipt := &faulty{FakeIPTables: iptablestest.NewFake()}
				if family == v1.IPv6Protocol {
					ipt.FakeIPTables = iptablestest.NewIPv6Fake()
				}
				play(t, ipt, &cluster{Rand: rand.New(rand.NewSource(int64(seed))), family: family, proxier: NewFakeProxier(ipt)}, seed)
			})
		}
	}
}

// play lets things happen and syncs, now and then in full, now and then in vain.
func play(t *testing.T, ipt *faulty, c *cluster, seed int) {
	p := c.proxier
	for step := range 30 {
		c.happen()
		if seed%5 == 4 && step == 10 {
			c.grow()
		}
		if c.chance(10) {
			p.needFullSync = true
		}
		p.syncPeriod = choose(c, 0, time.Hour) // unused chains are kept for this long
		ipt.fail = c.chance(10)
		full := p.needFullSync
		err := p.syncProxyRules()
		if (err == nil) == ipt.fail {
			t.Fatalf("step %d: the sync gave %v", step, err)
		}
		iptablestest.Record(fmt.Sprintf("sync full=%t succeeded=%t", full, err == nil), "")
		checkExtension(t, full, err == nil)
	}
}
