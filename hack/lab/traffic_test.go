//go:build linux

package lab

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// outsideOf are the servers of the outside host.
func outsideOf(l *Lab) []netip.AddrPort {
	return []netip.AddrPort{netip.AddrPortFrom(l.Outside().V4, port), netip.AddrPortFrom(l.Outside().V6, port)}
}

// seenAsNode says that pods are seen as their nodes.
func seenAsNode(q Question) error {
	if want := q.From.Node.address(q.Network); q.Err == nil && q.Seen != want {
		return fmt.Errorf("should be %s", want)
	}
	return nil
}

// answered is when a question counts as unanswered where all must be answered: on a busy machine an
// answer may take long, but it comes.
const answered = 15 * time.Second

func round(t *testing.T, traffic *Traffic) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := traffic.Round(ctx); err != nil {
		t.Fatal(err)
	}
}

func startTraffic(t *testing.T, cfg TrafficConfig, from ...*Host) *Traffic {
	t.Helper()
	traffic := StartTraffic(cfg, from...)
	t.Cleanup(func() { traffic.Stop() })
	return traffic
}

func TestTraffic_NothingIsWrong(t *testing.T) {
	l := threeNodes(t, Config{Masquerade: true})
	asked := map[string]int{} // Check is called one at a time
	check := func(q Question) error {
		flow := "new"
		if q.Kept {
			flow = "kept"
		}
		asked[fmt.Sprintf("%s %s %s", q.From.Name, q.Network, flow)]++
		if q.Start.After(q.End) || q.Opened.After(q.End) || !q.Kept && q.Opened != q.Start {
			t.Errorf("impossible times: %s", q)
		}
		return seenAsNode(q)
	}
	traffic := startTraffic(t, TrafficConfig{
		To: outsideOf(l), Protocols: []string{"tcp", "udp", "sctp"}, Rate: 500, Timeout: answered, Check: check,
	}, l.Pod(1), l.Pod(2), l.Pod(3))
	for range 3 {
		round(t, traffic)
	}
	if sum := traffic.Summary(); sum.Answered == 0 || sum.Duration == 0 {
		t.Errorf("on the way: %s", sum)
	}
	sum := traffic.Stop()
	if again := traffic.Stop(); again.Answered != sum.Answered || again.Duration != sum.Duration {
		t.Errorf("stopped again: %s, want %s", again, sum)
	}
	total := 0
	for _, n := range asked {
		total += n
	}
	const kinds = 3 * 2 * (2*2 + 1) // pods, families; TCP and UDP twice, SCTP
	if sum.Answered != total || sum.Unanswered+sum.Wrong+sum.Broken != 0 || len(asked) != kinds {
		t.Errorf("%d kinds of questions, want %d; %d questions; %s", len(asked), kinds, total, sum)
	}
	t.Log(sum)
}

// One flow among many has another source.
func TestTraffic_OneWrongAnswer(t *testing.T) {
	forBackends(t, func(t *testing.T, b Backend) {
		l := threeNodes(t, Config{Masquerade: true, Backend: b})
		for _, network := range []string{"tcp4", "udp6"} {
			traffic := startTraffic(t, TrafficConfig{To: outsideOf(l), Rate: 500, Timeout: answered, Check: seenAsNode}, l.Pod(1), l.Pod(2), l.Pod(3))
			round(t, traffic)
			egress := egressV4
			if isV6(network) {
				egress = egressV6
			}
			rule(t, l.Nodes()[1], network, "-I", "POSTROUTING", "-p", network[:3],
				"-m", "limit", "--limit", "1/day", "--limit-burst", "1", "-j", "SNAT", "--to-source", egress.String())
			round(t, traffic)
			sum := traffic.Stop()
			if sum.Wrong != 1 || len(sum.WrongOnes) != 1 || sum.Unanswered != 0 || sum.Broken != 0 {
				t.Fatalf("want one wrong answer: %s", sum)
			}
			for _, want := range []string{l.Pod(2).Name, network, "new flow", egress.String(), "should be"} {
				if !strings.Contains(sum.String(), want) {
					t.Errorf("%s: the summary does not say %q: %s", network, want, sum)
				}
			}
		}
	})
}

func TestTraffic_Silence(t *testing.T) {
	l := threeNodes(t, Config{Masquerade: true})
	traffic := startTraffic(t, TrafficConfig{To: outsideOf(l), Rate: 500, Timeout: 500 * time.Millisecond}, l.Pod(1), l.Pod(2))
	round(t, traffic)
	if err := l.SetLink(l.Pod(2), false); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	err := traffic.Round(ctx)
	if err == nil || !strings.Contains(err.Error(), l.Pod(2).Name) || strings.Contains(err.Error(), l.Pod(1).Name) {
		t.Errorf("got error %v, want one that names pod-2 and not pod-1", err)
	}
	if err := l.SetLink(l.Pod(2), true); err != nil {
		t.Fatal(err)
	}
	round(t, traffic)
	sum := traffic.Stop()
	if sum.Unanswered == 0 || sum.Silence < 3*time.Second/2 || !strings.Contains(sum.Silent, l.Pod(2).Name) {
		t.Errorf("pod-2 was cut off for three seconds: %s", sum)
	}
	if sum.Broken != 0 {
		t.Errorf("a kept flow did not outlive the silence: %s", sum)
	}
	if len(sum.UnansweredOnes) != min(sum.Unanswered, detailed) {
		t.Errorf("%d unanswered questions in detail: %s", len(sum.UnansweredOnes), sum)
	}
}

func TestTraffic_BrokenFlows(t *testing.T) {
	l := ForTest(t, Config{Pods: 1})
	server, err := l.Outside().ServeWhoami("tcp4", port)
	if err != nil {
		t.Fatal(err)
	}
	traffic := startTraffic(t, TrafficConfig{
		To: outsideOf(l)[:1], Protocols: []string{"tcp"}, Rate: 500, Timeout: 100 * time.Millisecond,
	}, l.Pod(1))
	round(t, traffic)
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Outside().ServeWhoami("tcp4", port); err != nil {
		t.Fatal(err)
	}
	round(t, traffic)
	if sum := traffic.Stop(); sum.Broken != 1 || len(sum.BrokenOnes) != 1 {
		t.Errorf("one kept flow was broken: %s", sum)
	}
}

// Pods that ask come and go, and so does one with the address of another.
func TestTraffic_PodsComeAndGo(t *testing.T) {
	l := threeNodes(t, Config{Masquerade: true})
	traffic := startTraffic(t, TrafficConfig{To: outsideOf(l), Rate: 500, Timeout: answered, Check: seenAsNode}, l.Pod(1))
	for range 5 {
		pod, err := l.AddPodOn(l.Nodes()[2])
		if err != nil {
			t.Fatal(err)
		}
		traffic.Add(pod)
		round(t, traffic)
		traffic.Remove(pod)
		if err := l.RemovePod(pod); err != nil {
			t.Fatal(err)
		}
	}
	if sum := traffic.Stop(); sum.Unanswered+sum.Wrong+sum.Broken != 0 {
		t.Error(sum)
	}
}
