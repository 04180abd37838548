//go:build linux

package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"

	"github.com/openshift/origin-node/hack/lab"
)

const (
	apiServerPort = 6443
	etcdURL       = "http://127.0.0.1:2379"
	managerPort   = 10257
	schedulerPort = 10259
	issuer        = "https://kubernetes.default.svc"
)

// patience bounds the start of a component where no context does sooner.
var patience = lab.Stretch(90 * time.Second)

// The CIDRs of the Services' cluster IPs.
var (
	ServiceCIDRV4 = netip.MustParsePrefix("172.30.0.0/16")
	ServiceCIDRV6 = netip.MustParsePrefix("fd00:172:30::/112")
)

// controllers are those of kube-controller-manager that always run.
var controllers = []string{
	"endpoints-controller", "endpointslice-controller", "endpointslice-mirroring-controller",
	"deployment-controller", "replicaset-controller",
	"namespace-controller", "garbage-collector-controller",
	"serviceaccount-controller", "serviceaccount-token-controller", "service-cidr-controller",
}

// kubeletsControllers run as well where there are kubelets: a node that stands in for one would not live for long.
var kubeletsControllers = []string{
	"node-lifecycle-controller", "taint-eviction-controller", "root-ca-certificate-publisher-controller", "pod-garbage-collector-controller",
	"replicationcontroller-controller", "daemonset-controller", "statefulset-controller", "job-controller", // for upstream's specs
}

// Config says what to run where.
type Config struct {
	// Host is the one whose namespace the control plane runs in. Services are of the IP
	// families of its addresses.
	Host *lab.Host
	// Binaries is the directory that hack/build-controlplane.sh printed.
	Binaries string
	// Dir is for data, certificates, kubeconfigs and logs. What is in it from an
	// earlier control plane of the same binaries, or of older ones, is taken up.
	Dir string
	// Kubelets says that the nodes are to have real ones: there is a scheduler, and nodes that nobody hears of are not
	// ready.
	Kubelets bool
	// APIServer has further arguments of kube-apiserver.
	APIServer []string
	// Log returns the path of a component's log, by its name; nil is for DIR/NAME.log.
	Log func(component string) string
}

// ControlPlane is a running control plane. Its methods may be called from several
// goroutines, but none after Close.
type ControlPlane struct {
	Etcd, APIServer, ControllerManager *Component
	Scheduler                          *Component // nil without Config.Kubelets

	host   *lab.Host
	dir    string
	log    func(component string) string
	ca     *authority
	tokens *ecdsa.PrivateKey // signs those of service accounts
	config *rest.Config
	client kubernetes.Interface
	dialer *connrotation.Dialer

	mu    sync.Mutex
	links []*Link
}

