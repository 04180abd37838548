package egress

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// registeredTest is the state of a process, and the next ones', on a node that keeps what Nodes registered with.
type registeredTest struct {
	*testing.T
	*state
	file string
}

func newRegisteredTest(t *testing.T) *registeredTest {
	r := &registeredTest{T: t, file: filepath.Join(t.TempDir(), "nodes")}
	r.restart(nil)
	return r
}

// restart begins a process that can read the file, unless want is part of an error.
func (r *registeredTest) restart(spoil func()) {
	r.Helper()
	if r.state != nil {
		r.save()
	}
	if spoil != nil {
		spoil()
	}
	r.state = newState(Config{NodeName: "here", KeptNodes: r.file})
	err := r.loadRegistrations()
	if (err != nil) != (spoil != nil) || err != nil && !strings.Contains(err.Error(), r.file) {
		r.Errorf("a process that starts: %v", err)
	}
}

func (r *registeredTest) save() {
	r.Helper()
	e := &Extension{state: r.state, config: r.config}
	if err := e.saveRegistrations(); err != nil {
		r.Fatal(err)
	}
}

// tells has a Node tell addresses, of which want are those that it did not register with.
func (r *registeredTest) tells(uid string, told []string, want ...string) {
	r.Helper()
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: types.UID(uid)}}
	for _, ip := range told {
		node.Status.Addresses = append(node.Status.Addresses, v1.NodeAddress{Type: v1.NodeInternalIP, Address: ip})
	}
	r.setNode(node)
	var got []string
	for _, family := range families {
		for _, ip := range r.nodes["n"][family].Added {
			got = append(got, ip.String())
		}
	}
	if !slices.Equal(got, want) {
		r.Errorf("it tells %s, of which %s are added; want %s", told, got, want)
	}
}

func TestRegistered_FirstAddressesCount(t *testing.T) {
	r := newRegisteredTest(t)
	own := []string{"192.0.2.2", "192.0.2.3"}
	r.tells("1", nil) // a cloud's controller writes addresses later
	r.tells("1", own)
	r.tells("1", []string{"198.51.100.7", "192.0.2.2"}, "198.51.100.7")
	r.tells("1", []string{"192.0.2.3", "2001:db8::2"}) // the first of that family
	r.tells("1", nil)
	r.tells("1", []string{"192.0.2.4", "192.0.2.2", "2001:db8::3", "2001:db8::2"}, "192.0.2.4", "2001:db8::3")
	r.tells("2", []string{"192.0.2.4"}) // another Node of that name
	r.deleteNode("n")
	r.tells("2", own)
}

func TestRegistered_OutlivesTheProcess(t *testing.T) {
	r := newRegisteredTest(t)
	r.tells("1", []string{"192.0.2.2", "2001:db8::2"})
	for range 3 {
		r.restart(nil)
		r.tells("1", []string{"198.51.100.7", "2001:db8::2"}, "198.51.100.7")
	}
	r.restart(nil)
	r.tells("2", []string{"198.51.100.7"})
	r.restart(nil)
	r.tells("2", []string{"192.0.2.2"}, "192.0.2.2")

	r.restart(nil) // the Node goes while no process runs
	r.forgets()
	r.restart(nil)
	r.tells("2", []string{"192.0.2.9"})

	r.restart(func() { r.must(os.WriteFile(r.file, []byte("{"), 0o600)) })
	r.tells("2", []string{"192.0.2.10"}) // as it would be without a file
	r.restart(nil)
	r.tells("2", []string{"192.0.2.9"}, "192.0.2.9")
}

// forgets has the process see a cluster without the Node.
func (r *registeredTest) forgets() {
	r.Helper()
	r.setNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "another"}})
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
	r.tells("1", told, told[mostRegistered:]...)
	r.save()
	if info, err := os.Stat(r.file); err != nil || info.Size() > 1000 {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
	r.tells("1", told[:1])
	if text, changed := r.registered.text(); changed {
		t.Errorf("it is written again although nothing has changed: %s", text)
	}
}
