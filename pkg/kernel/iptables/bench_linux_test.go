package iptables

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
)

// BenchmarkNodes tells what thousands of excluded nodes cost beside 5,000 bindings: the time
// of a write as a multiple of the same without them, in one run. Once for all rules, once
// for one changed binding.
func BenchmarkNodes(b *testing.B) {
	for _, backend := range lab.Backends() {
		for _, nodes := range []int{1000, 5000} {
			b.Run(fmt.Sprintf("%s/%d", backend, nodes), func(b *testing.B) {
				l := lab.ForTest(b, lab.Config{Backend: backend})
				b.Setenv("PATH", l.Path())
				b.Setenv("XTABLES_LOCKFILE", filepath.Join(b.TempDir(), "lock"))
				r := rand.New(rand.NewPCG(16, 16))
				none := randomPlan(r, clusterV4, 5000)
				plans := []kernel.Desired{none, withNodes(r, none, nodes)}
				// The fastest, for the machine has other work.
				all, one := [2]time.Duration{time.Hour, time.Hour}, [2]time.Duration{time.Hour, time.Hour}
				order := []int{0, 1}
				for b.Loop() {
					slices.Reverse(order)
					for _, i := range order {
						p := plans[i]
						changed := p
						changed.Bindings = slices.Clone(p.Bindings)
						changed.Bindings[0].EgressIP = changed.Bindings[0].EgressIP.Next()
						w := NewWriter(kernel.IPv4)
						timedWrite(b, l, w, kernel.Desired{})
						all[i] = min(all[i], timedWrite(b, l, w, p))
						one[i] = min(one[i], timedWrite(b, l, w, changed))
						timedWrite(b, l, w, kernel.Desired{})
					}
				}
				b.ReportMetric(float64(all[1])/float64(all[0]), "all/none")
				b.ReportMetric(float64(one[1])/float64(one[0]), "one/none")
				b.ReportMetric(float64(all[0].Microseconds())/1000, "none-ms")
				b.ReportMetric(0, "ns/op") // of nothing that anybody does
			})
		}
	}
}

// BenchmarkUntouched tells what a glance costs beside a full look, which runs iptables-save, in the tables of
// a proxier with so many endpoints.
func BenchmarkUntouched(b *testing.B) {
	for _, backend := range lab.Backends() {
		for _, endpoints := range []int{10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", backend, endpoints), func(b *testing.B) {
				l := lab.ForTest(b, lab.Config{Backend: backend})
				b.Setenv("PATH", l.Path())
				b.Setenv("XTABLES_LOCKFILE", filepath.Join(b.TempDir(), "lock"))
				w, rules := NewWriter(kernel.IPv4), Render(randomPlan(rand.New(rand.NewPCG(17, 17)), clusterV4, 25))
				do := func(f func() error) {
					if err := l.Node().Do(f); err != nil {
						b.Fatal(err)
					}
				}
				restore := func(lines []string) {
					do(func() error {
						command := exec.CommandContext(b.Context(), w.commands.restore, "--noflush")
						command.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
						return command.Run()
					})
				}
				restore(proxierBase())
				do(func() error { _, err := w.Write(b.Context(), rules); return err })
				do(func() error { _, _, err := w.Read(b.Context()); return err })
				restore(services(endpoints))
				b.Run("glance", func(b *testing.B) {
					do(func() error {
						for b.Loop() {
							if untouched, err := w.Untouched(b.Context()); !untouched || err != nil {
								return fmt.Errorf("untouched: %v (%w)", untouched, err)
							}
						}
						return nil
					})
				})
				b.Run("look", func(b *testing.B) {
					if backend == lab.NFT && endpoints > 10_000 {
						b.Skip("iptables-nft-save takes minutes")
					}
					do(func() error {
						for b.Loop() {
							if _, _, err := w.Read(b.Context()); err != nil {
								return err
							}
						}
						return nil
					})
				})
			})
		}
	}
}

// services are the rules of the proxier for Services with ten endpoints each.
func services(endpoints int) []string {
	chains, rules := []string{"*nat"}, []string(nil)
	for i := range endpoints / 10 {
		const words = `-m comment --comment "default/service:http cluster IP"`
		chains = append(chains, fmt.Sprintf(":KUBE-SVC-%016d - [0:0]", i))
		rules = append(rules,
			fmt.Sprintf("-A KUBE-SERVICES -d 172.30.%d.%d/32 -p tcp %s -m tcp --dport 80 -j KUBE-SVC-%016d", i>>8&255, i&255, words, i),
			fmt.Sprintf("-A KUBE-SVC-%016d ! -s %s -d 172.30.%d.%d/32 -p tcp %s -m tcp --dport 80 -j RETURN", i, clusterV4, i>>8&255, i&255, words))
		for j := i * 10; j < i*10+10; j++ {
			pod := fmt.Sprintf("10.%d.%d.%d", 128+j>>16, j>>8&255, j&255)
			chains = append(chains, fmt.Sprintf(":KUBE-SEP-%016d - [0:0]", j))
			rules = append(rules,
				fmt.Sprintf("-A KUBE-SVC-%016d %s -m statistic --mode random --probability 0.5 -j KUBE-SEP-%016d", i, words, j),
				fmt.Sprintf("-A KUBE-SEP-%016d -s %s/32 %s -j RETURN", j, pod, words),
				fmt.Sprintf("-A KUBE-SEP-%016d -p tcp %s -m tcp -j DNAT --to-destination %s:8080", j, words, pod))
		}
	}
	return append(append(chains, rules...), "COMMIT")
}

func timedWrite(b *testing.B, l *lab.Lab, w *Writer, p kernel.Desired) (elapsed time.Duration) {
	rules := Render(p)
	err := l.Node().Do(func() error {
		start := time.Now()
		_, err := w.Write(b.Context(), rules)
		elapsed = time.Since(start)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return elapsed
}
