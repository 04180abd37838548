package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/origin-node/pkg/extension"
)

// registeredTest is the state of a process, and the next ones', on a node that keeps what Nodes registered with.
type registeredTest struct {
	*testing.T
	*State
	file string
	// taints are the Node's.
	taints []v1.Taint
}

func newRegisteredTest(t *testing.T) *registeredTest {
	r := &registeredTest{T: t, file: filepath.Join(t.TempDir(), "nodes")}
	r.restart(nil)
	return r
}

// restart begins a process, which can read the file unless it is spoilt.
func (r *registeredTest) restart(spoil func()) {
	r.Helper()
	if r.State != nil {
		r.save()
	}
	if spoil != nil {
		spoil()
	}
	r.State = New(Config{NodeName: "here", KeptNodes: r.file})
	err := r.loadRegistrations()
	if (err != nil) != (spoil != nil) || err != nil && !strings.Contains(err.Error(), r.file) {
		r.Errorf("a process that starts: %v", err)
	}
}

func (r *registeredTest) save() {
	r.Helper()
	if err := r.saveRegistrations(); err != nil {
		r.Fatal(err)
	}
}

// tells has a Node tell addresses, and want its primary ones, with "added" behind those with which it did not register.
func (r *registeredTest) tells(uid string, told []string, want ...string) {
	r.Helper()
	r.SetNode(extension.StripNode(r.node(uid, told), nil).(*v1.Node))
	var got []string
	for _, family := range Families {
		ip := r.Primary("n", family)
		if !ip.IsValid() {
			continue
		}
		text := ip.String()
		for _, fault := range r.NodeFaults(family) {
			if fault.Address == ip && strings.Contains(fault.Message, "is not the one that it registered with") {
				text += " added"
			}
		}
		got = append(got, text)
	}
	if !slices.Equal(got, want) {
		r.Errorf("it tells %s, of which %q counts, want %q", told, got, want)
	}
}

func (r *registeredTest) node(uid string, told []string) *v1.Node {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: types.UID(uid)}, Spec: v1.NodeSpec{Taints: r.taints}}
	for _, ip := range told {
		node.Status.Addresses = append(node.Status.Addresses, v1.NodeAddress{Type: v1.NodeInternalIP, Address: ip})
	}
	return node
}

func TestRegistered_FirstAddressesCount(t *testing.T) {
	r := newRegisteredTest(t)
	r.tells("1", nil)
	r.tells("1", []string{"192.0.2.2", "192.0.2.3"}, "192.0.2.2")
	r.tells("1", []string{"198.51.100.7", "192.0.2.2"}, "192.0.2.2")
	r.tells("1", []string{"192.0.2.3"}, "192.0.2.3 added")
	r.tells("1", []string{"192.0.2.2", "2001:db8::2"}, "192.0.2.2", "2001:db8::2 added") // it has registered without that family
	r.tells("1", nil)
	r.tells("1", []string{"192.0.2.4", "2001:db8::3"}, "192.0.2.4 added", "2001:db8::3 added")
	r.tells("2", []string{"192.0.2.4", "2001:db8::3"}, "192.0.2.4", "2001:db8::3") // another Node of that name
	r.tells("2", []string{"192.0.2.4", "2001:db8::4"}, "192.0.2.4", "2001:db8::4 added")
	r.DeleteNode("n")
	r.tells("2", []string{"192.0.2.3"}, "192.0.2.3")
}

// TestRegistered_AfterTheCloudProvider: what a kubelet tells until then is for the time being, and the first of that alone counts.
func TestRegistered_AfterTheCloudProvider(t *testing.T) {
	r := newRegisteredTest(t)
	waiting := []v1.Taint{{Key: "node.cloudprovider.kubernetes.io/uninitialized", Effect: v1.TaintEffectNoSchedule}}
	r.taints = waiting
	r.tells("1", nil)
	r.tells("1", []string{"192.0.2.2"}, "192.0.2.2")
	r.tells("1", []string{"192.0.2.9"}, "192.0.2.9 added")
	r.restart(nil)
	r.tells("1", []string{"192.0.2.9"}, "192.0.2.9 added")
	r.tells("1", []string{"192.0.2.2"}, "192.0.2.2")
	r.taints = nil
	r.tells("1", []string{"192.0.2.2"}, "192.0.2.2") // the provider's come a moment later
	r.tells("1", []string{"192.0.2.9"}, "192.0.2.9")
	r.tells("1", []string{"192.0.2.2"}, "192.0.2.2 added")
	r.restart(nil)
	r.tells("1", []string{"192.0.2.2"}, "192.0.2.2 added")
	r.taints = waiting // once more
	r.tells("1", []string{"192.0.2.2"}, "192.0.2.2 added")
	r.taints = nil
	r.tells("1", []string{"192.0.2.2"}, "192.0.2.2 added")
}

