package tell

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/hack/clustertest"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/plan"
)

// TestRefusalLog_FlippingAnnotation: somebody writes a wrong annotation and takes it away, all the time. The
// log has some lines on it; those that it leaves out are counted.
func TestRefusalLog_FlippingAnnotation(t *testing.T) {
	var log refusalLines
	hand := &handClock{now: time.Unix(1000, 0)}
	state := cluster.New(cluster.Config{ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14")}})
	l := NewRefusalLog(log.logger(), hand)
	const flips = 1000
	for i := range 2 * flips {
		state.SetService(clustertest.NewService("web", func(svc *v1.Service) {
			if i%2 == 0 {
				svc.Annotations = map[string]string{cluster.Annotation: "nonsense"}
			}
		}))
		change := state.Update(v1.IPv4Protocol)
		l.Log(change.Refused, change.Lifted)
		hand.advance(serviceLineEvery / 200)
	}
	const minutes = 2 * flips / 200
	if most := linesOfService + 1 + 2*minutes; log.told < linesOfService || log.told+log.others > most {
		t.Errorf("%d refusals in %d minutes are %d lines and %d on those left out, want %d and more, of both %d at most", flips, minutes, log.told, log.others, linesOfService, most)
	}
	hand.advance(leftOutEvery)
	l.Log(nil, nil)
	if log.told+log.leftOut != flips {
		t.Errorf("%d refusals have lines, %d are counted as left out; want %d together", log.told, log.leftOut, flips)
	}
	if !strings.Contains(log.last, `"mostOf"="ns/web"`) {
		t.Errorf("the last line names no Service: %s", log.last)
	}
}

// TestRefusalLog_ManyServices: all are refused at once, as at a start. One that is refused later has its
// line, and those that were are forgotten.
func TestRefusalLog_ManyServices(t *testing.T) {
	var log refusalLines
	hand := &handClock{now: time.Unix(1000, 0)}
	l := NewRefusalLog(log.logger(), hand)
	refusal := func(i int) plan.Refusal {
		return plan.Refusal{Service: plan.Service{Namespace: "ns", Name: fmt.Sprint(i)}, Reason: plan.NotAllowed}
	}
	const many = 5000
	var refused []plan.Refusal
	for i := range many {
		refused = append(refused, refusal(i))
	}
	l.Log(refused, nil)
	if log.told != linesOfAll || log.others != 1 || log.leftOut != many-linesOfAll {
		t.Errorf("%d lines, %d on %d left out; want %d, and one on the rest", log.told, log.others, log.leftOut, linesOfAll)
	}
	hand.advance(lineEvery)
	l.Log([]plan.Refusal{refusal(many)}, nil)
	if log.told != linesOfAll+1 {
		t.Errorf("%d lines; want one more", log.told)
	}
	hand.advance(2 * linesOfService * serviceLineEvery)
	if l.Log(nil, nil); len(l.services) != 0 {
		t.Errorf("%d Services are remembered, want none", len(l.services))
	}
	if log.others != 1 {
		t.Errorf("%d lines on refusals that were left out; want no second one", log.others)
	}
}

// handClock goes when it is told to.
type handClock struct{ now time.Time }

func (c *handClock) Now() time.Time                  { return c.now }
func (c *handClock) Since(t time.Time) time.Duration { return c.now.Sub(t) }
func (c *handClock) advance(by time.Duration)        { c.now = c.now.Add(by) }

// refusalLines counts what a log says of refusals.
type refusalLines struct {
	told            int // refusals that have a line
	leftOut, others int // refusals that lines count, and those lines
	last            string
}

var countOfLeftOut = regexp.MustCompile(`"count"=(\d+)`)

func (l *refusalLines) logger() klog.Logger {
	return funcr.New(func(_, text string) {
		switch {
		case strings.Contains(text, `"msg"="Refused egress SNAT"`):
			l.told++
		case strings.Contains(text, `"msg"="More refusals were not logged`):
			n, _ := strconv.Atoi(countOfLeftOut.FindStringSubmatch(text)[1])
			l.leftOut += n
			l.others++
		default:
			return
		}
		l.last = text
	}, funcr.Options{})
}

// TestRefusalLog_EndpointSlicesFollow: what holds after the end of every pod has a line if it does not end.
func TestRefusalLog_EndpointSlicesFollow(t *testing.T) {
	var log refusalLines
	hand := &handClock{now: time.Unix(1000, 0)}
	l := NewRefusalLog(log.logger(), hand)
	refusal := func(name string) plan.Refusal {
		return plan.Refusal{Service: plan.Service{Namespace: "ns", Name: name}, Reason: plan.AddressOfOtherPod}
	}
	l.Log([]plan.Refusal{refusal("short"), refusal("long")}, nil)
	hand.advance(settledWithin / 2)
	l.Log(nil, []plan.Refusal{refusal("short")})
	if log.told != 0 {
		t.Errorf("%d lines at once", log.told)
	}
	hand.advance(settledWithin)
	for range 2 {
		l.Log(nil, nil)
	}
	if log.told != 1 {
		t.Errorf("%d lines later, want 1", log.told)
	}
}
