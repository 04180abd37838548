package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/openshift/origin-node/pkg/egress/journal"
	"github.com/openshift/origin-node/pkg/kernel"
)

// TestPortBlocks_EveryFlowHasItsPod: pods open connections and send datagrams all the time, while holders of their egress IPs fail, nodes
// are drained and pods are replaced. The far side notes of each flow when it came, from where, and the UID of the pod that has sent it. The
// journals of the nodes alone name the same pod for every flow. No flow is outside of its pod's block.
func TestPortBlocks_EveryFlowHasItsPod(t *testing.T) {
	pods, flows := by(t, 12, 60, 250), by(t, 10_000, 100_000, 1_000_000)
	failovers, drains, restarts := by(t, 1, 2, 3), by(t, 1, 2, 3), by(t, 4, 20, 100)
	w := newFlowsWorld(t, by(t, 1, 2, 4))
	began := time.Now()
	w.startPods(pods)
	t.Logf("%d pods have begun within %s", pods, since(began))
	began = time.Now()
	stop := w.send()
	events := slices.Concat(slices.Repeat([]func(){w.failover}, failovers), slices.Repeat([]func(){w.drainHolder}, drains), slices.Repeat([]func(){w.restart}, restarts))
	r := rand.New(rand.NewPCG(1, 2)) // the same order each time
	r.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	for i, event := range events {
		w.heard((i + 1) * flows / (len(events) + 1))
		event()
	}
	w.heard(flows)
	for _, p := range w.pods {
		w.hears(p)
	}
	stop()
	t.Logf("%d flows of %d pods within %s, and %d attempts that failed", len(w.far.flows), len(w.lives), since(began), w.failed.Load())
	for _, m := range w.members {
		m.Stop() // whose journal then has everything
	}
	w.attributed()
	w.asksTheCommand(20)
}

// attributed fails unless the journals name for each flow the pod that has sent it, and no flow has another address or port than the pod
// has.
func (w *flowsWorld) attributed() {
	w.Helper()
	began := time.Now()
	outside, elsewhere, kinds := 0, 0, map[string]int{}
	questions := map[netip.AddrPort][]heardFlow{} // by egress IP and first port of a piece of the port space
	for _, f := range w.far.flows {
		life, known := w.lives[f.uid]
		if !known {
			w.Fatalf("the far side has heard of a pod %s, which there was not", f.uid)
		}
		kinds[network(f.protocol(), netip.AddrPortFrom(f.address(), f.port))]++
		if !slices.Contains(life.egressIPs, f.address()) {
			elsewhere++
		}
		if !life.ports.Contains(f.port) {
			outside++
		}
		piece := netip.AddrPortFrom(f.address(), f.port&^(pieceSize-1))
		questions[piece] = append(questions[piece], f)
	}
	w.Logf("flows: %v; %d blocks were those of several pods, one after the other", kinds, w.again())
	result := map[string]int{}
	for piece, flows := range questions {
		w.answer(piece, flows, result)
	}
	w.Logf("the journals name for %d of %d flows the pod that has sent them, after %s; others: %d not certain, %d wrong, %d nobody; %d outside of the pod's block, %d from another address",
		result[rightPod], len(w.far.flows), since(began), result[notCertain], result[wrongPod], result[noPod], outside, elsewhere)
	if result[rightPod] != len(w.far.flows) || outside > 0 || elsewhere > 0 {
		w.Errorf("want all of them right, and none outside")
	}
}

// again counts the blocks that several pods had.
func (w *flowsWorld) again() (count int) {
	had := map[kernel.Block]int{}
	for _, life := range w.lives {
		block := kernel.Block{EgressIP: life.egressIPs[0], Ports: life.ports}
		if had[block]++; had[block] == 2 {
			count++
		}
	}
	return count
}

// pieceSize is how many ports are asked for at a time: the journals are read once for them.
const pieceSize = 512

// What becomes of a question to the journals.
const rightPod, wrongPod, noPod, notCertain = "right", "wrong", "nobody", "not certain"

// answer asks the journals who has sent these flows, which are from one piece of the ports of an egress IP.
func (w *flowsWorld) answer(from netip.AddrPort, flows []heardFlow, result map[string]int) {
	w.Helper()
	first, last := from.Port(), from.Port()+pieceSize-1
	history, problems, err := journal.ReadAll(w.journals(), func(ip netip.Addr, ports kernel.Ports) bool {
		return ip == from.Addr() && ports.First <= last && first <= ports.Last
	})
	w.must(errors.Join(append(problems, err)...))
	for _, f := range flows {
		answer, err := history.Who(netip.AddrPortFrom(f.address(), f.port), f.time())
		became := notCertain
		switch none := (*journal.NobodyError)(nil); {
		case errors.As(err, &none):
			became = noPod
		case err != nil || answer.Shared || len(answer.Spans) != 1:
		case answer.Spans[0].Pod.UID == f.uid.String():
			became = rightPod
		default:
			became = wrongPod
		}
		if result[became]++; became != rightPod && result[became] <= 10 {
			w.Errorf("%s: %s: the journals say %v, %v", became, w.told(f), answer.Spans, err)
		}
	}
}

// asksTheCommand asks 'openshift egress who' for some of the flows.
func (w *flowsWorld) asksTheCommand(count int) {
	w.Helper()
	for i := range count {
		f := w.far.flows[(2*i+1)*len(w.far.flows)/(2*count)]
		args := []string{"egress", "who", netip.AddrPortFrom(f.address(), f.port).String(), "--protocol", f.protocol(), "--at", f.time().UTC().Format(time.RFC3339Nano), "-o", "json"}
		for _, path := range w.journals() {
			args = append(args, "--journal", path)
		}
		out, errs, status := w.members[0].Openshift(args...)
		var said struct {
			Assignments []struct{ Pod struct{ UID string } }
		}
		if err := json.Unmarshal([]byte(out), &said); status != 0 || err != nil || len(said.Assignments) != 1 || said.Assignments[0].Pod.UID != f.uid.String() {
			w.Errorf("%s: openshift %v: status %d, %v, want its pod alone:\n%s%s", w.told(f), args, status, err, out, errs)
		}
	}
}

// told is a flow for people.
func (w *flowsWorld) told(f heardFlow) string {
	life := w.lives[f.uid]
	return fmt.Sprintf("%s from %s, %d at %s by %s (%s), which has %s of %v", f.protocol(), f.address(), f.port, f.time().UTC().Format(time.RFC3339Nano), life.name, f.uid, life.ports, life.egressIPs)
}
