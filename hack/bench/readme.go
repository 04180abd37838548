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

// markers are the lines between which a file has what is made of the results.
type markers struct{ begin, end string }

// performance is where README.md has its section.
var performance = markers{"<!-- performance: begin -->\n", "<!-- performance: end -->\n"}

// sectionText is the template of that section. value looks up a row, ways one for each way to write rules, and flows
// one for the structure that each of these writes.
const sectionText = `We measured one node. Its cluster has 10,000 Services, 1,000 of them with external IPs, and 100,000 endpoints, 250 of them on this
node; for iptables-nft everything is ten times smaller. Each number is a ratio. New flows are compared with a node that has one
SNAT rule for all pods, the other rows with unmodified kube-proxy.

| | iptables-legacy | iptables-nft | nftables |
|---|---|---|---|
| CPU time of a change | {{ways "CPU per change ÷ stock kube-proxy"}} |
| resident memory | {{ways "resident memory ÷ stock kube-proxy"}} |
| time until the rules are complete | {{ways "start to complete rules ÷ stock kube-proxy"}} |
| rate at which bound pods begin new flows | {{flows}} |

A change of a pod on another node costs {{value "a pod elsewhere changes, CPU, nftables" "100k"}}. If a packet leaves by another node, the two nodes together use
{{value "packets of an established flow between sockets, CPU: steered by vxlan ÷ local" ""}} times the CPU time that one node needs for a packet that leaves directly. The picture shows the rate of new flows with more pods.
[RESULTS.md](hack/bench/RESULTS.md) has all figures with their targets, and [hack/bench/README.adoc](hack/bench/README.adoc) says how
` + "`make bench`" + ` measures them.

![The rate of new flows relative to a single SNAT rule, by the number of bound pods](hack/bench/new-flows.svg)
`

// render returns the section for these results. It is an error if one of its rows is missing.
func (p published) render() (string, error) {
	// values looks up rows: of each the words that format has a place for, and the size.
	values := func(format string, rows ...[2]string) (string, error) {
		var texts []string
		for _, r := range rows {
			text, err := p.value(fmt.Sprintf(format, r[0]), r[1])
			if err != nil {
				return "", err
			}
			texts = append(texts, text)
		}
		return strings.Join(texts, " | "), nil
	}
	section, err := template.New("section").Funcs(template.FuncMap{
		"value": p.value,
		"ways": func(name string) (string, error) {
			return values(name+", %s", [2]string{"iptables-legacy", "100k"}, [2]string{"iptables-nft", "10k"}, [2]string{"nftables", "100k"})
		},
		"flows": func() (string, error) {
			const at = "250, 400 nodes"
			return values("new flows of random pods: %s ÷ single rule", [2]string{"legacy tree", at}, [2]string{"iptables-nft tree", at}, [2]string{"nftables", at})
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
func (m markers) replace(text []byte, section string) ([]byte, error) {
	before, rest, opened := bytes.Cut(text, []byte(m.begin))
	_, after, closed := bytes.Cut(rest, []byte(m.end))
	if !opened || !closed {
		return nil, errors.New("the lines " + strings.TrimSpace(m.begin) + " and " + strings.TrimSpace(m.end) + " are missing")
	}
	return slices.Concat(before, []byte(m.begin), []byte(section), []byte(m.end), after), nil
}

// update has a file say something else between its markers.
func (m markers) update(file, section string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	updated, err := m.replace(text, section)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, updated, 0o644)
}

// lines are those of the picture: structures under the load of random pods, by size.
var lines = []string{"nftables", "legacy tree", "iptables-nft tree"}

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

// publish writes RESULTS.md, the picture, the table of hack/bench/README.adoc and, if all values of its section are known, README.md.
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
	if err := scaled.update(scaleFile, p.scaleTable()); err != nil {
		return err
	}
	section, err := p.render()
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "%s stays as it is: %v\n", readmeFile, err)
		return nil
	}
	return performance.update(readmeFile, section)
}
