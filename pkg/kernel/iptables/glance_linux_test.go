package iptables

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/openshift/origin-node/pkg/kernel"
)

// restore lets iptables-restore write this, as the proxier does it.
func (n *node) restore(lines ...string) {
	n.Helper()
	n.run(func() error { return n.writer.commands.apply(n.Context(), []byte(strings.Join(lines, "\n")+"\n")) })
}

// restoreAll is restore that begins with empty tables.
func (n *node) restoreAll(lines ...string) {
	n.Helper()
	n.run(func() error {
		_, err := run(n.Context(), []byte(strings.Join(lines, "\n")+"\n"), n.writer.commands.restore, "-w", lockWait)
		return err
	})
}

func (n *node) save() (saved string) {
	n.Helper()
	n.run(func() (err error) {
		saved, err = run(n.Context(), nil, n.writer.commands.save)
		return err
	})
	return saved
}

// proxier writes what the proxier always has.
func (n *node) proxier() {
	n.Helper()
	n.restore(proxierBase()...)
}

// proxierBase is what the proxier always has.
func proxierBase() (lines []string) {
	for _, table := range []string{"nat", "filter"} {
		lines = append(lines, "*"+table)
		var rules []string
		for _, r := range rulesOfProxier {
			if r.table == table {
				lines = append(lines, ":"+r.target+" - [0:0]")
				rules = append(rules, fmt.Sprintf("-A %s -m comment --comment kubernetes -j %s", r.chain, r.target))
			}
		}
		for _, c := range chainsOfProxier {
			if c.table == table {
				rules = append(rules, "-A "+c.chain+" -j RETURN")
			}
		}
		lines = append(append(lines, rules...), "COMMIT")
	}
	return lines
}

func (n *node) untouched() (untouched bool) {
	n.Helper()
	n.run(func() (err error) {
		untouched, err = n.writer.Untouched(n.Context())
		return err
	})
	return untouched
}

// settle writes p, looks, and all is as it should be.
func (n *node) settle(p kernel.Desired) {
	n.Helper()
	n.write(p)
	n.read()
	if n.write(p) || !n.untouched() {
		n.Fatal("what was written does not seem to be in the kernel")
	}
}

// services writes the chains of so many Services, as the proxier does it.
func (n *node) services(count int) {
	n.Helper()
	lines := []string{"*nat"}
	for i := range count {
		lines = append(lines, fmt.Sprintf(":KUBE-SVC-%d - [0:0]", i))
	}
	for i := range count {
		lines = append(lines, fmt.Sprintf("-A KUBE-SVC-%d -p tcp -j RETURN", i))
	}
	n.restore(append(lines, "COMMIT")...)
}

