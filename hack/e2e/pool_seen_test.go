package e2e

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/origin-node/hack/cluster"
)

// TestPool_MovesAreSeen: a move is told to whoever looks, in the log, by an Event, a metric and the commands.
func TestPool_MovesAreSeen(t *testing.T) {
	belongsTo(t, usual)
	w := newPoolWorld(t, 3)
	w.complete()
	ip := w.egressIPs[0]
	holder := w.holderOf(ip, nil)
	w.drain(holder, true)
	next := w.holderOf(ip, nil)
	const why = "because its node is drained, or not in the pool any more"
	w.eventTold("EgressIPMoved", "This node has taken egress IPs from "+holder.Name+", "+why+": "+ip)
	for m, want := range map[*member]string{next: `"Took an egress IP"`, holder: `"Released an egress IP"`} {
		if log := m.Printed.String(); strings.Count(log, want+` logger="egress" address="`+ip+`"`) != 1 {
			t.Errorf("%s does not log once that %s", m.Name, want)
		}
	}
	metrics := w.metrics(next)
	for _, want := range []string{
		`egress_snat_pool_moves_total{reason="drained"} 1`, `egress_snat_pool_members{state="live"} 3`, `egress_snat_pool_members{state="dead"} 0`,
		"egress_snat_pool_majority 1", "egress_snat_pool_unheld_addresses 0", "egress_snat_pool_take_duration_seconds_count ",
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("%s has no metric %s", next.Name, want)
		}
	}
	for _, c := range []struct {
		command []string
		want    []string
	}{
		{[]string{"pool"}, []string{holder.Name + " ", "draining", "live", "192.0.2.0/24", "3 of 3 nodes are live, a majority: egress IPs of failed nodes are moved."}},
		{[]string{"addresses", "-o", "wide"}, []string{ip, "taken from " + holder.Name + ": its node is drained", "3/3"}},
	} {
		out, errs, status := next.Openshift(append(append([]string{"egress"}, c.command...), "--socket="+next.Socket())...)
		for _, want := range c.want {
			if status != 0 || !strings.Contains(out, want) {
				t.Errorf("openshift egress %s: status %d, no %q:\n%s%s", strings.Join(c.command, " "), status, want, out, errs)
			}
		}
		t.Logf("openshift egress %s\n%s", strings.Join(c.command, " "), out)
	}
}

// TestPool_UnplacedAddressesAreSeen: an Event says for each IP family why an address is on no node, and what to do; the log
// says which networks of the pool are the cluster's own.
func TestPool_UnplacedAddressesAreSeen(t *testing.T) {
	belongsTo(t, usual)
	w := newIdlePoolWorld(t, 3)
	outside := w.ips(77)
	for _, m := range w.members {
		m.Configure(strings.Replace(poolArguments, "[", `["203.0.113.64/27", "2001:db8:113::/64", "172.30.255.0/24", `, 1))
	}
	w.begin()
	_, err := w.CreateService(w.Context(), cluster.NewService("shop", "elsewhere", map[string]string{"app": "none"}, outside, tcp80))
	w.must(err)
	asked := w.members[0]
	asked.Says(`"Networks of proxyArguments.egress-snat-assign-cidrs overlap networks of the cluster, so no node gets egress IPs in them; correct the argument" logger="egress" reasons="172.30.255.0/24 overlaps 172.30.0.0/16"`)
	for _, ip := range outside {
		w.eventTold("EgressIPNotPlaced", ip+" is on no node, since no node of the pool can hold it: ")
		w.printsPool(asked, ip+" has been on no live node for ")
		out, errs, status := asked.Openshift("egress", "addresses", "--no-headers", "--socket="+asked.Socket())
		if fields := strings.Fields(lineWith(out, ip+" ")); status != 0 || len(fields) < 3 || !slices.Equal(fields[1:3], []string{"shop", "<none>"}) {
			t.Errorf("status %d, %s; want it to be of shop and on no node: %s%s", status, fields, out, errs)
		}
	}
	for _, m := range w.members {
		patch := []byte(`{"metadata":{"labels":{"node-restriction.kubernetes.io/egress-assignable":null}}}`)
		_, err := w.Client().CoreV1().Nodes().Patch(w.Context(), m.Name, "application/merge-patch+json", patch, metav1.PatchOptions{})
		w.must(err)
	}
	w.eventTold("EgressIPNotPlaced", outside[0]+` is on no node, since no Node matches "node-restriction.kubernetes.io/egress-assignable" (proxyArguments.egress-snat-assign-nodes). Give nodes this label.`)
}

// lineWith returns the line that begins with a text.
func lineWith(text, begin string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, begin) {
			return line
		}
	}
	return ""
}

// eventTold waits for an Event of a reason that says something.
func (w *world) eventTold(reason, text string) {
	w.Helper()
	w.eventually(func() error { return w.hasEvent(reason, "", text) })
}

// notTold says of Events with a reason that there are some.
func (w *world) notTold(reason, although string) {
	w.Helper()
	events, err := w.Client().CoreV1().Events("").List(w.Context(), metav1.ListOptions{})
	w.must(err)
	for _, e := range events.Items {
		if e.Reason == reason {
			w.Errorf("there is an Event %s, %s: %s", reason, although, e.Message)
		}
	}
}