// New starts a control plane and returns when it is ready. When it fails it leaves no
// process behind.
func New(ctx context.Context, config Config) (*ControlPlane, error) {
	c := &ControlPlane{host: config.Host, dir: config.Dir, log: config.Log, dialer: connrotation.NewDialer(config.Host.DialContext)}
	if err := c.prepare(config); err != nil {
		return nil, fmt.Errorf("prepare the control plane: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, component := range c.Components() {
		if err := component.startReady(ctx); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

// Close kills the components and ends the links and the admin's connections. The
// directory stays. Calling it again does nothing.
func (c *ControlPlane) Close() error {
	c.mu.Lock()
	links := c.links
	c.links = nil
	c.mu.Unlock()
	for _, link := range links {
		link.Close()
	}
	var errs []error
	for _, component := range c.Components() {
		errs = append(errs, component.Kill())
	}
	c.dialer.CloseAll()
	return errors.Join(errs...)
}

// Components are all components, in the order in which they need each other.
func (c *ControlPlane) Components() []*Component {
	components := []*Component{c.Etcd, c.APIServer, c.ControllerManager}
	if c.Scheduler != nil {
		components = append(components, c.Scheduler)
	}
	return components
}

// URL is that of the API server itself, as hosts of the lab reach it.
func (c *ControlPlane) URL() string { return "https://" + c.address().String() }

func (c *ControlPlane) address() netip.AddrPort {
	return netip.AddrPortFrom(c.addrs()[0], apiServerPort)
}

// addrs are the host's addresses, IPv4 first.
func (c *ControlPlane) addrs() []netip.Addr { return valid([]netip.Addr{c.host.V4, c.host.V6}) }

// ServiceCIDRs are those of the cluster IPs, IPv4 first.
func (c *ControlPlane) ServiceCIDRs() []netip.Prefix {
	var cidrs []netip.Prefix
	for _, addr := range c.addrs() {
		if addr.Is4() {
			cidrs = append(cidrs, ServiceCIDRV4)
		} else {
			cidrs = append(cidrs, ServiceCIDRV6)
		}
	}
	return cidrs
}

// NewLink returns a link to the API server that hosts of the lab reach by the control
// plane's first address, at a port of its own. It ends with the control plane.
func (c *ControlPlane) NewLink() (*Link, error) {
	link, err := NewLink(c.host, netip.AddrPortFrom(c.address().Addr(), 0), c.address())
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.links = append(c.links, link)
	return link, nil
}

// AdminConfig is for clients in the test's process, who may do everything: their
// connections are made inside the control plane's namespace. They are limited by
// nothing but the API server.
func (c *ControlPlane) AdminConfig() *rest.Config { return rest.CopyConfig(c.config) }

// Client is a client with the admin's configuration.
func (c *ControlPlane) Client() kubernetes.Interface { return c.client }

// prepare makes everything but processes.
func (c *ControlPlane) prepare(config Config) error {
	dir, err := filepath.Abs(c.dir)
	if err != nil {
		return err
	}
	c.dir = dir
	if c.log == nil {
		c.log = func(component string) string { return c.path(component + ".log") }
	}
	names := []string{"etcd", "kube-apiserver", "kube-controller-manager"}
	if config.Kubelets {
		names = append(names, "kube-scheduler")
	}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(config.Binaries, name)); err != nil {
			return fmt.Errorf("%w; run 'make build-controlplane'", err)
		}
	}
	if err := c.makeKeys(); err != nil {
		return err
	}
	admin, err := c.ca.client("admin", []string{"system:masters"}, time.Now().Add(validity))
	if err != nil {
		return err
	}
	if err := c.addComponents(config, admin); err != nil {
		return err
	}
	return c.addClient(admin)
}

func (c *ControlPlane) addClient(admin pair) (err error) {
	c.config = &rest.Config{
		Host: c.URL(), QPS: -1, Dial: c.dialer.DialContext, WarningHandler: rest.NoWarnings{},
		TLSClientConfig: rest.TLSClientConfig{CAData: c.ca.cert, CertData: admin.cert, KeyData: admin.key},
	}
	c.client, err = kubernetes.NewForConfig(c.config)
	return err
}

// addComponents describes the processes.
func (c *ControlPlane) addComponents(config Config, admin pair) error {
	certificate, err := admin.tls()
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DialContext: c.host.DialContext, DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{RootCAs: c.ca.pool(), Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
	}}
	add := func(name, probe string, args []string) *Component {
		return &Component{
			Name: name, Log: c.log(name), host: c.host,
			binary: filepath.Join(config.Binaries, name), args: args, probe: probe, client: client,
		}
	}
	c.Etcd = add("etcd", etcdURL+"/readyz", c.etcdArgs())
	c.APIServer = add("kube-apiserver", c.URL()+"/readyz", append(c.apiServerArgs(), config.APIServer...))
	c.Etcd.first, c.APIServer.first = true, true
	running := controllers
	if config.Kubelets {
		running = slices.Concat(controllers, kubeletsControllers)
		c.Scheduler = add("kube-scheduler", fmt.Sprintf("https://127.0.0.1:%d/healthz", schedulerPort), c.schedulerArgs())
	}
	c.ControllerManager = add("kube-controller-manager", fmt.Sprintf("https://127.0.0.1:%d/healthz", managerPort), c.managerArgs(running))
	return nil
}

func (c *ControlPlane) path(name string) string { return filepath.Join(c.dir, name) }

