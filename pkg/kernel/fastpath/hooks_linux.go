package fastpath

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/kernel/tcfilter"
)

// hooks are the interfaces at which programs are. Nobody else has their links: the kernel takes a program away when this process dies.
type hooks struct {
	links map[int]hook
	// pods counts the pods behind an interface whose packets take the fast path.
	pods map[int]int
	// refused are the names of interfaces at which no program is, because of another one.
	refused map[int]string
}

// hook is a program at an interface.
type hook struct {
	program *ebpf.Program
	link    link.Link
}

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
func (h *hooks) follow(uplinks map[int]*ebpf.Program, ofPods *ebpf.Program, again bool) (err error) {
	want := map[int]*ebpf.Program{}
	if len(uplinks) > 0 { // else nothing can be sent by the fast path
		for at := range h.pods {
			want[at] = ofPods
		}
	}
	maps.Copy(want, uplinks)
	if again {
		clear(h.refused)
		err = h.drop()
	}
	var filtered map[int]bool
	for at, program := range want {
		held, there := h.links[at]
		if there && held.program == program && !again || h.refused[at] != "" {
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
		if want[at] != held.program {
			err = errors.Join(err, held.link.Close())
			delete(h.links, at)
		}
	}
	for at, program := range want {
		if !h.at(at) && h.refused[at] == "" {
			err = errors.Join(err, h.attach(at, program))
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
func (h *hooks) attach(at int, program *ebpf.Program) error {
	attached, err := attach(at, program)
	if errors.Is(err, unix.ENODEV) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("attach a program to interface %d: %w", at, err)
	}
	h.links[at] = hook{program, attached}
	return nil
}

func attach(at int, program *ebpf.Program) (link.Link, error) {
	return link.AttachTCX(link.TCXOptions{Interface: at, Program: program, Attach: ebpf.AttachTCXIngress, Anchor: link.Tail()})
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

// filters returns the interfaces that have tc filters at their ingress, or cannot be asked. Filters come behind all programs of TCX, so
// a packet that a program redirects would not meet them.
func filters() (map[int]bool, error) {
	return tcfilter.Ingress(func(filters []netlink.Filter, err error) bool { return err != nil || len(filters) > 0 })
}

// errRights is why a process cannot load programs that has not all rights.
var errRights = errors.New("load the programs of the fast path: CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN are needed, and CAP_SYS_ADMIN where conntrack is a module of the kernel")

// mayLoad tells whether this process has the rights to load programs. Without them it must not even try: it may be killed for that, by a filter
// of system calls.
func mayLoad() (bool, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData // 64 capabilities
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false, fmt.Errorf("ask the kernel for this process's capabilities: %w", err)
	}
	has := func(capability uint) bool { return data[capability/32].Effective&(1<<(capability%32)) != 0 }
	all := has(unix.CAP_SYS_ADMIN)
	return has(unix.CAP_NET_ADMIN) && (all || has(unix.CAP_BPF) && has(unix.CAP_PERFMON)), nil
}

// load loads the programs.
func load(objects *programsObjects) error {
	if may, err := mayLoad(); err != nil || !may {
		return cmp.Or(err, errRights)
	}
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil {
		return fmt.Errorf("this kernel does not tell its types (CONFIG_DEBUG_INFO_BTF): %w", err)
	}
	for _, path := range []string{"tcp_be_liberal", "tcp_timeout_unacknowledged"} {
		if err := mayWrite("net/netfilter/nf_conntrack_" + path); err != nil {
			return fmt.Errorf("a setting of conntrack cannot be changed: %w", err)
		}
	}
	if err := loadProgramsObjects(objects, nil); err != nil {
		if errors.Is(err, unix.EPERM) && !limitsMemory() {
			return fmt.Errorf("%w: %w", errRights, err)
		}
		return fmt.Errorf("load the programs of the fast path, which need Linux 6.6 and conntrack's functions for BPF: %w", err)
	}
	if err := tryHook(objects); err != nil {
		return errors.Join(err, objects.Close())
	}
	return nil
}

// MachinesSysctls is where a container without privileges, whose own /proc/sys is read-only, has that of its machine
// (images/node/daemonset.yaml).
const MachinesSysctls = "/host/proc/sys"

// mayWrite returns why a sysctl cannot be written, neither as this process sees it nor as that of the machine.
func mayWrite(sysctl string) (err error) {
	for _, folder := range []string{"/proc/sys", MachinesSysctls} {
		file, failed := os.OpenFile(filepath.Join(folder, sysctl), os.O_WRONLY, 0)
		if failed == nil {
			return file.Close() // nothing was written
		}
		if err = errors.Join(err, failed); !errors.Is(failed, unix.EROFS) {
			break
		}
	}
	return err
}

// limitsMemory tells whether a program's maps count as locked memory, as before Linux 5.11: more than the limit is EPERM, too.
func limitsMemory() bool {
	version, err := features.LinuxVersionCode()
	return err == nil && version < 5<<16|11<<8
}

// tryHook attaches a program to the loopback interface, for a moment.
func tryHook(objects *programsObjects) error {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		return err
	}
	attached, err := attach(lo.Index, objects.FromTunnel)
	if err != nil {
		return fmt.Errorf("attach a program at tc, which needs Linux 6.6: %w", err)
	}
	return attached.Close()
}
