package tell

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/openshift/origin-node/pkg/egress/plan"
)

// How many lines the log has on refusals: so many at once, and one more each so often.
const (
	linesOfService, serviceLineEvery = 5, time.Minute
	linesOfAll, lineEvery            = 20, 3 * time.Second
	// leftOutEvery is how often it says how many it has left out.
	leftOutEvery = time.Minute
	// settledWithin is how long an EndpointSlice may take to follow the end of a pod.
	settledWithin = time.Minute
)

// settles tells whether a refusal is mostly over when an EndpointSlice, or a Lease, has followed.
func settles(reason plan.Reason) bool {
	return reason == plan.AddressOfOtherPod || reason == plan.AddressNotChosen
}

// RefusalLog logs refusals, of each Service and of all together no more than a few at a time: whoever
// may write a Service could fill the logs of all nodes by having something refused again and again.
// It is for one goroutine.
type RefusalLog struct {
	logger   klog.Logger
	clock    clock.PassiveClock
	lines    flowcontrol.PassiveRateLimiter
	services map[plan.Service]*serviceRefusals
	// unsettled are refusals that hold after the end of every pod, until its EndpointSlice follows, by when they came.
	unsettled map[plan.Refusal]time.Time
	// saidLeftOut is when it last said how many it has left out.
	saidLeftOut time.Time
}

// serviceRefusals is what a RefusalLog knows of a Service.
type serviceRefusals struct {
	lines   flowcontrol.PassiveRateLimiter
	last    time.Time
	leftOut int
}

// NewRefusalLog returns one that has logged nothing.
func NewRefusalLog(logger klog.Logger, clock clock.PassiveClock) *RefusalLog {
	return &RefusalLog{
		logger: logger, clock: clock,
		lines:    newLineLimit(linesOfAll, lineEvery, clock),
		services: map[plan.Service]*serviceRefusals{}, unsettled: map[plan.Refusal]time.Time{},
	}
}

func newLineLimit(burst int, every time.Duration, clock clock.PassiveClock) flowcontrol.PassiveRateLimiter {
	return flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(float32(1/every.Seconds()), burst, clock)
}

// Log logs refusals that are new, or counts them, and forgets those that are lifted. Call it now and then without any,
// too, so that it says how many it has left out.
func (l *RefusalLog) Log(refused, lifted []plan.Refusal) {
	for _, r := range l.settled(refused, lifted) {
		service := l.of(r.Service)
		if service.lines.TryAccept() && l.lines.TryAccept() {
			l.logger.Info("Refused egress SNAT", "service", r.Service, "egressIP", r.EgressIP, "reason", r.Reason, "message", r.Message)
		} else {
			service.leftOut++
		}
	}
	if l.clock.Since(l.saidLeftOut) >= leftOutEvery {
		l.sayLeftOut()
	}
}

// settled returns those of new refusals that are worth a line now.
func (l *RefusalLog) settled(refused, lifted []plan.Refusal) (worth []plan.Refusal) {
	for _, r := range lifted {
		delete(l.unsettled, r)
	}
	for r, since := range l.unsettled {
		if l.clock.Since(since) >= settledWithin {
			delete(l.unsettled, r)
			worth = append(worth, r)
		}
	}
	for _, r := range refused {
		if settles(r.Reason) {
			l.unsettled[r] = l.clock.Now()
		} else {
			worth = append(worth, r)
		}
	}
	return worth
}

// of returns what is known of a Service that is refused something now.
func (l *RefusalLog) of(name plan.Service) *serviceRefusals {
	service := l.services[name]
	if service == nil {
		service = &serviceRefusals{lines: newLineLimit(linesOfService, serviceLineEvery, l.clock)}
		l.services[name] = service
	}
	service.last = l.clock.Now()
	return service
}

// sayLeftOut says how many refusals were left out, and forgets Services that may have all their lines
// again.
func (l *RefusalLog) sayLeftOut() {
	count := 0
	leftOut := map[plan.Service]int{}
	for name, service := range l.services {
		if service.leftOut > 0 {
			count, leftOut[name] = count+service.leftOut, service.leftOut
			service.leftOut = 0
		}
		if l.clock.Since(service.last) > linesOfService*serviceLineEvery {
			delete(l.services, name)
		}
	}
	if count == 0 {
		return
	}
	most := slices.MaxFunc(slices.Collect(maps.Keys(leftOut)), func(a, b plan.Service) int {
		return cmp.Or(cmp.Compare(leftOut[a], leftOut[b]), cmp.Compare(b.String(), a.String()))
	})
	l.saidLeftOut = l.clock.Now()
	l.logger.Info("More refusals were not logged; 'openshift egress refused' lists all that hold now",
		"count", count, "services", len(leftOut), "mostOf", most)
}
