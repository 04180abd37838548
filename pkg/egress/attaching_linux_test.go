package egress

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/openshift/origin-node/hack/clustertest"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/cni"
)

// patience is how long to wait for an answer: what comes to nothing takes all of it.
func patience(reason cni.Reason) time.Duration {
	if reason == "" {
		return 30 * time.Second
	}
	return 2 * time.Second
}

// TestExtension_AnswersThePlugin: over its socket a node says yes when a write that began later has succeeded, and not
// before.
func TestExtension_AnswersThePlugin(t *testing.T) {
	lab.InNamespace(t, func(t *testing.T) {
		f, client := newPluginTest(t, v1.IPv4Protocol)
		request := podAt("c1", "10.128.0.9")
		attach := func(reason cni.Reason) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), patience(reason))
			defer cancel()
			decision, err := client.Attach(ctx, request)
			if failureOf(err) != reason || (err == nil) != (reason == "") || (decision.Decision == cni.Bound) != (reason == "") {
				t.Errorf("decision %+v, err %v; expected %q", decision, err, reason)
			}
		}
		holds := func() bool {
			text, _ := os.ReadFile(filepath.Join(f.dir, "iptables-restore.held"))
			return strings.Contains(string(text), "-A OPENSHIFT-EGRESS-SNAT -s 10.128.0.9/32") // not the record of its removal
		}
		attach(cni.WaitingFor)

		f.program("iptables-restore", fails)
		f.allKnown()
		attach(cni.NotWritten)
		if err := client.Ready(t.Context()); failureOf(err) != cni.NotWritten || !strings.Contains(fmt.Sprint(err), "the lock is held") {
			t.Errorf("ready: %v", err)
		}
		f.program("iptables-restore", "sleep 0.2; "+keeps)
		f.host.AfterSync(v1.IPv4Protocol, true) // ends the wait for the next try
		clustertest.Eventually(t, "writes succeed", func() bool { return client.Ready(t.Context()) == nil })
		attach("")
		if !holds() {
			t.Error("the pod starts, and the kernel has no rule for it")
		}

		f.program("iptables-restore", fails)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := client.Detach(ctx, "c1", "eth0"); err == nil {
			t.Error("the address may be given away, and the kernel has a rule for it")
		}
		f.program("iptables-restore", "sleep 0.2; "+keeps)
		f.host.AfterSync(v1.IPv4Protocol, true)
		if err := client.Detach(t.Context(), "c1", "eth0"); err != nil || holds() {
			t.Errorf("err %v, the kernel has a rule: %v", err, holds())
		}
	})
}

// TestExtension_AnswersThePluginForOneFamily: where IPv6 fails for good, pods with addresses of IPv4 alone start and end.
func TestExtension_AnswersThePluginForOneFamily(t *testing.T) {
	lab.InNamespace(t, func(t *testing.T) {
		f, client := newPluginTest(t, cluster.Families...)
		f.program("ip6tables-save", fails)
		f.allKnown()
		clustertest.Eventually(t, "IPv6 fails", func() bool { return failureOf(client.Ready(t.Context())) == cni.NotWritten })
		for _, test := range []struct {
			pod    cni.Request
			reason cni.Reason
		}{
			{podAt("c1", "10.128.0.9"), ""},
			{podAt("c2", "fd00:10::9"), cni.NotWritten},
			{podAt("c3", "10.128.0.10", "fd00:10::10"), cni.NotWritten},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), patience(test.reason))
			defer cancel()
			if _, err := client.Attach(ctx, test.pod); failureOf(err) != test.reason || (err == nil) != (test.reason == "") {
				t.Errorf("%v starts: %v; expected %q", test.pod.IPs, err, test.reason)
			}
			ctx, cancel = context.WithTimeout(t.Context(), patience(test.reason))
			defer cancel()
			if err := client.Detach(ctx, test.pod.ContainerID, test.pod.IfName); (err == nil) != (test.reason == "") {
				t.Errorf("%v ends: %v; expected %q", test.pod.IPs, err, test.reason)
			}
		}
	})
}

// newPluginTest is newFamilyTest for a node that answers a CNI plugin, once that may ask it. The Service selects the pod ns/web-0.
func newPluginTest(t *testing.T, served ...v1.IPFamily) (*familyTest, *cni.Client) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "cni.sock")
	f := newAttachingTest(t, socket, served...)
	f.attacher.Run(&f.running, fake.NewClientset(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-0", UID: "u1", Labels: map[string]string{"app": "u1"}},
		Spec:       v1.PodSpec{NodeName: "here"},
	}))
	f.host.OnServiceUpdate(clustertest.NewService("web", nil), clustertest.NewService("web", func(s *v1.Service) { s.Spec.Selector = map[string]string{"app": "u1"} }))
	f.host.OnEndpointSliceDelete(clustertest.NewSlice("web-1", "web"))
	client := cni.NewClient(socket)
	clustertest.Eventually(t, "it answers", func() bool { return failureOf(client.Ready(t.Context())) == cni.WaitingFor })
	return f, client
}

// podAt is a sandbox of ns/web-0 with these addresses.
func podAt(id string, ips ...string) cni.Request {
	request := cni.Request{ContainerID: id, IfName: "eth0", Pod: attachments.Pod{Namespace: "ns", Name: "web-0", UID: "u1"}}
	for _, ip := range ips {
		request.IPs = append(request.IPs, netip.MustParseAddr(ip))
	}
	return request
}

// failureOf is why the plugin was refused something; empty if it was not.
func failureOf(err error) cni.Reason {
	var failure *cni.Failure
	if errors.As(err, &failure) {
		return failure.Reason
	}
	return ""
}
