package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/openshift/origin-node/pkg/kubeproxy"
	"github.com/openshift/origin-node/pkg/nodeconfig"
)

const nodeLong = `Runs the node's service proxy: the Kubernetes proxier that proxyArguments in the node's
configuration selects, and egress SNAT: pods behind a Service with externalIPs leave the
cluster from the first of these.

On SIGTERM and SIGINT the process leaves its rules in the kernel and exits with status 0.
When the configuration has changed and is valid it exits with status 75 and has to be
started again. After an error it exits with status 1.`

// nodeOptions are the flags of start node.
type nodeOptions struct {
	config    string
	nodeName  string
	manifests string
	loglevel  string
	enable    []string
	disable   []string
	initOnly  bool
	cleanup   bool
	dryRun    bool
}

func newStartCommand() *cobra.Command {
	return group("start", "Start a component", newStartNodeCommand())
}

func newStartNodeCommand() *cobra.Command {
	var o nodeOptions
	c := &cobra.Command{
		Use:   "node --config=FILE",
		Short: "Run the node's service proxy",
		Long:  nodeLong,
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	f := c.Flags()
	f.StringVar(&o.config, "config", "", "The node's configuration file (kind NodeConfig, apiVersion v1). Required.")
	f.StringVar(&o.nodeName, "node-name", "", "The name of this node's Node object, instead of nodeName in the configuration: pods of a DaemonSet have one configuration.")
	f.StringVar(&o.manifests, "manifests", "", "A folder of YAML and JSON files that replaces the API server, with Services, EndpointSlices, Endpoints, Nodes, Namespaces, ServiceCIDRs and OpenShift's Network. The node follows changes in it. The configuration must not have masterKubeConfig.")
	f.StringVar(&o.loglevel, "loglevel", "", "Verbosity of the log, from 0 (the default) to 9. proxyArguments.v overrides it.")
	f.StringSliceVar(&o.enable, "enable", nil, "Components to run. The only one of this program is proxy.")
	f.StringSliceVar(&o.disable, "disable", nil, "Components not to run.")
	f.BoolVar(&o.initOnly, "init-only", false, "Apply the kernel settings that need more privileges than the node has, and exit: those of conntrack, and route_localnet for node ports on loopback.")
	f.BoolVar(&o.cleanup, "cleanup", false, "Remove every rule and chain of the proxy, of egress SNAT and of the tunnel's ports, and what steers packets; end connections that use an egress IP or go to the tunnel server; take the CNI plugin out of the list that the node has put it into; give back the node's blocks of source ports; end a drain; delete what the node has kept of keys, Nodes' addresses and pods, but not the journal of source ports; and exit.")
	f.BoolVar(&o.dryRun, "dry-run", false, "Print the rules of egress SNAT and of the tunnel's ports for the current objects, as input of iptables-restore or nft, and what steers packets to other nodes, as a shell script; change nothing, and exit. With --cleanup, print the files from which it would remove the CNI plugin.")
	c.MarkFlagsMutuallyExclusive("init-only", "cleanup")
	c.MarkFlagsMutuallyExclusive("init-only", "dry-run")
	return c
}

func (o *nodeOptions) run(c *cobra.Command) error {
	if o.config == "" {
		return errors.New("--config=FILE is required: name the node's configuration, for example --config=/etc/origin/node/node-config.yaml")
	}
	if err := checkComponents(o.enable, o.disable); err != nil {
		return err
	}
	if o.manifests != "" {
		folder, err := filepath.Abs(o.manifests)
		if err != nil {
			return fmt.Errorf("--manifests: %w", err)
		}
		o.manifests = folder
	}
	if !o.initOnly && !o.cleanup && !o.dryRun {
		return o.runUntilChanged(c.Context())
	}
	_, proxy, err := o.load()
	switch {
	case err != nil:
		return err
	case o.initOnly:
		return proxy.Init(c.Context())
	case o.cleanup && o.dryRun:
		return proxy.CleanupDryRun(c.OutOrStdout())
	case o.cleanup:
		return proxy.Cleanup(c.Context())
	}
	return proxy.DryRun(c.Context(), c.OutOrStdout(), c.ErrOrStderr())
}

// load reads the configuration and applies its log settings.
func (o *nodeOptions) load() (*nodeconfig.Config, *kubeproxy.Proxy, error) {
	config, err := o.read()
	if err != nil {
		return nil, nil, err
	}
	proxy, err := kubeproxy.New(config, kubeproxy.Overrides{LogLevel: o.loglevel, Manifests: o.manifests, Version: version, Cleanup: o.cleanup})
	if err != nil {
		return nil, nil, err
	}
	return config, proxy, proxy.ApplyLogging()
}

// read reads the configuration.
func (o *nodeOptions) read() (*nodeconfig.Config, error) {
	config, err := nodeconfig.Load(o.config)
	if err == nil && o.nodeName != "" {
		config.NodeConfig.NodeName = o.nodeName
	}
	return config, err
}

// newArgumentsTopic is a page of help, not a command.
func newArgumentsTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "proxy-arguments",
		Short: "Every argument of proxyArguments in node-config.yaml, with its default and meaning",
		Long:  kubeproxy.ArgumentsHelp(),
	}
}

