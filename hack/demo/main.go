// Command demo shows in network namespaces what origin-node does: it starts the given
// binary on a node with two pods and a host outside, with the configuration and the
// manifests beside this file, and prints who is seen as what. It exits 1 if anything is
// not as it should be.
//
//	demo BINARY [DIR of node-config.yaml and manifests]
//
// With KEEP=1 in the environment everything stays until it is interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/openshift/origin-node/hack/lab"
)

const (
	outsidePort = 8080
	podPort     = 8080
	dbPort      = 5432
	// patience is how long a change of the manifests may take to be seen in packets. It
	// takes a fraction of a second; machines may be busy.
	patience = time.Minute
)

var (
	externalIP = netip.MustParseAddr("203.0.113.10") // of the Service web
	dbService  = netip.MustParseAddr("172.30.0.20")
	// podGateway is the node on the pods' network: the proxier masquerades what comes from
	// outside, for the answer has to come back through it.
	podGateway = netip.MustParseAddr("10.128.0.1")
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	if len(os.Args) != 3 {
		return errors.New("usage: demo BINARY DIR")
	}
	d := &demo{binary: os.Args[1], dir: os.Args[2]}
	if d.work, err = os.MkdirTemp("", "origin-node-demo-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(d.work)) }()
	d.lab, err = lab.New(ctx, lab.Config{Prefix: "demo", Pods: 2, Masquerade: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.lab.Close()) }()
	if err := d.start(ctx); err != nil {
		return err
	}
	err = d.show(ctx)
	if err != nil {
		fmt.Fprintf(os.Stderr, "the node's log:\n%s", d.log())
	}
	if os.Getenv("KEEP") == "1" {
		d.keep(ctx)
	}
	return err
}

type demo struct {
	binary, dir, work string
	lab               *lab.Lab
}

func (d *demo) manifests() string { return filepath.Join(d.work, "manifests") }

func (d *demo) log() string {
	log, err := os.ReadFile(filepath.Join(d.work, "node.log"))
	if err != nil {
		return err.Error()
	}
	return string(log)
}

// publish copies shipped manifests into the folder that the node watches.
func (d *demo) publish(names ...string) error {
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(d.dir, "manifests", name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(d.manifests(), name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// start runs the node, with only the Node and the Service db at first, and the servers
// that tell their clients who they are seen as.
func (d *demo) start(ctx context.Context) error {
	if err := os.Mkdir(d.manifests(), 0o755); err != nil {
		return err
	}
	if err := d.publish("node.yaml", "db.yaml"); err != nil {
		return err
	}
	for host, port := range map[*lab.Host]int{d.lab.Outside(): outsidePort, d.lab.Pod(1): podPort, d.lab.Pod(2): dbPort} {
		if _, err := host.ServeWhoami("tcp4", port); err != nil {
			return err
		}
	}
	log, err := os.Create(filepath.Join(d.work, "node.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	node := d.lab.Node().Command(context.WithoutCancel(ctx), d.binary, "start", "node",
		"--config="+filepath.Join(d.dir, "node-config.yaml"), "--manifests="+d.manifests(), "--loglevel=2")
	node.Stdout, node.Stderr = log, log
	if err := node.Start(); err != nil {
		return err
	}
	go func() { _ = node.Wait() }() // killed with the lab
	return nil
}

// show prints the table. It returns an error if a line of it is wrong.
func (d *demo) show(ctx context.Context) error {
	node, outside := d.lab.Node().V4, netip.AddrPortFrom(d.lab.Outside().V4, outsidePort)
	web, other := d.lab.Pod(1), d.lab.Pod(2)
	db := netip.AddrPortFrom(dbService, dbPort)
	fmt.Printf("%-52s %-16s %-16s\n", "", "seen as", "should be")
	errs := []error{
		d.line(ctx, "pod-1 → outside, without a Service", web, outside, node),
		d.line(ctx, "pod-1 → pod-2, through the Service db", web, db, web.V4),
		d.publish("web.yaml", "web-endpoints.yaml"),
		d.line(ctx, "pod-1 → outside, behind the Service web", web, outside, externalIP),
		d.line(ctx, "pod-1 → pod-2, through the Service db", web, db, web.V4),
		d.line(ctx, "pod-2 → outside, not behind the Service web", other, outside, node),
		d.line(ctx, "outside → external IP of web, answered by pod-1", d.lab.Outside(), netip.AddrPortFrom(externalIP, 80), podGateway),
		os.Remove(filepath.Join(d.manifests(), "web-endpoints.yaml")),
		d.line(ctx, "pod-1 → outside, after its endpoint is removed", web, outside, node),
	}
	return errors.Join(errs...)
}

// line asks until the answer is what it should be or patience ends, and prints it.
func (d *demo) line(ctx context.Context, what string, from *lab.Host, to netip.AddrPort, want netip.Addr) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var seen netip.Addr
	var err error
	for seen != want && ctx.Err() == nil {
		if seen, err = ask(ctx, from, to); err != nil || seen != want {
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	answer := seen.String()
	if !seen.IsValid() {
		answer = "no answer"
	}
	fmt.Printf("%-52s %-16s %-16s\n", what, answer, want)
	if seen != want {
		return errors.Join(fmt.Errorf("%s: seen as %s, should be %s", what, answer, want), err)
	}
	return nil
}

// ask makes a new flow. One that began before the rules were there never gets an answer,
// for the first packet decides for the whole flow, so it is given up soon.
func ask(ctx context.Context, from *lab.Host, to netip.AddrPort) (netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	return from.Ask(ctx, "tcp4", to, 0)
}

// keep waits for an interrupt, with everything running.
func (d *demo) keep(ctx context.Context) {
	in := "ip netns exec " + d.lab.Node().Name
	fmt.Println(strings.Join([]string{"",
		"Running until interrupted. To look inside:",
		"  " + in + " iptables -t nat -S OPENSHIFT-EGRESS-SNAT",
		"  " + in + " curl -s http://127.0.0.1:10249/metrics | grep ^egress_snat",
		"  ip netns exec " + d.lab.Pod(1).Name + " nc " + d.lab.Outside().V4.String() + fmt.Sprintf(" %d", outsidePort),
		"  less " + filepath.Join(d.work, "node.log"),
		"Change what the node serves:",
		"  cp " + filepath.Join(d.dir, "manifests", "web-endpoints.yaml") + " " + d.manifests(),
	}, "\n"))
	<-ctx.Done()
}
