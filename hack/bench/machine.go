package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
)

// machine is where it was measured.
type machine struct {
	cpu    string
	cores  int
	kernel string
	// tools are the versions of programs that figures depend on.
	tools []string
}

func (m machine) String() string {
	return fmt.Sprintf("%s, %d cores; Linux %s; %s", m.cpu, m.cores, m.kernel, strings.Join(m.tools, ", "))
}

var modelName = regexp.MustCompile(`(?m)^model name\s*: (.+)$`)

// describe says what it can find out.
func describe(ctx context.Context) machine {
	m := machine{cpu: runtime.GOARCH, cores: runtime.NumCPU(), kernel: "of unknown version"}
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if match := modelName.FindSubmatch(info); match != nil {
			m.cpu = string(match[1])
		}
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.kernel = string(bytes.TrimSpace(release))
	}
	for _, tool := range []string{"iptables", "nft"} {
		if version, err := exec.CommandContext(ctx, tool, "--version").Output(); err == nil {
			name, rest, _ := strings.Cut(string(version), " v")
			number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
			m.tools = append(m.tools, name+" "+number)
		}
	}
	m.tools = append(m.tools, runtime.Version())
	return m
}
