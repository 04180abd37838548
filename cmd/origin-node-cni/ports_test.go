package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/types"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/cni"
)

// newNamespace makes a network namespace, which is there until the test ends, and returns its path, and what reads its setting of ports.
func newNamespace(t *testing.T) (path string, read func() string) {
	t.Helper()
	if os.Geteuid() != 0 {
		lab.Lacks(t, "only root may make a network namespace")
	}
	ready, asked, answers := make(chan error), make(chan struct{}), make(chan string)
	go func() {
		goruntime.LockOSThread() // and never unlocked
		err := unix.Unshare(unix.CLONE_NEWNET)
		path = fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid())
		ready <- err
		for range asked {
			text, err := os.ReadFile(cni.LocalPortsFile)
			answers <- strings.Join(strings.Fields(string(text)), "-") + map[bool]string{true: fmt.Sprint(err)}[err != nil]
		}
	}()
	if err := <-ready; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { close(asked) })
	return path, func() string {
		asked <- struct{}{}
		return <-answers
	}
}

// withPorts is a node that gives pods these ports.
func withPorts(ports *cni.Ports) *node {
	binding := func(ip, egressIP string, ports *cni.Ports) cni.Binding {
		return cni.Binding{IP: netip.MustParseAddr(ip), Protocol: "tcp", EgressIP: netip.MustParseAddr(egressIP), Service: "shop/web", Ports: ports}
	}
	return &node{attach: func(int) (cni.Decision, error) {
		return cni.Decide([]cni.Binding{binding("10.128.0.5", "203.0.113.10", nil), binding("fd00::5", "2001:db8::10", ports)}), nil
	}}
}

// TestAdd_SetsLocalPorts in the pod's network namespace before the pod runs, and nothing where it shares.
func TestAdd_SetsLocalPorts(t *testing.T) {
	path, read := newNamespace(t)
	r := newRuntime(t, "1.0.0", "")
	r.pod.NetNS = path
	before := read()
	r.answeredBy(withPorts(nil))
	if code := r.add(); code != 0 || read() != before {
		t.Errorf("code %d, ports %s; want %s", code, read(), before)
	}
	r = newRuntime(t, "1.0.0", "")
	r.pod.NetNS = path
	r.answeredBy(withPorts(&cni.Ports{First: 2048, Last: 2559}))
	for range 2 {
		if code := r.add(); code != 0 || read() != "2048-2559" {
			t.Errorf("code %d, ports %s; want 2048-2559", code, read())
		}
	}
	own, err := os.ReadFile(cni.LocalPortsFile)
	if err != nil || strings.HasPrefix(string(own), "2048") {
		t.Errorf("the plugin's own namespace has the ports %s, err %v", own, err)
	}
}

// TestCheck_SetsLocalPorts of a pod that the node does not know, and attaches anew.
func TestCheck_SetsLocalPorts(t *testing.T) {
	path, read := newNamespace(t)
	r := newRuntime(t, "1.0.0", "")
	r.pod.NetNS = path
	n := withPorts(nil)
	r.answeredBy(n)
	if code := r.add(); code != 0 {
		t.Fatalf("code %d", code)
	}
	n.mu.Lock()
	n.attach, n.err = withPorts(&cni.Ports{First: 2048, Last: 2559}).attach, &cni.Failure{Reason: cni.NotAttached}
	n.mu.Unlock()
	if err := r.cni.CheckNetworkList(t.Context(), r.list, r.pod); err != nil || read() != "2048-2559" {
		t.Errorf("err %v, ports %s; want 2048-2559", err, read())
	}
}

// TestAdd_PassesLocalPorts: the node can give the pod more ports as long as its network namespace is there, which an open file does not
// keep. Of a pod that shares nothing is passed.
func TestAdd_PassesLocalPorts(t *testing.T) {
	path, read := newNamespace(t)
	r := newRuntime(t, "1.0.0", "")
	r.pod.NetNS = path
	n := withPorts(&cni.Ports{First: 2048, Last: 2559})
	r.answeredBy(n)
	if code := r.add(); code != 0 || len(n.settings) != 1 {
		t.Fatalf("code %d, passed %v", code, n.settings)
	}
	setting := n.settings[r.pod.ContainerID]
	if _, err := setting.WriteAt([]byte("2048 3071"), 0); err != nil || read() != "2048-3071" {
		t.Errorf("err %v, ports %s", err, read())
	}
	shared := withPorts(&cni.Ports{First: 61440, Last: 65535, Shared: true})
	r = newRuntime(t, "1.0.0", "")
	r.pod.NetNS = path
	r.answeredBy(shared)
	if code := r.add(); code != 0 || read() != "61440-65535" || len(shared.settings) != 0 {
		t.Errorf("code %d, ports %s, passed %v", code, read(), shared.settings)
	}
}

// TestAdd_NodeTakesNoLocalPorts: a pod starts, whatever the node answers about its setting.
func TestAdd_NodeTakesNoLocalPorts(t *testing.T) {
	path, read := newNamespace(t)
	r := newRuntime(t, "1.0.0", "")
	r.pod.NetNS = path
	n := withPorts(&cni.Ports{First: 2048, Last: 2559})
	n.err = errors.New("no")
	r.answeredBy(n)
	if code := r.add(); code != 0 || read() != "2048-2559" {
		t.Errorf("code %d, ports %s", code, read())
	}
}

// TestAdd_CannotSetLocalPorts: the pod does not start, and the error says what could not be written where.
func TestAdd_CannotSetLocalPorts(t *testing.T) {
	path, _ := newNamespace(t)
	for name, test := range map[string]struct {
		netns string
		ports cni.Ports
		want  string
	}{
		"no namespace":              {"/run/netns/none", cni.Ports{First: 2048, Last: 2559}, "opening the pod's network namespace"},
		"another file":              {"/etc/passwd", cni.Ports{First: 2048, Last: 2559}, "entering the pod's network namespace /etc/passwd"},
		"ports the kernel does not": {path, cni.Ports{First: 2559, Last: 2048}, "writing 2559 2048 to /proc/sys/net/ipv4/ip_local_port_range"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRuntime(t, "1.0.0", "")
			r.pod.NetNS = test.netns
			r.answeredBy(withPorts(&test.ports))
			_, err := r.cni.AddNetworkList(t.Context(), r.list, r.pod)
			var said *types.Error
			if !errors.As(err, &said) || said.Code != types.ErrTryAgainLater || !strings.Contains(err.Error(), "the pod shop/web-0 cannot be given its source ports") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
		})
	}
}