// tampering is what others may do to owned rules, of a plan, and to the proxier's.
var tampering = map[string]func(n *node, p kernel.Desired){
	"own rule deleted": func(n *node, p kernel.Desired) { n.exec("-D", leafChain(p), "1") },
	"own rule replaced by one of the same size": func(n *node, p kernel.Desired) {
		chain := leafChain(p)
		n.replace(chain, 0, strings.Replace(Render(p)[chain][0], "! -d", "-d", 1))
	},
	"own rules in another order": func(n *node, p kernel.Desired) {
		chain := leafChain(p)
		n.exec("-D", chain, "1")
		n.exec(append([]string{"-A", chain}, strings.Fields(Render(p)[chain][0])...)...)
	},
	"rule that goes to another own chain": func(n *node, p kernel.Desired) {
		rules, chain := Render(p)[RootChain], leafChain(p)
		i := slices.IndexFunc(rules, func(rule string) bool { return Egress.owns(target(rule)) && target(rule) != chain })
		n.replace(RootChain, i, strings.Replace(rules[i], target(rules[i]), chain, 1))
	},
	"own chain flushed":         func(n *node, _ kernel.Desired) { n.exec("-F", RootChain) },
	"foreign rule in our chain": func(n *node, _ kernel.Desired) { n.exec("-I", RootChain, "1", "-j", "ACCEPT") },
	"mark deleted":              func(n *node, _ kernel.Desired) { n.exec("-X", n.writer.mark) },
	"jump deleted":              func(n *node, _ kernel.Desired) { n.exec("-D", postrouting, "1") },
	"jump moved behind": func(n *node, _ kernel.Desired) {
		n.exec("-D", postrouting, "1")
		n.exec("-A", postrouting, "-m", "comment", "--comment", "OpenShift egress SNAT", "-j", RootChain)
	},
	"foreign rule in front":         func(n *node, _ kernel.Desired) { n.exec("-I", postrouting, "1", "-j", "ACCEPT") },
	"table flushed":                 func(n *node, _ kernel.Desired) { n.exec("-F") },
	"KUBE-POSTROUTING flushed":      func(n *node, _ kernel.Desired) { n.exec("-F", proxierPostrouting) },
	"KUBE-SERVICES flushed":         func(n *node, _ kernel.Desired) { n.exec("-F", "KUBE-SERVICES") },
	"KUBE-FORWARD flushed":          func(n *node, _ kernel.Desired) { n.exec("-t", "filter", "-F", "KUBE-FORWARD") },
	"jump to KUBE-SERVICES deleted": func(n *node, _ kernel.Desired) { n.exec("-D", "PREROUTING", "1") },
	"first jump of FORWARD deleted": func(n *node, _ kernel.Desired) { n.exec("-t", "filter", "-D", "FORWARD", "1") },
}

// leafChain returns a chain of p's that has rules of bindings.
func leafChain(p kernel.Desired) string {
	for chain, rules := range Render(p) {
		if chain != RootChain && len(rules) > 1 && target(rules[0]) == "SNAT" {
			return chain
		}
	}
	return ""
}

// replace puts a rule in the place of one of a chain.
func (n *node) replace(chain string, i int, rule string) {
	n.Helper()
	n.exec(append([]string{"-R", chain, fmt.Sprint(i + 1)}, strings.Fields(rule)...)...)
}

// TestWriter_UntouchedSeesTampering of every kind that a look finds, while the proxier is busy.
func TestWriter_UntouchedSeesTampering(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		p := randomPlan(rand.New(rand.NewPCG(20, 20)), n.cidr, 200)
		for name, tamper := range tampering {
			n.restoreAll("*nat", "COMMIT", "*filter", "COMMIT")
			n.proxier()
			n.read()
			n.settle(p)
			n.services(20)
			tamper(n, p)
			n.services(30)
			if n.untouched() {
				t.Errorf("%s: it does not show", name)
			}
		}
	})
}

// TestWriter_UntouchedSeesRestore of an earlier state of the tables, in which our rules were the same.
func TestWriter_UntouchedSeesRestore(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		p := podPlan(n.cidr, n.cidr.Addr().Next().String())
		n.proxier()
		n.settle(p)
		saved := n.save()
		n.write(kernel.Desired{})
		n.settle(p)
		n.restoreAll(saved)
		if n.untouched() {
			t.Error("it does not show")
		}
	})
}

// TestWriter_UntouchedWhileOthersWrite: what the proxier does to its Services does not show, nor do packets.
func TestWriter_UntouchedWhileOthersWrite(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		r := rand.New(rand.NewPCG(21, 21))
		n.proxier()
		n.settle(withNodes(r, randomPlan(r, n.cidr, 100), 100))
		for _, step := range []struct {
			what string
			do   func()
		}{
			{"nothing", func() {}},
			{"Services", func() { n.services(1000) }},
			{"packets", n.packets},
			{"another rule of KUBE-SERVICES", func() { n.restore("*nat", ":KUBE-SERVICES - [0:0]", "-A KUBE-SERVICES -p tcp -j KUBE-SVC-2", "COMMIT") }},
			{"a Service less", func() { n.restore("*nat", ":KUBE-SVC-1 - [0:0]", "-X KUBE-SVC-1", "COMMIT") }},
			{"a table of somebody else", func() { n.restore("*mangle", "-A FORWARD -j ACCEPT", "COMMIT") }},
		} {
			if step.do(); !n.untouched() {
				t.Errorf("%s: it seems that somebody has changed what is ours or the proxier's", step.what)
			}
		}
	})
}

