package holders

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/origin-node/pkg/egress/portblocks"
	"github.com/openshift/origin-node/pkg/kernel"
)

// someBlocks are those of so many pods, each of an egress IP of both IP families.
func someBlocks(pods int) (list []kernel.Block) {
	v4, v6 := addr("10.128.0.1"), addr("fd00:10:128::1")
	for i := range pods {
		first := uint16(1024 + 512*(i%118))
		ports := kernel.Ports{First: first, Last: first + 511}
		list = append(list, kernel.Block{Pod: v4, EgressIP: addr("203.0.113.10"), Ports: ports}, kernel.Block{Pod: v6, EgressIP: addr("2001:db8:113::10"), Ports: ports})
		v4, v6 = v4.Next(), v6.Next()
	}
	return list
}

// knowsPorts waits until all other nodes have heard which source ports a node's pods have.
func (s *speakers) knowsPorts(when, name string, revision uint64, want []kernel.Block) {
	s.Helper()
	s.eventually(when, func() error {
		for other := range s.others(name) {
			if got := s.nodes[other].ports[name]; got.Revision != revision || !slices.Equal(got.Blocks, want) || got.Source != Announcement {
				return fmt.Errorf("%s knows revision %d of %d blocks of %s, want %d of %d", other, got.Revision, len(got.Blocks), name, revision, len(want))
			}
		}
		return nil
	})
}

// TestAnnouncer_Blocks: nodes learn of each other's blocks beside the addresses, also without one, and many.
func TestAnnouncer_Blocks(t *testing.T) {
	announce(t, func(s *speakers) {
		one, many := someBlocks(1), someBlocks(250)
		s.nodes["node-a"].SetAnnounced(statementOf(1, ips[0]))
		s.nodes["node-a"].SetAssigned(1, one)
		s.knowsPorts("a pod", "node-a", 1, one)
		s.knows("an address", "node-a", statementOf(1, ips[0]))
		s.nodes[me].SetAssigned(7, many)
		s.knowsPorts("no address", me, 7, many)
		s.run("node-c", fmt.Sprintf("nft add table inet loss; nft add chain inet loss input '{ type filter hook input priority 0; }'; nft add rule inet loss input udp dport %d numgen random mod 100 '<' 10 drop", announcePort))
		for revision := range uint64(3) {
			s.nodes["node-a"].SetAssigned(revision+2, many[:100+revision])
			s.knowsPorts("one of ten datagrams is lost", "node-a", revision+2, many[:100+revision])
		}
		s.nodes["node-c"].end()
		s.start("node-c", NewKeyring(ours))
		s.knowsPorts("a process that starts asks", "node-a", 4, many[:102])
		s.nodes["node-a"].SetAssigned(5, nil)
		s.knowsPorts("no pod any more", "node-a", 5, nil)
		s.knows("the address", "node-a", statementOf(1, ips[0]))
	})
}

// TestAnnouncer_NoBlocks: where no node has any, nothing is said of them.
func TestAnnouncer_NoBlocks(t *testing.T) {
	a := NewAnnouncer("node-a", announcePort, NewKeyring(ours))
	v := a.voices[ofBlocks]
	v.setPeers(map[string]netip.Addr{"node-c": addr("192.0.2.3")})
	for revision := range uint64(3) {
		if err := a.sayOrRepeat(t.Context(), v, start, Statement{Revision: revision}); err != nil || v.said != nil || !v.repeatAt.IsZero() {
			t.Errorf("err %v, said %v, repeated at %s", err, v.said, v.repeatAt)
		}
	}
}

// TestDatagram_Blocks: what is read is what was written, and a version that knows addresses alone reads none of it as these.
func TestDatagram_Blocks(t *testing.T) {
	longest, all := strings.Repeat("n", 255), someBlocks(250)
	for i := range all {
		all[i].Second = i%3 == 0
	}
	var read []kernel.Block
	for i, d := range (datagram{about: ofBlocks, node: longest}).split(Statement{Revision: 5}, all...) {
		content := d.encode(ours)
		got, err := decode(content, ours)
		if diff := cmp.Diff(d, got, compare, cmp.AllowUnexported(datagram{})); diff != "" || err != nil || len(content) > largestDatagram {
			t.Fatalf("datagram %d of %d bytes: %v (-want +got):\n%s", i, len(content), err, diff)
		}
		if kind := content[len(magic)+2]; kind <= byte(statement) {
			t.Errorf("its kind is %d, which older versions take for one of addresses", kind)
		}
		read = append(read, got.blocks...)
	}
	if !slices.Equal(read, all) {
		t.Errorf("read %d blocks, want %d", len(read), len(all))
	}
}

