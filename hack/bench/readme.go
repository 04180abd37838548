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

// sectionText is the template of that section. value looks up a row, each one for all ways to write rules; elsewhere and
// flows look up rows of the typical node, sockets those of steering.
const sectionText = `On a typical node (10,000 Services, 1,000 of them with external IPs; 100,000 endpoints, 250 of them on this node; for
iptables-nft a tenth of all that), relative to stock kube-proxy, a change takes {{each "CPU per change ÷ stock kube-proxy"}} times the CPU time,
resident memory is {{each "resident memory ÷ stock kube-proxy"}} times as large, and the rules are complete after
{{each "start to complete rules ÷ stock kube-proxy"}} times the time.
A change of a pod on another node costs {{elsewhere "CPU"}} and runs {{elsewhere "programs run"}}; idle, the process takes
{{each "CPU while idle, above stock kube-proxy"}} more than stock kube-proxy.
Bound pods of this node begin new flows at {{flows "nftables"}} (nftables), {{flows "legacy tree"}} (iptables-legacy) and
{{flows "iptables-nft tree"}} (iptables-nft) times the rate that a single SNAT rule for all pods allows, the least that netfilter can
do; packets of established flows pass at {{value "packets of established flows: nftables ÷ single rule" "250, 400 nodes"}} times its rate.
A packet costs {{sockets "CPU: steered by vxlan ÷ local"}} times the CPU if it leaves by another node, both nodes together; unbound pods send at
{{sockets "rate of unbound pods: with ÷ without steering"}} times the rate without steering; a move of one of 1,000 egress IPs takes the kernel of a node {{value "an egress IP with ten pods moves, CPU of a node in the kernel" "1k addresses"}}.
The picture shows that rate for more bound pods on one node, random ones for each flow: one rule per pod in a linear chain is
down to {{value "new flows of random pods: linear chain ÷ single rule" "10k"}} at 10,000, where nftables has {{value "new flows of random pods: nftables ÷ single rule" "10k"}}.
[RESULTS.md](hack/bench/RESULTS.md) has all figures with their targets, and [CONTRIBUTING.adoc](CONTRIBUTING.adoc) says how
` + "`make bench`" + ` measures them.

![The rate of new flows relative to a single SNAT rule, by the number of bound pods](hack/bench/new-flows.svg)
`

// render returns the section for these results.
func (p published) render() (string, error) {
	// each returns the values that are known, with the ways that they are for.
	each := func(name string) (string, error) {
		var values []string
		var unknown error
		for _, way := range []struct{ name, at string }{{"iptables-legacy", "100k"}, {"iptables-nft", "10k"}, {"nftables", "100k"}} {
			value, err := p.value(name+", "+way.name, way.at)
			if err != nil {
				unknown = err
				continue
			}
			values = append(values, value+" ("+way.name+")")
		}
		if len(values) == 0 {
			return "", unknown
		}
		return strings.Join(values, ", "), nil
	}
	section, err := template.New("section").Funcs(template.FuncMap{
		"value": p.value,
		"each":  each,
		"elsewhere": func(what string) (string, error) {
			return p.value("a pod elsewhere changes, "+what+", nftables", "100k")
		},
		"sockets": func(what string) (string, error) {
			return p.value("packets of an established flow between sockets, "+what, "")
		},
		"flows": func(structure string) (string, error) {
			return p.value("new flows of random pods: "+structure+" ÷ single rule", "250, 400 nodes")
		},
	}).Parse(sectionText)
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	err = section.Execute(&text, nil)
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
