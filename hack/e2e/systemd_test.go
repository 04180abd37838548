package e2e

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/openshift/origin-node/hack/machine"
)

// TestSystemd_UnitKeepsTheNodeRunning: a node of the pool as a service of a Debian with systemd, from its start to the
// shutdown of the machine.
func TestSystemd_UnitKeepsTheNodeRunning(t *testing.T) {
	belongsTo(t, long)
	machine.RequireDebian(t)
	w := newServiceWorld(t)
	w.scenario("start", w.starts)
	w.scenario("exposure", w.isExposed)
	w.scenario("configuration", w.followsItsConfiguration)
	w.scenario("killed", w.survivesAKill)
	w.scenario("stop", w.leavesTheRules)
	w.scenario("watchdog", w.isWatched)
	w.scenario("commands", w.lacksNoRight)
	w.scenario("shutdown", w.drainsBeforeTheShutdown)
}

// serviceWorld is a pool of three nodes, of which the first one's process belongs to systemd.
type serviceWorld struct {
	*poolWorld
	*machine.Debian
	on *member
}

const unit = "origin-node.service"

// newServiceWorld makes one in which the service does not run yet.
func newServiceWorld(t *testing.T) *serviceWorld {
	t.Helper()
	w := &serviceWorld{poolWorld: newIdlePoolWorld(t, 3)}
	w.on = w.members[0]
	w.on.Arguments = map[string]any{ // the defaults
		"egress-snat-socket": []string{"/run/origin-node/egress.sock"}, "egress-snat-cni-socket": []string{"/run/origin-node/cni.sock"},
	}
	w.on.Configure(poolArguments)
	w.Debian = machine.Boot(t, w.on.Name, w.on.Host, w.on.File(""))
	w.assignable = addrs(w.egressIPs)
	for _, m := range w.members[1:] {
		m.Start()
		m.Ready()
	}
	return w
}

// does runs a command in the machine.
func (w *serviceWorld) does(name string, args ...string) string {
	w.Helper()
	out, err := w.Debian.Run(name, args...)
	w.must(err)
	return strings.TrimSpace(out)
}

// property is one of the unit's (systemctl(1)).
func (w *serviceWorld) property(name string) string {
	w.Helper()
	return w.does("systemctl", "show", unit, "--value", "--property="+name)
}

// journal is what the service and systemd say of it.
func (w *serviceWorld) journal() string {
	w.Helper()
	return w.does("journalctl", "--no-pager", "--output=cat", "--unit="+unit)
}

// runsAnew waits until the service runs, with another process than that.
func (w *serviceWorld) runsAnew(than string) {
	w.Helper()
	w.eventually(func() error {
		pid := w.property("MainPID") // 0 while there is none
		if state := w.property("ActiveState"); state != "active" || pid == "0" || pid == than {
			return fmt.Errorf("%s is %s with the process %s; it had the process %s", unit, state, pid, than)
		}
		return nil
	})
}

// says waits until the journal has a text.
func (w *serviceWorld) says(text string) {
	w.Helper()
	w.eventually(func() error {
		if !strings.Contains(w.journal(), text) {
			return fmt.Errorf("the journal does not say %q", text)
		}
		return nil
	})
}

// starts: systemctl returns when the rules are there, and the status tells of them.
func (w *serviceWorld) starts() {
	w.does("systemctl", "start", unit)
	w.pods = w.shop(w.egressIPs...)
	for _, ip := range w.egressIPs {
		w.holderOf(ip, nil)
	}
	w.eventually(func() error {
		if status := w.property("StatusText"); !strings.Contains(status, "proxy synced; egress SNAT: ") || strings.Contains(status, ": 0 bindings") {
			return errors.New("the status is " + status)
		}
		return nil
	})
	w.seenAsTheEgressIPs()
}

// seenAsTheEgressIPs fails unless the pods leave from the egress IPs, whoever has them.
func (w *serviceWorld) seenAsTheEgressIPs() {
	w.Helper()
	for _, pod := range w.pods {
		w.leaves("tcp", pod, w.egressIPs...)
	}
}