// runUntilChanged runs the proxy until ctx ends or the configuration has changed and is
// valid; then it returns errConfigChanged.
func (o *nodeOptions) runUntilChanged(ctx context.Context) (failure error) {
	outliveLog()
	defer func() { tellFailure(ctx, failure) }()
	w, err := o.watch(ctx)
	if err != nil {
		return err
	}
	defer w.watcher.Close()
	config, proxy, err := o.load()
	if err != nil {
		return err
	}
	proxy.TellInvalidConfig(w.invalid.Load)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		if w.wait(ctx, func(ctx context.Context) error { return validateAnew(ctx, config.File, o.manifests) }) {
			stop(errConfigChanged)
		}
	}()
	if err := proxy.Run(ctx); err != nil {
		return err
	}
	if errors.Is(context.Cause(ctx), errConfigChanged) {
		klog.FromContext(ctx).Info("The configuration has changed and is valid; exiting to be restarted", "file", config.File, "exitStatus", ExitConfigChanged)
		return errConfigChanged
	}
	return nil
}

// tellFailure tells systemd, if it listens, why the node ends, unless its configuration has changed. While it waits to start a
// node again, 'systemctl status' shows this and nothing of the log.
func tellFailure(ctx context.Context, failure error) {
	if failure == nil || errors.Is(failure, errConfigChanged) {
		return
	}
	status := "STATUS=" + errorPrefix + strings.ReplaceAll(failure.Error(), "\n", "; ")
	if _, err := daemon.SdNotify(false, status); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot notify the service manager")
	}
}

// outliveLog keeps the process alive when the reader of its log has ended: Go ends a process that
// writes to a broken pipe as its standard output or error. Child processes are not affected.
func outliveLog() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// watch watches the files of the configuration, and the kubeconfig that kube-proxy's own file names. They are loaded for use after
// that, so that no change is missed in between.
func (o *nodeOptions) watch(ctx context.Context) (*configWatch, error) {
	config, err := nodeconfig.Load(o.config)
	if err != nil {
		return nil, err
	}
	files := config.Files()
	if kubeconfig := kubeconfigOf(config.Last("config", "")); kubeconfig != "" {
		files = append(files, kubeconfig)
	}
	return newConfigWatch(ctx, files, clock.RealClock{}), nil
}

// kubeconfigOf returns the absolute name of the kubeconfig that a configuration file of kube-proxy names, or "" if none can be read there.
func kubeconfigOf(file string) string {
	var proxy struct {
		ClientConnection struct{ Kubeconfig string }
	}
	text, err := os.ReadFile(file)
	if err != nil || yaml.Unmarshal(text, &proxy) != nil || proxy.ClientConnection.Kubeconfig == "" {
		return ""
	}
	name, _ := filepath.Abs(proxy.ClientConnection.Kubeconfig) // as kube-proxy opens it
	return name
}
