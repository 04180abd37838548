package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/iptables"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// asker is the name of the program that prints what boundInKernel says of the addresses that are its arguments. See TestMain.
const asker = "ask-kernel"

func askKernel(ips []string) {
	for _, ip := range ips {
		_, is, err := boundInKernel(context.Background(), []netip.Addr{netip.MustParseAddr(ip)})
		if _, err := fmt.Fprintln(os.Stdout, ip, is, err); err != nil {
			panic(err) // the test hears nothing
		}
	}
}

// TestKernel_BoundAddresses: each address that the node's process has written a rule or an element for is found, and no other, in what
// this machine's iptables and nft print.
func TestKernel_BoundAddresses(t *testing.T) {
	writers := map[string]func(context.Context, kernel.Desired, kernel.Family) error{
		"iptables": func(ctx context.Context, p kernel.Desired, f kernel.Family) error {
			_, err := iptables.NewWriter(f).Write(ctx, iptables.Render(p))
			return err
		},
		"nftables": func(ctx context.Context, p kernel.Desired, f kernel.Family) error {
			_, err := steering.NewLocalWriter(f).Write(ctx, p, nil)
			return err
		},
		"steering": writeSteering,
		"steering that has ended, and whose connections are not judged yet": func(ctx context.Context, p kernel.Desired, f kernel.Family) error {
			return errors.Join(writeSteering(ctx, p, f), steering.Halt(ctx))
		},
	}
	ways := []struct {
		writer  string
		backend lab.Backend
	}{{"iptables", lab.Legacy}, {"iptables", lab.NFT}, {"nftables", lab.NFT}, {"steering", lab.NFT},
		{"steering that has ended, and whose connections are not judged yet", lab.NFT}}
	for _, way := range ways {
		t.Run(fmt.Sprintf("%s/%s", way.writer, way.backend), func(t *testing.T) {
			t.Setenv("PATH", toolsPath)
			l := lab.ForTest(t, lab.Config{IPv6: true, Backend: way.backend})
			t.Setenv("PATH", l.Path())
			t.Setenv("XTABLES_LOCKFILE", filepath.Join(t.TempDir(), "lock"))
			for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
				pods, plan := boundPods(family)
				isBound(t, l.Node(), pods, 0)
				if err := l.Node().Do(func() error { return writers[way.writer](t.Context(), plan, family) }); err != nil {
					t.Fatal(err)
				}
				isBound(t, l.Node(), pods, len(plan.Bindings))
			}
		})
	}
}

func writeSteering(ctx context.Context, p kernel.Desired, f kernel.Family) error {
	w := steering.NewWriter(steering.Config{Family: f, NodeIP: netip.MustParseAddr("192.0.2.1"), Transport: steering.VXLAN, Port: 4799, MarkMask: 0x7e})
	defer w.Close()
	if _, err := w.Write(ctx, p, nil); !w.Known() {
		return err // it has no address to be reached by, but the table
	}
	return nil
}

// boundPods returns addresses of pods, and a plan that binds all but the last.
func boundPods(family kernel.Family) (pods []string, plan kernel.Desired) {
	pods, cidr, egressIP := []string{"10.128.0.1", "10.128.0.11", "10.128.0.2", "10.128.0.111"}, lab.ClusterV4, "203.0.113.10"
	if family == kernel.IPv6 {
		pods, cidr, egressIP = []string{"fd00:10:128::1", "fd00:10:128::11", "fd00:10:128::2", "fd00:10:128::111"}, lab.ClusterV6, "2001:db8:113::10"
	}
	plan.ClusterCIDRs = []netip.Prefix{cidr}
	for i, protocol := range []kernel.Protocol{kernel.TCP, kernel.UDP, kernel.All} {
		plan.Bindings = append(plan.Bindings, kernel.Binding{Pod: netip.MustParseAddr(pods[i]), Protocol: protocol, EgressIP: netip.MustParseAddr(egressIP)})
	}
	return pods, plan
}

// isBound asks on a node, and fails unless the first pods are bound, that many, and the others are not.
func isBound(t *testing.T, on *lab.Host, pods []string, bound int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), asker)
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	got, err := on.Run(t.Context(), program, pods...)
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for i, pod := range pods {
		fmt.Fprintln(&want, pod, i < bound, nil)
	}
	if got != want.String() {
		t.Errorf("it prints\n%s, want\n%s", got, &want)
	}
}