// isExposed: as little as the unit says.
func (w *serviceWorld) isExposed() {
	analysis := strings.Split(w.does("systemd-analyze", "security", "--no-pager", "--threshold=30", unit), "\n")
	w.Log(analysis[len(analysis)-1])
}

// followsItsConfiguration: the service runs on with an invalid one and says so; a valid one it takes at once.
func (w *serviceWorld) followsItsConfiguration() {
	pid := w.property("MainPID")
	valid, err := os.ReadFile(w.on.Config())
	w.must(err)
	w.on.Write(w.on.Config(), append(valid, "unknownField: 1\n"...))
	w.says("The configuration has changed but is not valid")
	if now := w.property("MainPID"); now != pid {
		w.Errorf("with an invalid configuration the service runs as %s, want %s", now, pid)
	}
	w.on.Configure(poolArguments + "v: [\"3\"]\n")
	w.runsAnew(pid)
	if failed := w.does("systemctl", "list-units", "--no-legend", "--state=failed"); strings.Contains(failed, unit) {
		w.Error(failed)
	}
	w.seenAsTheEgressIPs()
}

// survivesAKill: systemd starts the service again, and the rules are there all the time.
func (w *serviceWorld) survivesAKill() {
	pid := w.property("MainPID")
	w.does("systemctl", "kill", "--signal=KILL", unit)
	w.seenAsTheEgressIPs()
	w.runsAnew(pid)
	w.seenAsTheEgressIPs()
}

// leavesTheRules: a stop changes nothing in the kernel.
func (w *serviceWorld) leavesTheRules() {
	w.does("systemctl", "stop", unit)
	w.settled()
	w.seenAsTheEgressIPs()
	w.does("systemctl", "start", unit)
}

// isWatched: a service that cannot write for too long is started anew.
func (w *serviceWorld) isWatched() {
	w.does("mkdir", "-p", "/run/systemd/system/origin-node.service.d")
	w.does("sh", "-c", "printf '[Service]\\nWatchdogSec=6s\\n' >/run/systemd/system/origin-node.service.d/watchdog.conf")
	w.does("systemctl", "daemon-reload")
	w.does("systemctl", "restart", unit)
	pid := w.property("MainPID")
	const iptables, never = "/usr/sbin/xtables-nft-multi", "/run/never-ends"
	w.does("sh", "-c", "printf '#!/bin/sh\\nexec sleep infinity\\n' >"+never+" && chmod +x "+never)
	w.does("mount", "--bind", never, iptables)
	w.service("shop", "due", nil, nil) // rules are due
	w.says("Watchdog timeout")
	w.does("umount", iptables)
	w.runsAnew(pid)
	w.settled()
}

// lacksNoRight: neither the unit's system call filter nor its capabilities are in the way of a command that the node has run.
func (w *serviceWorld) lacksNoRight() {
	for line := range strings.Lines(w.journal()) {
		if strings.Contains(line, "ermission denied") || strings.Contains(line, "not permitted") {
			w.Error(line)
		}
	}
}

// drainsBeforeTheShutdown: when the machine is shut down, other nodes take its addresses first, and connections go on.
func (w *serviceWorld) drainsBeforeTheShutdown() {
	for _, m := range w.members[1:] {
		if _, errs, status := m.Openshift("egress", "drain", "--socket="+m.Socket()); status != 0 {
			w.Fatal(errs)
		}
	}
	for _, m := range w.members[1:] {
		if _, errs, status := m.Openshift("egress", "undrain", "--socket="+m.Socket()); status != 0 {
			w.Fatal(errs)
		}
	}
	for _, ip := range w.egressIPs {
		if holder := w.holderOf(ip, nil); holder != w.on {
			w.Fatalf("%s is on %s after the others were drained", ip, holder.Name)
		}
	}
	others := w.podsOff(w.on)
	w.pods = others
	began := time.Now()
	c := w.keepConnections(w.egressIPs[0], others)
	w.does("systemctl", "poweroff")
	w.eventually(func() error {
		if !w.Off() {
			return errors.New("the machine does not end")
		}
		return nil
	})
	w.Logf("the machine is off after %s", time.Since(began))
	for _, ip := range w.egressIPs {
		w.holderOf(ip, w.on)
	}
	c.end(w.poolWorld, w.egressIPs[0], "shutdown", 100)
}