func TestDatagram_WrongBlocks(t *testing.T) {
	d := datagram{about: ofBlocks, kind: statement, node: "node-a", parts: 1, blocks: someBlocks(1)[:1]}
	content := d.encode(ours)
	content = content[:len(content)-32]
	for name, change := range map[string]func(b []byte) []byte{
		"cut":          func(b []byte) []byte { return b[:len(b)-1] },
		"too long":     func(b []byte) []byte { return append(b, 4) },
		"too many":     func(b []byte) []byte { b[len(b)-1] = 32; return b },
		"not aligned":  func(b []byte) []byte { b[len(b)-2]++; return b },
		"no IP family": func(b []byte) []byte { b[len(b)-12] = 5; return b },
		"its topic":    func(b []byte) []byte { b[len(magic)+2] += 3; return b },
	} {
		if got, err := decode(ours.sign(change(slices.Clone(content))), ours); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if _, err := decode(ours.sign(content), ours); err != nil {
		t.Error(err)
	}
}

// TestAnnouncer_KeepsTheNewest: what is older than what was said does not count, in whatever order it comes.
func TestAnnouncer_KeepsTheNewest(t *testing.T) {
	a := NewAnnouncer("node-a", announcePort, NewKeyring(ours))
	a.SetAnnounced(statementOf(3, ips[0]))
	a.SetAnnounced(statementOf(2))
	a.SetAssigned(3, someBlocks(1))
	a.SetAssigned(2, nil)
	if a.said.Revision != 3 || a.revision != 3 || len(a.blocks) == 0 {
		t.Errorf("says %+v, and %v in the revision %d", a.said, a.blocks, a.revision)
	}
}

// TestPublisher_AssignedDoesNotPutOffARetry: other source ports have their pause after a write; one that has failed is tried again before.
func TestPublisher_AssignedDoesNotPutOffARetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t)
		s.refuse(apierrors.NewServiceUnavailable("starting"))
		p := newPublishing(s.leases(), me)
		go p.Run(s.ctx)
		p.set(Published{Statement: statementOf(1, ips[0])})
		s.made("an address", "patch")
		p.set(Published{Statement: statementOf(1, ips[0]), Assigned: "{}", AssignedRevision: 1})
		time.Sleep(retries.Duration * 3 / 2) // with its jitter
		s.made("tried again", "patch")
	})
}

// TestPublisher_Assigned: which source ports pods have is in the node's Lease, without an address, too, and not more often than every so
// often. A watch tells of it, and of claims, once for each change.
func TestPublisher_Assigned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAPIServer(t)
		p := newPublishing(s.leases(), me)
		go p.Run(s.ctx)
		leases, claims := s.leases(), []string{}
		leases.Claims = func(lease *coordinationv1.Lease, deleted bool) {
			claims = append(claims, fmt.Sprint(lease.Name, " ", lease.Annotations[portblocks.Annotation], " ", deleted))
		}
		var l told
		go leases.Watch(s.ctx, l.tell)
		time.Sleep(time.Second)
		l.tells(t, "at the start", LeasesKnown{})
		text := func(pods int) string {
			var list []portblocks.Assignment
			for _, block := range someBlocks(pods) {
				list = append(list, portblocks.Assignment{Pod: portblocks.Pod{Namespace: "shop", Name: "web-0", UID: "u1", IP: block.Pod}, Service: "shop/web", EgressIP: block.EgressIP, Ports: block.Ports, Node: me})
			}
			return portblocks.FormatAssigned(list)
		}
		publish := func(revision uint64, pods int) {
			p.set(Published{Statement: Statement{Revision: 1}, NodeUID: "uid-1", Assigned: text(pods), AssignedRevision: revision})
		}
		publish(1, 1)
		s.made("a pod", "patch", "create")
		for revision := range uint64(20) {
			publish(2+revision, 2+int(revision))
			synctest.Wait()
			time.Sleep(assignedPause / 100)
		}
		time.Sleep(assignedPause)
		s.made("twenty more", "patch")
		synctest.Wait()
		l.mu.Lock()
		last := l.events[len(l.events)-2].(Assigned)
		l.events = nil
		l.mu.Unlock()
		if last.Node != me || last.Revision != 21 || last.Source != Lease || !slices.Equal(last.Blocks, someBlocks(21)) {
			t.Errorf("told %+v", last)
		}
		p.set(Published{Statement: Statement{Revision: 1}, NodeUID: "uid-1"})
		time.Sleep(assignedPause)
		s.made("none", "patch")
		if text, given := s.lease().Annotations[portblocks.AssignedAnnotation]; given {
			t.Errorf("%q is left", text)
		}
		lease := leaseWith(map[string]string{portblocks.Annotation: "{}"})
		lease.Name = portblocks.LeaseName(addr("203.0.113.10"))
		if _, err := s.CoordinationV1().Leases("origin-node").Create(s.ctx, lease, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := s.CoordinationV1().Leases("origin-node").Delete(s.ctx, lease.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{lease.Name + " {} false", lease.Name + "  true"}, claims); diff != "" {
			t.Errorf("told of claims (-want +got):\n%s", diff)
		}
		for _, event := range l.events {
			if e, is := event.(Announced); is && e.Node != me {
				t.Errorf("a Lease of claims is taken for a node's: %+v", e)
			}
		}
	})
}