// TestRegistered_SameAfterTheCloudProvider: that this has changed nothing is kept as well.
func TestRegistered_SameAfterTheCloudProvider(t *testing.T) {
	r := newRegisteredTest(t)
	r.taints = []v1.Taint{{Key: "node.cloudprovider.kubernetes.io/uninitialized", Effect: v1.TaintEffectNoSchedule}}
	r.tells("1", []string{"192.0.2.2"}, "192.0.2.2")
	r.restart(nil)
	r.taints = nil
	r.tells("1", []string{"192.0.2.2"}, "192.0.2.2")
	r.registered.nodes["n"].initialized = time.Now().Add(-2 * settling)
	r.tells("1", []string{"192.0.2.2"}, "192.0.2.2")
	r.restart(nil)
	r.tells("1", []string{"192.0.2.9"}, "192.0.2.9 added")
}

func TestRegistered_FileCannotBeWritten(t *testing.T) {
	r := newRegisteredTest(t)
	r.tells("1", []string{"192.0.2.2"}, "192.0.2.2")
	r.must(os.WriteFile(r.file+".d", nil, 0o600))
	r.Config.KeptNodes = filepath.Join(r.file+".d", "nodes") // in a file, which is no folder
	first, second := r.saveRegistrations(), r.saveRegistrations()
	if first == nil || second == nil || first.Error() != second.Error() {
		t.Errorf("the errors are %v and %v, want twice the same", first, second)
	}
	r.Config.KeptNodes = r.file
	r.restart(nil)
	r.tells("1", []string{"192.0.2.3"}, "192.0.2.3 added") // written once that was possible
}

func TestRegistered_OutlivesTheProcess(t *testing.T) {
	r := newRegisteredTest(t)
	r.tells("1", []string{"192.0.2.2", "2001:db8::2"}, "192.0.2.2", "2001:db8::2")
	for range 3 {
		r.restart(nil)
		r.tells("1", []string{"198.51.100.7", "2001:db8::2"}, "198.51.100.7 added", "2001:db8::2")
	}
	r.restart(nil)
	r.tells("2", []string{"198.51.100.7"}, "198.51.100.7")
	r.restart(nil)
	r.tells("2", []string{"192.0.2.2"}, "192.0.2.2 added")

	r.restart(nil) // the Node goes while no process runs
	r.forgets()
	r.restart(nil)
	r.tells("2", []string{"192.0.2.9"}, "192.0.2.9")

	r.restart(func() { r.must(os.WriteFile(r.file, []byte("{"), 0o600)) })
	r.tells("2", []string{"192.0.2.10"}, "192.0.2.10") // as it would be without a file
	r.restart(nil)
	r.tells("2", []string{"192.0.2.9"}, "192.0.2.9 added")
}

// forgets has the process see a cluster without the Node.
func (r *registeredTest) forgets() {
	r.Helper()
	r.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "another"}})
	r.save()
	if text, err := os.ReadFile(r.file); err != nil || strings.Contains(string(text), `"n"`) {
		r.Errorf("it keeps %s, %v", text, err)
	}
}

func (r *registeredTest) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// TestRegistered_IsBounded: what a Node tells fills no file.
func TestRegistered_IsBounded(t *testing.T) {
	r := newRegisteredTest(t)
	var told []string
	for i := range 1000 {
		told = append(told, fmt.Sprintf("192.0.%d.%d", 2+i>>8, i&255))
	}
	r.tells("1", told, told[0])
	r.save()
	if info, err := os.Stat(r.file); err != nil || info.Size() > 2000 {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
	r.tells("1", told[:1], told[0])
	if text, changed := r.registered.text(); changed {
		t.Errorf("it is written again although nothing has changed: %s", text)
	}
}
