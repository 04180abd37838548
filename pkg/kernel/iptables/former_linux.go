package iptables

import (
	"context"
	"errors"
	"iter"
	"os/exec"
	"slices"
	"strings"

	"github.com/openshift/origin-node/pkg/kernel"
)

// ProxierChains returns the chains in the nat table of an IP family by which kube-proxy sends packets to Services in the modes iptables
// and ipvs, sorted; none if iptables is not installed. It reads all tables.
func ProxierChains(ctx context.Context, family kernel.Family) ([]string, error) {
	c := commandsFor(family, "")
	if _, err := exec.LookPath(c.save); errors.Is(err, exec.ErrNotFound) {
		return nil, nil
	}
	var found serviceChains
	err := runLines(ctx, func(lines iter.Seq[string]) error { return parse(lines, &found) }, c.save)
	slices.Sort(found)
	return found, err
}

// serviceChains collects chains. Kubelets have some of the same prefix, but none of these.
type serviceChains []string

func (s *serviceChains) line(table, text string) {
	name, isChain := strings.CutPrefix(text, ":")
	if !isChain || table != "nat" {
		return
	}
	name, _, _ = strings.Cut(name, " ")
	for _, prefix := range []string{"KUBE-SERVICES", "KUBE-NODE-PORT", "KUBE-NODEPORTS", "KUBE-SVC-", "KUBE-SVL-", "KUBE-SEP-", "KUBE-EXT-", "KUBE-FW-"} {
		if strings.HasPrefix(name, prefix) {
			*s = append(*s, name)
			return
		}
	}
}

func (*serviceChains) incompatible(string) {}