func (c *ControlPlane) etcdArgs() []string {
	peers := "http://127.0.0.1:2380"
	return []string{
		"--name=etcd", "--data-dir=" + c.path("etcd"), "--log-level=warn",
		"--listen-client-urls=" + etcdURL, "--advertise-client-urls=" + etcdURL,
		"--listen-peer-urls=" + peers, "--initial-advertise-peer-urls=" + peers, "--initial-cluster=etcd=" + peers,
		// A killed process loses nothing that it wrote; only a machine that crashes does.
		"--unsafe-no-fsync",
	}
}

func (c *ControlPlane) apiServerArgs() []string {
	bind := "0.0.0.0"
	if c.host.V6.IsValid() {
		bind = "::"
	}
	var cidrs []string
	for _, cidr := range c.ServiceCIDRs() {
		cidrs = append(cidrs, cidr.String())
	}
	return []string{
		"--etcd-servers=" + etcdURL,
		"--bind-address=" + bind, fmt.Sprintf("--secure-port=%d", apiServerPort), "--advertise-address=" + c.address().Addr().String(),
		"--tls-cert-file=" + c.path("server.crt"), "--tls-private-key-file=" + c.path("server.key"),
		"--client-ca-file=" + c.path("ca.crt"),
		"--authorization-mode=RBAC",
		"--service-account-issuer=" + issuer,
		"--service-account-key-file=" + c.path("tokens.key"), "--service-account-signing-key-file=" + c.path("tokens.key"),
		"--service-cluster-ip-range=" + strings.Join(cidrs, ","),
		"--allow-privileged=true",
		// Nobody resolves the names of kubelets.
		"--kubelet-preferred-address-types=InternalIP",
		// The usual time, on a machine that is not emulated.
		"--request-timeout=" + lab.Stretch(time.Minute).String(),
		// On SIGTERM watches end within two seconds rather than a minute.
		"--shutdown-send-retry-after=true",
		"--profiling=false", "--v=1",
	}
}

func (c *ControlPlane) schedulerArgs() []string {
	return []string{
		"--kubeconfig=" + c.path("kube-scheduler.kubeconfig"),
		"--leader-elect=false",
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", schedulerPort),
		"--tls-cert-file=" + c.path("server.crt"), "--tls-private-key-file=" + c.path("server.key"),
		"--kube-api-qps=500", "--kube-api-burst=1000",
		"--profiling=false", "--v=1",
	}
}

func (c *ControlPlane) managerArgs(controllers []string) []string {
	return []string{
		"--kubeconfig=" + c.path("kube-controller-manager.kubeconfig"),
		"--controllers=" + strings.Join(controllers, ","),
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + c.path("tokens.key"), "--root-ca-file=" + c.path("ca.crt"),
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", managerPort),
		"--tls-cert-file=" + c.path("server.crt"), "--tls-private-key-file=" + c.path("server.key"),
		// It must not be what a scenario waits for.
		"--kube-api-qps=500", "--kube-api-burst=1000", "--concurrent-service-endpoint-syncs=2",
		"--profiling=false", "--v=1",
	}
}

// makeKeys makes certificates and keys, and the files that the components read.
func (c *ControlPlane) makeKeys() (err error) {
	if c.ca, err = newAuthority("control plane"); err != nil {
		return err
	}
	if c.tokens, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return err
	}
	tokens, err := encodeKey(c.tokens)
	if err != nil {
		return err
	}
	server, err := c.ca.server("kube-apiserver", serverNames, c.serverAddrs())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	files := map[string][]byte{"ca.crt": c.ca.cert, "server.crt": server.cert, "server.key": server.key, "tokens.key": tokens}
	for name, content := range files {
		if err := os.WriteFile(c.path(name), content, 0o600); err != nil {
			return err
		}
	}
	for _, component := range []string{"kube-controller-manager", "kube-scheduler"} {
		if err := c.writeKubeconfig(c.path(component+".kubeconfig"), Kubeconfig{User: "system:" + component}); err != nil {
			return err
		}
	}
	return nil
}

var serverNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}

// serverAddrs are those at which clients know the API server.
func (c *ControlPlane) serverAddrs() []netip.Addr {
	addrs := append(c.addrs(), netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback())
	for _, cidr := range c.ServiceCIDRs() {
		addrs = append(addrs, cidr.Addr().Next()) // of the Service kubernetes
	}
	return addrs
}
