package conntrack

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
)

const (
	benchPods    = 1000
	flowsPerPod  = 100
	changedPods  = 100
	asPerPodTool = 5 // pods for which the tool is timed
)

var (
	benchOld = addr("203.0.113.1")
	benchNew = addr("203.0.113.2")
)

func benchPod(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 128, byte(i >> 8), byte(i)}) }

// benchNode has a node whose table is full of flows that leave from benchOld.
func benchNode(b *testing.B) (*lab.Host, *creator) {
	node := lab.ForTest(b, lab.Config{}).Node()
	c := newCreator(b, node)
	c.refill(b, benchPods)
	return node, c
}

// refill creates the flows of the first pods.
func (c *creator) refill(b *testing.B, pods int) {
	b.Helper()
	for i := range pods {
		for j := range flowsPerPod {
			e := entry{sourcePort: uint16(2000 + j), Flow: Flow{
				Protocol: tcp, Source: benchPod(i), SeenAs: benchOld,
				// No two alike on their way back either.
				Destination: netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)}), 443),
			}}
			if err := c.create(e); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// benchPlan binds every pod to benchOld, and the first ones to benchNew.
func benchPlan(moved int) (kernel.Desired, Scope) {
	p := kernel.Desired{Networks: kernel.Networks{ClusterCIDRs: prefixes("10.128.0.0/14"), Exclusions: prefixes("169.254.0.0/16", "192.0.2.2/32", "192.0.2.3/32", "224.0.0.0/4")}}
	scope := Scope{Pods: map[netip.Addr]bool{}}
	for i := range benchPods {
		b := kernel.Binding{Pod: benchPod(i), Protocol: kernel.TCP, EgressIP: benchOld}
		if i < moved {
			scope.Pods[b.Pod] = true
			scope.Removed = append(scope.Removed, b)
			b.EgressIP = benchNew
		}
		p.Bindings = append(p.Bindings, b)
	}
	return p, scope
}

// on runs f in the namespace of host and returns how long it took.
func on(b *testing.B, host *lab.Host, f func() error) (took time.Duration) {
	b.Helper()
	err := host.Do(func() error {
		start := time.Now()
		err := f()
		took = time.Since(start)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return took
}

func deleteExactly(b *testing.B, after kernel.Desired, scope Scope, want int) func() error {
	return func() error {
		deleted, err := Delete(b.Context(), kernel.IPv4, after, scope)
		if err == nil && deleted.Ended != want {
			err = fmt.Errorf("deleted %d, want %d", deleted.Ended, want)
		}
		return err
	}
}

// BenchmarkNothingWrong is a pass over 100,000 flows that are all right, as at the start.
// The metrics are how much of it the kernel's dump takes through the library, which keeps
// all of it, and reading and decoding it here; the rest is Judge.
func BenchmarkNothingWrong(b *testing.B) {
	node, _ := benchNode(b)
	after, _ := benchPlan(0)
	var total, dump, decode time.Duration
	b.ReportAllocs()
	for b.Loop() {
		total += on(b, node, deleteExactly(b, after, Scope{All: true}, 0))
		b.StopTimer()
		dump += on(b, node, func() error {
			request := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_CTNETLINK<<8|nl.IPCTNL_MSG_CT_GET, unix.NLM_F_DUMP)
			request.AddData(&nl.Nfgenmsg{NfgenFamily: unix.AF_INET, Version: nl.NFNETLINK_V0})
			messages, err := request.Execute(unix.NETLINK_NETFILTER, 0)
			if len(messages) < benchPods*flowsPerPod {
				b.Errorf("%d entries are there, want %d", len(messages), benchPods*flowsPerPod)
			}
			return err
		})
		decode += on(b, node, func() error {
			s, err := openSocket()
			if err != nil {
				return err
			}
			defer s.close()
			return s.dump(b.Context(), unix.AF_INET, everyone, func(*tracked) {})
		})
		b.StartTimer()
	}
	b.ReportMetric(float64(dump)/float64(total), "dump/pass")
	b.ReportMetric(float64(decode)/float64(total), "decode/pass")
}

// BenchmarkChangedPods is a pass over 100,000 flows after 100 of 1,000 pods were given
// another egress IP, so it deletes 10,000. The metric is how many times longer the tool
// conntrack takes, called once per changed pod.
func BenchmarkChangedPods(b *testing.B) {
	node, c := benchNode(b)
	after, scope := benchPlan(changedPods)
	var pass, tool time.Duration
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		for i := range asPerPodTool {
			start := time.Now()
			if _, err := node.Run(b.Context(), "conntrack", "-D", "-f", "ipv4", "--orig-src", benchPod(i).String()); err != nil {
				b.Fatal(err)
			}
			tool += time.Since(start)
		}
		c.refill(b, asPerPodTool)
		b.StartTimer()
		pass += on(b, node, deleteExactly(b, after, scope, changedPods*flowsPerPod))
		b.StopTimer()
		c.refill(b, changedPods)
		b.StartTimer()
	}
	b.ReportMetric(float64(tool)*changedPods/asPerPodTool/float64(pass), "tool/pass")
}

// BenchmarkOneChangedPod is the smallest change.
func BenchmarkOneChangedPod(b *testing.B) {
	node, c := benchNode(b)
	after, scope := benchPlan(1)
	for b.Loop() {
		on(b, node, deleteExactly(b, after, scope, flowsPerPod))
		b.StopTimer()
		c.refill(b, 1)
		b.StartTimer()
	}
}

// BenchmarkCount counts what is seen as one egress IP among 100,000 flows.
func BenchmarkCount(b *testing.B) {
	node, _ := benchNode(b)
	written, _ := benchPlan(0)
	table := NewTable(kernel.IPv4)
	b.Cleanup(table.Close)
	b.ReportAllocs()
	for b.Loop() {
		on(b, node, func() error {
			usage, err := table.Count(b.Context(), written)
			if err == nil && usage[benchOld].Flows != benchPods*flowsPerPod {
				err = fmt.Errorf("counted %+v", usage)
			}
			return err
		})
	}
}

// BenchmarkBusiest counts the source ports in use of all pods, which have 100,000 flows.
func BenchmarkBusiest(b *testing.B) {
	node, _ := benchNode(b)
	pods, table := map[netip.Addr]bool{}, NewTable(kernel.IPv4)
	for i := range benchPods {
		pods[benchPod(i)] = true
	}
	b.ReportAllocs()
	for b.Loop() {
		on(b, node, func() error {
			busiest, err := table.Busiest(b.Context(), pods)
			if err == nil && len(busiest) != benchPods {
				err = fmt.Errorf("counted %d pods", len(busiest))
			}
			return err
		})
	}
	table.Close()
}

// BenchmarkSelector_Judge is the judgement of one flow that is right.
func BenchmarkSelector_Judge(b *testing.B) {
	after, _ := benchPlan(0)
	s := NewSelector(after, Scope{All: true}, kernel.CIDRSet{})
	for name, f := range map[string]Flow{
		"right":    flow(tcp, "10.128.0.5", "198.51.100.9:443", benchOld.String()),
		"excluded": flow(tcp, "10.128.0.5", "192.0.2.3:6443", "10.128.0.5"),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if s.Judge(f) != Stays {
					b.Fatal("selected")
				}
			}
		})
	}
}
