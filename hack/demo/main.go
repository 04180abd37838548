// Command demo shows in network namespaces what origin-node does: it starts the given
// binary on four nodes, of which two have a pod, with the configuration and the manifests beside
// this file, and prints as what a host outside sees the pods, and by which node their packets
// come. At last it cuts the link of a node that has an egress IP. It exits 1 if anything is not as it should be.
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
	"slices"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"

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
	externalIP = netip.MustParseAddr("192.0.2.100") // of the Service web
	dbService  = netip.MustParseAddr("172.30.0.20")
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
	d.lab, err = lab.New(ctx, lab.Config{Prefix: "demo", Nodes: 4, Pods: 2, Masquerade: true, AnswersByARP: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.lab.Close()) }()
	if d.wire, err = d.lab.Watch(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.wire.Close()) }()
	if err := d.start(ctx); err != nil {
		return err
	}
	err = d.show(ctx)
	if err != nil {
		for i := range d.lab.Nodes() {
			fmt.Fprintf(os.Stderr, "the log of %s:\n%s", nodeName(i), d.log(i))
		}
	}
	if os.Getenv("KEEP") == "1" {
		d.keep(ctx)
	}
	return err
}

type demo struct {
	binary, dir, work string
	lab               *lab.Lab
	wire              *lab.Wire
}

func (d *demo) manifests() string { return filepath.Join(d.work, "manifests") }

// nodeName is that of a node's object, and of its folder.
func nodeName(i int) string { return fmt.Sprintf("node-%d", i+1) }

func (d *demo) file(node int, name string) string { return filepath.Join(d.work, nodeName(node), name) }

