package plan

import (
	"fmt"
	"net/netip"
	"syscall"
	"testing"
	"time"
)

// BenchmarkPlanner_ExternalIPs is what an external IP costs when all of one Service change hands, and
// when one is claimed by so many Services. The cost of each should not depend on their number. It is
// told as CPU time, too, which is the same on a busy machine.
func BenchmarkPlanner_ExternalIPs(b *testing.B) {
	for _, count := range []int{1_000, 10_000, 80_000} {
		b.Run(fmt.Sprintf("one-service/%d", count), func(b *testing.B) {
			perAddress(b, count, func(p *Planner, round int) {
				p.SetService(manyAddresses(Service{"ns", "web"}, round, count), nil)
			})
		})
		b.Run(fmt.Sprintf("one-address/%d", count), func(b *testing.B) {
			perAddress(b, count, func(p *Planner, round int) {
				for n := range count {
					p.SetService(manyAddresses(Service{"ns", fmt.Sprint(n)}, round, 1), nil)
				}
			})
		})
	}
}

// perAddress tells what it costs to change so many addresses of a Planner.
func perAddress(b *testing.B, count int, change func(p *Planner, round int)) {
	b.Helper()
	p := NewPlanner(func(string, netip.Addr) Pod { return Pod{} }, Choices{}.Of)
	p.SetSurroundings(Input{ClusterCIDRs: prefixes("10.128.0.0/14")})
	begun := cpuTime(b)
	for round := 0; b.Loop(); round++ {
		change(p, round)
		p.Update()
	}
	addresses := float64(b.N) * float64(count)
	b.ReportMetric(float64((cpuTime(b)-begun).Nanoseconds())/addresses, "cpu-ns/address")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/addresses, "ns/address")
}

// cpuTime is what this process has used.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// manyAddresses are those that a Service of this age has.
func manyAddresses(service Service, created, count int) Holding {
	holding := Holding{Service: service, Created: time.Unix(int64(created), 0)}
	for i := range count {
		holding.Addresses = append(holding.Addresses, Address{IP: netip.AddrFrom4([4]byte{198, 18 + byte(i>>16), byte(i >> 8), byte(i)})})
	}
	return holding
}
