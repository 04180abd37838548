package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"text/template"
)

const (
	readmeFile  = "README.md"
	pictureFile = "hack/bench/new-flows.svg"
)

// The section of README.md stands between these.
const (
	begin = "<!-- performance: begin -->\n"
	end   = "<!-- performance: end -->\n"
)

// section is the template of that section. v is the value of a row; process, typical and flow are those of some figures.
var section = template.New("section").Option("missingkey=error")

const sectionText = `On a typical node, with 250 of the 100,000 endpoints of a cluster with 10,000 Services, 1,000 of them with external
IPs, a change costs {{process "CPU per change"}} the CPU time of stock kube-proxy
(iptables-legacy, iptables-nft, nftables), memory is {{process "resident memory"}} as large, and the rules are
complete {{process "start to complete rules"}} as long after the start; for iptables-nft the cluster is a tenth as
large. A pod that changes on another node costs {{typical "CPU" "nftables"}}, runs {{typical "programs run" "nftables"}} and sends
{{typical "sent to netlink" "nftables"}}. New flows of this node's bound pods begin at {{flow "random pods" "nftables"}} (nftables),
{{flow "random pods" "legacy tree"}} (iptables-legacy) and {{flow "random pods" "iptables-nft tree"}} (iptables-nft) times the rate that
a single SNAT rule for all pods allows, the least that netfilter does; packets of established flows pass at
{{v "packets of established flows: nftables ÷ single rule" "250, 400 nodes"}} times its rate. The picture shows how many bound pods on one node that takes to fall: with a rule for
each pod in one chain, a few hundred. All figures with their targets are in [RESULTS.md](hack/bench/RESULTS.md);
` + "`make bench`" + ` measures them, and [CONTRIBUTING.adoc](CONTRIBUTING.adoc) says how.

![Rate of new flows, relative to a single SNAT rule, by the number of bound pods](hack/bench/new-flows.svg)
`

// render returns the section for these results.
func (p published) render() (string, error) {
	ways := func(name string) (string, error) {
		var all []string
		for _, way := range []struct{ name, at string }{{"iptables-legacy", "100k"}, {"iptables-nft", "10k"}, {"nftables", "100k"}} {
			value, err := p.value(name+" ÷ stock kube-proxy, "+way.name, way.at)
			if err != nil {
				return "", err
			}
			all = append(all, value)
		}
		return fmt.Sprintf("%s, %s and %s times", all[0], all[1], all[2]), nil
	}
	t, err := section.Funcs(template.FuncMap{
		"v":       p.value,
		"process": ways,
		"typical": func(what, means string) (string, error) {
			return p.value("a pod elsewhere changes, "+what+", "+means, "100k")
		},
		"flow": func(load, structure string) (string, error) {
			return p.value("new flows of "+load+": "+structure+" ÷ single rule", "250, 400 nodes")
		},
	}).Parse(sectionText)
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	err = t.Execute(&text, nil)
	return text.String(), err
}

// replace returns text with another section between the markers.
func replace(text []byte, section string) ([]byte, error) {
	before, rest, opened := bytes.Cut(text, []byte(begin))
	_, after, closed := bytes.Cut(rest, []byte(end))
	if !opened || !closed {
		return nil, errors.New("the lines " + strings.TrimSpace(begin) + " and " + strings.TrimSpace(end) + " are missing")
	}
	return slices.Concat(before, []byte(begin), []byte(section), []byte(end), after), nil
}

// lines are those of the picture: structures under the load of random pods, by size.
var lines = []string{"nftables", "legacy tree", "iptables-nft tree", "linear chain"}

// sizes are those of the picture, and how rows call them.
var sizes = []struct {
	bindings int
	at       string
}{{250, "250"}, {1_000, "1k"}, {10_000, "10k"}, {100_000, "100k"}}

// draw returns the picture.
func draw(ctx context.Context, p published) ([]byte, error) {
	var points bytes.Buffer
	for _, size := range sizes {
		fmt.Fprintf(&points, "single rule\t%d\t1\n", size.bindings)
		for _, line := range lines {
			if y, err := p.value("new flows of random pods: "+line+" ÷ single rule", size.at); err == nil {
				fmt.Fprintf(&points, "%s\t%d\t%s\n", line, size.bindings, y)
			}
		}
	}
	command := exec.CommandContext(ctx, "go", "run", "-C", "hack/bench/picture", ".")
	command.Env = append(os.Environ(), "GOFLAGS=-mod=mod")
	command.Stdin = &points
	var failure bytes.Buffer
	command.Stderr = &failure
	svg, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("draw the picture: %w: %s", err, failure.Bytes())
	}
	return svg, nil
}

// publish writes RESULTS.md, the picture and, if all values of its section are known, README.md.
func publish(ctx context.Context, p published, stderr io.Writer) error {
	if err := os.WriteFile(resultsFile, []byte(p.String()), 0o644); err != nil {
		return err
	}
	svg, err := draw(ctx, p)
	if err != nil {
		return err
	}
	if err := os.WriteFile(pictureFile, svg, 0o644); err != nil {
		return err
	}
	section, err := p.render()
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "%s stays as it is: %v\n", readmeFile, err)
		return nil
	}
	text, err := os.ReadFile(readmeFile)
	if err != nil {
		return err
	}
	updated, err := replace(text, section)
	if err != nil {
		return fmt.Errorf("%s: %w", readmeFile, err)
	}
	return os.WriteFile(readmeFile, updated, 0o644)
}