func (d *demo) log(node int) string {
	log, err := os.ReadFile(d.file(node, "log"))
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

// start runs the nodes, with only their Nodes and the Service db at first, and the servers
// that tell their clients who they are seen as. The second node has the external IP.
func (d *demo) start(ctx context.Context) error {
	if err := os.Mkdir(d.manifests(), 0o755); err != nil {
		return err
	}
	if err := d.publish("nodes.yaml", "db.yaml"); err != nil {
		return err
	}
	for host, port := range map[*lab.Host]int{d.lab.Outside(): outsidePort, d.lab.Pod(1): podPort, d.lab.Pod(2): dbPort} {
		if _, err := host.ServeWhoami("tcp4", port); err != nil {
			return err
		}
	}
	nodes := d.lab.Nodes()
	if err := nodes[1].TakeAddr(externalIP); err != nil {
		return err
	}
	if err := serveAPI(context.WithoutCancel(ctx), d.manifests(), nodes); err != nil {
		return err
	}
	for i := range nodes {
		if err := d.startNode(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// startNode runs the binary on a node.
func (d *demo) startNode(ctx context.Context, i int) error {
	if err := os.Mkdir(filepath.Join(d.work, nodeName(i)), 0o755); err != nil {
		return err
	}
	if err := d.configure(i); err != nil {
		return err
	}
	log, err := os.Create(d.file(i, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	node := d.lab.Nodes()[i].Command(context.WithoutCancel(ctx), d.binary, "start", "node", "--config="+d.file(i, "node-config.yaml"), "--loglevel=2")
	node.Stdout, node.Stderr = log, log
	if err := node.Start(); err != nil {
		return err
	}
	go func() { _ = node.Wait() }() // killed with the lab
	return nil
}

// configure writes the configuration of a node: the one beside this file, with an API server and for a machine that
// has several nodes.
func (d *demo) configure(i int) error {
	text, err := os.ReadFile(filepath.Join(d.dir, "node-config.yaml"))
	if err != nil {
		return err
	}
	config := map[string]any{}
	if err := yaml.Unmarshal(text, &config); err != nil {
		return err
	}
	config["nodeName"], config["masterKubeConfig"] = nodeName(i), "kubeconfig"
	config["masterClientConnectionOverrides"] = map[string]any{"contentType": "application/json", "acceptContentTypes": "application/json"}
	arguments := config["proxyArguments"].(map[string]any)
	arguments["egress-snat-socket"], arguments["egress-snat-cni-socket"] = []string{d.file(i, "socket")}, []string{""}
	arguments["egress-snat-assign-cidrs"] = []string{poolCIDR}
	arguments["egress-snat-key-file"] = []string{d.file(i, "key")} // the demo's API server has no Secrets to share keys by
	if text, err = yaml.Marshal(config); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(d.file(i, "key"), []byte("the key of all nodes of the demo\n"), 0o600), os.WriteFile(d.file(i, "node-config.yaml"), text, 0o600), os.WriteFile(d.file(i, "kubeconfig"), []byte(kubeconfig), 0o600))
}

// show prints the table. It returns an error if a line of it is wrong.
func (d *demo) show(ctx context.Context) error {
	one, two := d.lab.Nodes()[0], d.lab.Nodes()[1]
	outside, db := netip.AddrPortFrom(d.lab.Outside().V4, outsidePort), netip.AddrPortFrom(dbService, dbPort)
	web, other := d.lab.Pod(1), d.lab.Pod(2)
	fmt.Printf("node-1 %s has pod-1. node-2 %s has pod-2, and the address %s.\n\n", one.V4, two.V4, externalIP)
	fmt.Printf("%-51s %-23s %s\n", "", "seen as", "should be")
	errs := []error{
		d.line(ctx, "pod-1 → outside, without a Service", web, outside, seen{one.V4, one}),
		d.line(ctx, "pod-1 → pod-2, through the Service db", web, db, seen{web.V4, nil}),
		d.publish("web.yaml", "web-endpoints.yaml"),
		d.line(ctx, "pod-1 → outside, behind the Service web", web, outside, seen{externalIP, two}),
		d.line(ctx, "pod-1 → pod-2, through the Service db", web, db, seen{web.V4, nil}),
		d.line(ctx, "pod-2 → outside, not behind the Service web", other, outside, seen{two.V4, two}),
		// The proxier masquerades what comes from outside, for the answer has to come back through it.
		d.line(ctx, "outside → external IP of web, answered by pod-1", d.lab.Outside(), netip.AddrPortFrom(externalIP, 80), seen{two.V4, nil}),
		d.move(two, one),
		d.line(ctx, "pod-1 → outside, after the address moved to node-1", web, outside, seen{externalIP, one}),
		d.move(one, two),
		d.line(ctx, "pod-1 → outside, after it moved back to node-2", web, outside, seen{externalIP, two}),
		os.Remove(filepath.Join(d.manifests(), "web-endpoints.yaml")),
		d.line(ctx, "pod-1 → outside, after its endpoint is removed", web, outside, seen{one.V4, one}),
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return d.failover(ctx, other, outside)
}

func (d *demo) move(from, to *lab.Host) error { return d.lab.MoveAddr(externalIP, from, to) }

// seen is from which address somebody was seen, and by which node its packets left; nil where they leave by none.
type seen struct {
	as netip.Addr
	by *lab.Host
}

func (d *demo) tell(s seen) string {
	switch i := slices.Index(d.lab.Nodes(), s.by); {
	case !s.as.IsValid():
		return "no answer"
	case i >= 0:
		return fmt.Sprintf("%s by %s", s.as, nodeName(i))
	}
	return s.as.String()
}

// line asks until the answer is what it should be or patience ends, and prints it.
func (d *demo) line(ctx context.Context, what string, from *lab.Host, to netip.AddrPort, want seen) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var got seen
	var err error
	for got != want && ctx.Err() == nil {
		if got, err = d.ask(ctx, from, to); err != nil || got != want {
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	fmt.Printf("%-51s %-23s %s\n", what, d.tell(got), d.tell(want))
	if got != want {
		return errors.Join(fmt.Errorf("%s: seen as %s, should be %s", what, d.tell(got), d.tell(want)), err)
	}
	return nil
}

// ask makes a new flow. One that began before the rules were there never gets an answer,
// for the first packet decides for the whole flow, so it is given up soon.
func (d *demo) ask(ctx context.Context, from *lab.Host, to netip.AddrPort) (got seen, err error) {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	before := d.wire.Seen()
	if got.as, err = from.Ask(ctx, "tcp4", to, 0); err != nil {
		return got, err
	}
	for sighting, packets := range d.wire.Seen() {
		if sighting.Source == got.as && sighting.To == to && packets > before[sighting] {
			got.by = sighting.Node
		}
	}
	return got, nil
}

// keep waits for an interrupt, with everything running.
func (d *demo) keep(ctx context.Context) {
	in := "ip netns exec " + d.lab.Node().Name
	fmt.Println(strings.Join([]string{"",
		"Running until interrupted. To look inside:",
		"  " + d.binary + " egress addresses --socket=" + d.file(0, "socket"),
		"  " + in + " iptables -t nat -S OPENSHIFT-EGRESS-SNAT",
		"  " + in + " nft list table ip openshift-egress-steering",
		"  " + in + " curl -s http://127.0.0.1:10249/metrics | grep ^egress_snat",
		"  ip netns exec " + d.lab.Pod(1).Name + " nc " + d.lab.Outside().V4.String() + fmt.Sprintf(" %d", outsidePort),
		"  less " + d.file(0, "log"),
		"Change what the nodes serve:",
		"  cp " + filepath.Join(d.dir, "manifests", "web-endpoints.yaml") + " " + d.manifests(),
	}, "\n"))
	<-ctx.Done()
}
