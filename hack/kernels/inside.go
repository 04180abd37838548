//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/hack/lab"
)

// said begins each line that is a message of the process in the virtual machine. All other lines are what tests print.
const said = "\x1ekernels "

// message is what the process in the virtual machine says on its standard output.
type message struct {
	Machine *facts `json:",omitempty"` // the first one
	Begin   string `json:",omitempty"` // the package whose tests print from now on
	End     string `json:",omitempty"` // the package whose tests have ended
	Error   string `json:",omitempty"` // what ended them, if they have not just passed
	Done    bool   `json:",omitempty"` // the last one
}

// facts are what a virtual machine has.
type facts struct {
	Release, IPTables, NFT string
	// Slowness is how many times slower it is than the machine that emulates it.
	Slowness float64
}

// testsFolder is where the tests' disk is for the tests.
const testsFolder = "/tests"

// packageTime bounds the tests of a package on a machine that is not emulated.
const packageTime = 10 * time.Minute

// inside runs the tests that are on the disk at this folder.
func inside(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: kernels inside DIR")
	}
	dir, ctx := testsFolder, context.Background()
	// Machines of tests have a /mnt of their own, and see the disk here.
	if err := errors.Join(os.MkdirAll(dir, 0o755), unix.Mount(args[0], dir, "", unix.MS_BIND, "")); err != nil {
		return fmt.Errorf("mount the tests at %s: %w", dir, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "plan.json"))
	if err != nil {
		return err
	}
	var p plan
	if err := json.Unmarshal(text, &p); err != nil {
		return err
	}
	// A table of conntrack with fewer buckets than machines with this memory have: the kernel goes through all of them again and again. It is
	// enough for 100,000 flows; the tests begin fewer.
	if err := os.WriteFile("/sys/module/nf_conntrack/parameters/hashsize", []byte("16384"), 0o600); err != nil {
		return err
	}
	f, err := findFacts(ctx, p.Native)
	if err != nil {
		return err
	}
	say(message{Machine: f})
	for _, r := range p.Runs {
		if r.Kernel != "" && !strings.HasPrefix(f.Release, r.Kernel+".") {
			continue
		}
		say(message{Begin: r.Name})
		end := message{End: r.Name}
		if err := r.do(ctx, dir, f.Slowness); err != nil {
			end.Error = err.Error()
		}
		say(end)
	}
	say(message{Done: true})
	return nil
}

func say(m message) {
	text, err := json.Marshal(m)
	if err == nil {
		_, err = fmt.Fprintf(os.Stdout, "\n%s%s\n", said, text) // a test may leave its last line open
	}
	if err != nil {
		panic(err) // nobody hears anything any more
	}
}

func findFacts(ctx context.Context, native time.Duration) (*facts, error) {
	took, err := speed(ctx)
	if err != nil {
		return nil, err
	}
	f := &facts{Slowness: max(1, float64(took)/float64(native))}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return nil, err
	}
	f.Release = unix.ByteSliceToString(name.Release[:])
	for tool, version := range map[string]*string{"iptables": &f.IPTables, "nft": &f.NFT} {
		out, err := exec.CommandContext(ctx, tool, "--version").Output()
		if err != nil {
			return nil, fmt.Errorf("%s --version: %w", tool, err)
		}
		if words := strings.Fields(string(out)); len(words) > 1 {
			*version = strings.TrimPrefix(words[1], "v")
		}
	}
	return f, nil
}

// mostStretch is by how much deadlines are multiplied at most. They are generous already, and what fails waits until they pass.
const mostStretch = 20

// do runs the tests of a package. What they print goes to this process's standard output.
func (r testRun) do(ctx context.Context, dir string, slowness float64) error {
	cmd := exec.CommandContext(ctx, "./"+testBinary, "-test.v=test2json", "-test.count=1",
		fmt.Sprintf("-test.timeout=%.0fs", packageTime.Seconds()*min(slowness, mostStretch)))
	if r.Run != "" {
		cmd.Args = append(cmd.Args, "-test.run="+r.Run)
	}
	cmd.Dir = filepath.Join(dir, r.Package)
	cmd.Env = append(os.Environ(), "CI=true", "OPENSHIFT="+filepath.Join(dir, "openshift"), "CONTROLPLANE="+filepath.Join(dir, "controlplane"),
		fmt.Sprintf("%s=%.1f", lab.SlownessVariable, min(slowness, mostStretch)))
	if len(r.Lacks) > 0 {
		cmd.Env = append(cmd.Env, lab.LacksVariable+"="+strings.Join(r.Lacks, ","))
	}
	if r.Focus != "" {
		cmd.Env = append(cmd.Env, "CONFORMANCE="+filepath.Join(dir, "conformance"), "FOCUS="+r.Focus, "POD="+filepath.Join(dir, "pod"))
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stdout
	return withoutModules(r.Lacks, cmd.Run)
}

// lacking has modprobe load no modules that a kernel is to lack.
const lacking = "/etc/modprobe.d/lacking.conf"

// withoutModules calls run while the kernel lacks these modules. It is an error if it has one of them already.
func withoutModules(modules []string, run func() error) error {
	var text strings.Builder
	for _, module := range modules {
		if _, err := os.Stat("/sys/module/" + module); err == nil {
			return fmt.Errorf("the kernel has the module %s already", module)
		}
		fmt.Fprintf(&text, "install %s /bin/false\n", module)
	}
	if err := os.WriteFile(lacking, []byte(text.String()), 0o644); err != nil {
		return err
	}
	err := run()
	for _, module := range modules {
		if _, stat := os.Stat("/sys/module/" + module); stat == nil {
			err = errors.Join(err, fmt.Errorf("the kernel has loaded the module %s all the same", module))
		}
	}
	return errors.Join(err, os.Remove(lacking))
}