// TestWriter_UntouchedAfterAWrite of ours, which is no tampering, whoever writes other chains at the same time.
func TestWriter_UntouchedAfterAWrite(t *testing.T) {
	other := []string{"-p", "tcp", "-j", "RETURN"}
	for name, test := range map[string]struct {
		// before somebody does something to a chain that is not written, or after it to one that is.
		before, after []string
		proxier, want bool
	}{
		"nobody acts":                         {want: true},
		"the proxier writes right after it":   {proxier: true, want: true},
		"a rule is added before it":           {before: []string{"-A"}},
		"a rule is added right after it":      {after: []string{"-A"}},
		"a rule is replaced right after it":   {after: []string{"-R", "1"}},
		"the last is replaced right after it": {after: []string{"-R", "last"}},
		"a rule is deleted right after it":    {after: []string{"-D", "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			onNode(t, func(t *testing.T, n *node) {
				p := randomPlan(rand.New(rand.NewPCG(22, 22)), n.cidr, 200)
				n.proxier()
				n.settle(p)
				changed := p
				changed.Bindings = p.Bindings[1:]
				command := func(chain string, args []string) []string {
					command := append([]string{args[0], chain}, args[1:]...)
					if command[len(command)-1] == "last" {
						command[len(command)-1] = fmt.Sprint(len(Render(changed)[chain]))
					}
					if args[0] != "-D" {
						command = append(command, other...)
					}
					return command
				}
				if test.before != nil {
					n.exec(command(chainOf(p, changed, true), test.before)...)
				}
				if test.after != nil {
					n.afterRestore(command(chainOf(p, changed, false), test.after)...)
				}
				if test.proxier {
					n.afterRestore("-A", "KUBE-SERVICES", "-j", "RETURN")
				}
				rules := Render(changed)
				rules.Record(p.Bindings[:1])
				n.run(func() error { _, err := n.writer.Write(n.Context(), rules); return err })
				if n.untouched() != test.want {
					t.Errorf("it seems untouched: %v, want %v", !test.want, test.want)
				}
			})
		})
	}
}

// chainOf returns a chain that two plans have alike, or one that they do not.
func chainOf(p, q kernel.Desired, same bool) string {
	rules := Render(q)
	for chain := range Render(p) {
		if has, there := rules[chain]; there && slices.Equal(has, Render(p)[chain]) == same {
			return chain
		}
	}
	return ""
}

// afterRestore lets an iptables command on the nat table follow each iptables-restore at once.
func (n *node) afterRestore(args ...string) {
	n.Helper()
	dir, name := n.TempDir(), n.writer.commands.restore
	program, err := exec.LookPath(name)
	if err != nil {
		n.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\n%s \"$@\" && %s -w -t nat %s\n", program, n.writer.commands.version, strings.Join(args, " "))
	if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
		n.Fatal(err)
	}
	n.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// packets has the node send one to itself.
func (n *node) packets() {
	n.Helper()
	before := n.exec("-v", "-n", "-x", "-L", postrouting)
	n.run(func() error {
		address := "127.0.0.1:9"
		if n.family == kernel.IPv6 {
			address = "[::1]:9"
		}
		conn, err := net.Dial("udp", address)
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Write([]byte("hello"))
		return err
	})
	if after := n.exec("-v", "-n", "-x", "-L", postrouting); after == before {
		n.Fatalf("the packet was not counted:\n%s", after)
	}
}
