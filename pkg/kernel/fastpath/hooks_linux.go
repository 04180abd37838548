package fastpath

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel/changes"
)

// hooks are the interfaces at which programs are. Nobody else has their links: the kernel takes a program away when this process dies.
type hooks struct {
	links map[int]hook
	// pods counts the pods behind an interface whose packets take the fast path.
	pods map[int]int
	// refused are the names of interfaces at which no program is, because of another one.
	refused map[int]string
}

type hook struct {
	place
	link link.Link
}

// place is what is to be at an interface.
type place struct{ program *ebpf.Program }

func newHooks() hooks {
	return hooks{links: map[int]hook{}, pods: map[int]int{}, refused: map[int]string{}}
}

// use counts a pod behind an interface.
func (h *hooks) use(at, more int) {
	if at == 0 {
		return
	}
	if h.pods[at] += more; h.pods[at] == 0 {
		delete(h.pods, at)
	}
}

// at tells whether a program is at an interface.
func (h *hooks) at(index int) bool {
	_, there := h.links[index]
	return there
}

// follow attaches programs where they should be and no tc filter of somebody else is, and takes them from elsewhere. With again it looks
// for such filters everywhere.
func (h *hooks) follow(uplinks map[int]place, ofPods *ebpf.Program, again bool) (err error) {
	want := map[int]place{}
	for at := range h.pods {
		want[at] = place{ofPods}
	}
	for at, p := range uplinks {
		want[at] = p
	}
	if again {
		clear(h.refused)
		err = h.drop()
	}
	var filtered map[int]bool
	for at, p := range want {
		held, there := h.links[at]
		if there && held.place == p && !again || h.refused[at] != "" {
			continue
		}
		if filtered == nil {
			var failed error
			if filtered, failed = filters(); failed != nil {
				return errors.Join(err, failed)
			}
		}
		if filtered[at] {
			h.refuse(at)
			delete(want, at)
		}
	}
	for at, held := range h.links {
		if want[at] != held.place {
			err = errors.Join(err, held.link.Close())
			delete(h.links, at)
		}
	}
	for at, p := range want {
		if !h.at(at) && h.refused[at] == "" {
			err = errors.Join(err, h.attach(at, p))
		}
	}
	return err
}

// drop forgets what somebody has detached.
func (h *hooks) drop() (err error) {
	for at, held := range h.links {
		info, failed := held.link.Info()
		if failed == nil && info.TCX() != nil && info.TCX().Ifindex == uint32(at) {
			continue
		}
		err = errors.Join(err, failed, held.link.Close())
		delete(h.links, at)
	}
	return err
}

// attach attaches a program behind all others. An interface that has gone meanwhile has no packets.
func (h *hooks) attach(at int, p place) error {
	attached, err := link.AttachTCX(link.TCXOptions{Interface: at, Program: p.program, Attach: ebpf.AttachTCXIngress, Anchor: link.Tail()})
	if errors.Is(err, unix.ENODEV) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("attach a program to interface %d: %w", at, err)
	}
	h.links[at] = hook{p, attached}
	return nil
}

func (h *hooks) refuse(at int) {
	h.refused[at] = fmt.Sprintf("interface %d", at)
	if i, err := net.InterfaceByIndex(at); err == nil {
		h.refused[at] = i.Name
	}
}

// leave takes all programs away.
func (h *hooks) leave() (err error) {
	for at, held := range h.links {
		err = errors.Join(err, held.link.Close())
		delete(h.links, at)
	}
	return err
}

// filters returns the interfaces that have tc filters at their ingress. Those come behind all programs of TCX, so a packet that a program
// redirects would not meet them.
func filters() (filtered map[int]bool, err error) {
	var qdiscs []netlink.Qdisc
	if err := changes.Outlast(func() (err error) {
		qdiscs, err = netlink.QdiscList(nil)
		return err
	}); err != nil {
		return nil, fmt.Errorf("list traffic control: %w", err)
	}
	filtered = map[int]bool{}
	for _, qdisc := range qdiscs {
		if kind := qdisc.Type(); kind != "ingress" && kind != "clsact" {
			continue
		}
		index := qdisc.Attrs().LinkIndex
		found, err := netlink.FilterList(&netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: index}}, netlink.HANDLE_MIN_INGRESS)
		filtered[index] = err != nil || len(found) > 0
	}
	return filtered, nil
}

// load loads the programs.
func load(objects *programsObjects) error {
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil {
		return fmt.Errorf("this kernel does not tell its types (CONFIG_DEBUG_INFO_BTF): %w", err)
	}
	for _, path := range []string{"tcp_be_liberal", "tcp_timeout_unacknowledged"} {
		file, err := os.OpenFile("/proc/sys/net/netfilter/nf_conntrack_"+path, os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("a setting of conntrack cannot be changed: %w", err)
		}
		_ = file.Close() // nothing was written
	}
	if err := loadProgramsObjects(objects, nil); err != nil {
		if errors.Is(err, unix.EPERM) {
			return fmt.Errorf("load the programs of the fast path: CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN are needed, and CAP_SYS_ADMIN where conntrack is a module of the kernel: %w", err)
		}
		return fmt.Errorf("load the programs of the fast path, which need Linux 6.6 and conntrack's functions for BPF: %w", err)
	}
	return tryHook(objects)
}

// tryHook attaches a program to the loopback interface, for a moment.
func tryHook(objects *programsObjects) error {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		return err
	}
	attached, err := link.AttachTCX(link.TCXOptions{Interface: lo.Index, Program: objects.FromTunnel, Attach: ebpf.AttachTCXIngress, Anchor: link.Tail()})
	if err != nil {
		return errors.Join(fmt.Errorf("attach a program at tc, which needs Linux 6.6: %w", err), objects.Close())
	}
	return attached.Close()
}
