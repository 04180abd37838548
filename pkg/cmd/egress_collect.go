package cmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubernetes/pkg/cluster/ports"
	proxyutil "k8s.io/kubernetes/pkg/proxy/util"

	"github.com/openshift/origin-node/pkg/bugreport"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/nodeconfig"
)

const egressCollectLong = `Writes one tar.gz for a bug report, with mode 0600: what the other egress commands show, the plan, rules,
routes and links of the kernel, the nodes' Leases, metrics and counters of the conntrack table, the configuration, the
log of the last hour, and versions. It asks each program for at most 20 seconds. It changes nothing itself. Once the
rules have been read, the node repairs what is wrong with them.

Secrets are removed: keys, tokens, passwords, the users of a kubeconfig, the lines of egress-snat-key-file,
and the values of environment variables that are not known to be harmless. The archive does contain names and
addresses of Services, pods and nodes: look at it before you pass it on.

Standard error and the archive's errors.txt name what could not be collected. The exit status is 0 if the
archive was written, even if something is missing.`

const egressCollectExample = `  sudo openshift egress collect --directory=/tmp`

const (
	// defaultConfig is where 'make install' and the packages put a node's configuration.
	defaultConfig = "/etc/origin/node/node-config.yaml"
	// defaultEnvironment is the unit's EnvironmentFile.
	defaultEnvironment = "/etc/sysconfig/origin-node"
	// defaultMetrics is kube-proxy's default of metrics-bind-address.
	defaultMetrics = "127.0.0.1:10249"
)

// harmlessVariables are those of the environment whose values are no secrets.
var harmlessVariables = []string{"CONFIG_FILE", "GODEBUG", "GOGC", "GOMAXPROCS", "GOMEMLIMIT", "HOME", "KUBECONFIG", "LANG", "NO_PROXY", "OPTIONS", "PATH", "no_proxy"}

type collectOptions struct {
	*egressOptions
	directory string

	blank bugreport.Blanker
	// node is the configuration; nil if it cannot be read.
	node *nodeconfig.Config
}

func newEgressCollectCommand(common *egressOptions) *cobra.Command {
	o := &collectOptions{egressOptions: common}
	c := plain("collect", "Write an archive for a bug report", egressCollectLong, egressCollectExample, o.run)
	// A configuration that is not valid is a reason to collect.
	c.PersistentPreRunE = func(*cobra.Command, []string) error { return nil }
	c.Flags().StringVar(&o.directory, "directory", ".", "The folder in which the archive is written.")
	if err := c.MarkFlagDirname("directory"); err != nil {
		panic(err) // the flag does not exist
	}
	return c
}

func (o *collectOptions) run(c *cobra.Command) error {
	if !c.Flags().Changed("config") {
		o.config = defaultConfig
	}
	parts := o.parts(c.Flags().Changed("socket"))
	path := filepath.Join(o.directory, fmt.Sprintf("origin-node-%s-%s.tar.gz", o.name(), time.Now().UTC().Format("20060102T150405Z")))
	err := bugreport.Write(c.Context(), path, &o.blank, parts, func(name string, err error) {
		_ = printLines(c.ErrOrStderr(), "", strings.Split(fmt.Sprintf("not collected, or not all of it: %s: %v", name, err), "\n"))
	})
	if err == nil {
		_, err = fmt.Fprintln(c.OutOrStdout(), path)
	}
	return err
}

// name returns that of this node, for a file.
func (o *collectOptions) name() string {
	name, _ := os.Hostname()
	if o.node != nil && o.node.NodeConfig.NodeName != "" {
		name = o.node.NodeConfig.NodeName
	}
	return strings.Map(func(r rune) rune {
		if r == '/' || r < ' ' {
			return '_'
		}
		return r
	}, name)
}

// parts returns what the archive has. The configuration comes first: its secrets are removed from all that follows.
func (o *collectOptions) parts(keepSocket bool) []bugreport.Part {
	config := o.readNode(keepSocket)
	return slices.Concat(
		[]bugreport.Part{config, o.kubeconfig(), {Name: "environment.txt", Make: o.environment}},
		[]bugreport.Part{
			{Name: "versions.txt", Make: versions},
			bugreport.Programs("programs.txt", []string{"uname", "-a"}, []string{"iptables", "--version"}, []string{"nft", "--version"}, []string{"ip", "-Version"}),
			bugreport.File("os-release.txt", "/etc/os-release"),
		},
		kernelParts(), o.status(), // which has the node repair what it finds in the kernel
		[]bugreport.Part{
			{Name: "leases.json", Make: o.leases},
			{Name: "metrics.txt", Make: o.metrics},
			bugreport.Program("log.txt", "journalctl", "--unit=origin-node", "--since=-1h", "--output=short-iso-precise", "--no-pager"),
		},
	)
}

// readNode reads the node's configuration, and the secrets of the files that it names.
func (o *collectOptions) readNode(keepSocket bool) bugreport.Part {
	node, err := nodeconfig.Load(o.config)
	if err == nil {
		o.node = node
		for _, file := range node.Values("egress-snat-key-file") {
			o.blank.LearnFile(file)
		}
		if !keepSocket {
			o.socket = node.Last("egress-snat-socket", o.socket)
		}
	}
	return bugreport.Part{Name: "node-config.yaml", Make: func(context.Context) ([]byte, error) {
		text, readErr := os.ReadFile(o.config)
		if readErr != nil {
			return nil, readErr
		}
		blanked, yamlErr := o.blank.YAML(text)
		return blanked, errors.Join(err, yamlErr)
	}}
}

// kubeconfigFile returns the file by which the node reaches its API server; empty if it is not known.
func (o *collectOptions) kubeconfigFile() string {
	if o.node == nil {
		return ""
	}
	return o.node.Last("kubeconfig", o.node.NodeConfig.MasterKubeConfig)
}

// kubeconfig is the part with the node's kubeconfig, of whose users nothing is left.
func (o *collectOptions) kubeconfig() bugreport.Part {
	file := o.kubeconfigFile()
	if config, err := clientcmd.LoadFromFile(file); err == nil {
		_ = clientcmd.ResolveLocalPaths(config) // files that are not found have no secrets
		for _, user := range config.AuthInfos {
			o.blank.Learn(user.Token, user.Password, string(user.ClientKeyData))
			o.blank.LearnFile(user.TokenFile)
			o.blank.LearnFile(user.ClientKey)
		}
	}
	return bugreport.Part{Name: "kubeconfig.yaml", Make: func(context.Context) ([]byte, error) {
		if file == "" {
			return nil, errors.New("the node's configuration names none, or cannot be read")
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		return o.blank.YAML(text, "users")
	}}
}

// environment returns the variables of this process, and those of the unit.
func (o *collectOptions) environment(context.Context) ([]byte, error) {
	text, err := os.ReadFile(defaultEnvironment)
	unit := variablesIn(string(text))
	if errors.Is(err, os.ErrNotExist) {
		err = nil // not every node has the unit
	}
	return slices.Concat([]byte("# "+defaultEnvironment+"\n"), o.blank.Environment(unit, harmlessVariables...),
		[]byte("\n# this command's\n"), o.blank.Environment(os.Environ(), harmlessVariables...)), err
}

// variablesIn returns the variables of an EnvironmentFile, each with the lines that it goes on in: in quotes, or behind a backslash
// (systemd.exec(5)).
func variablesIn(text string) (variables []string) {
	open := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case open:
			variables[len(variables)-1] += "\n" + line
		case line == "" || line[0] == '#' || line[0] == ';':
			continue
		default:
			variables = append(variables, line)
		}
		open = goesOn(variables[len(variables)-1])
	}
	return variables
}

// goesOn tells whether the next line belongs to a variable. A quote is one at the beginning of the value, or behind another one.
func goesOn(variable string) bool {
	_, value, _ := strings.Cut(variable, "=")
	quote, escaped, begins := rune(0), false, true
	for _, r := range value {
		switch {
		case escaped:
			escaped, begins = false, false
		case r == '\\' && quote != '\'':
			escaped = true
		case quote != 0 && r == quote:
			quote, begins = 0, true
		case quote == 0 && begins && (r == '"' || r == '\''):
			quote = r
		case quote == 0 && r != ' ' && r != '\t':
			begins = false
		}
	}
	return quote != 0 || escaped
}

func versions(ctx context.Context) ([]byte, error) {
	var out bytes.Buffer
	c := newVersionCommand()
	c.SetOut(&out)
	c.SetArgs([]string{})
	err := c.ExecuteContext(ctx)
	return out.Bytes(), err
}

// status are the parts that the node tells on its socket.
func (o *collectOptions) status() []bugreport.Part {
	shown := func(name string, arguments ...string) bugreport.Part {
		return bugreport.Part{Name: name, Make: func(ctx context.Context) ([]byte, error) { return o.shown(ctx, arguments...) }}
	}
	return []bugreport.Part{
		{Name: "status.json", Make: func(ctx context.Context) ([]byte, error) {
			snapshot, err := o.client().Snapshot(ctx)
			if err != nil {
				return nil, err
			}
			return json.MarshalIndent(snapshot, "", " ")
		}},
		shown("list.txt", "list", "--all", "--output=wide"), shown("refused.txt", "refused", "--all", "--output=wide"),
		shown("addresses.txt", "addresses", "--output=wide"), shown("verify.txt", "verify"),
		{Name: "pool.json", Make: o.pool},
		shown("usage.txt", "top", "--batch", "--count=2"),
	}
}

// shown returns what an egress command prints, warnings included.
func (o *collectOptions) shown(ctx context.Context, arguments ...string) ([]byte, error) {
	var out bytes.Buffer
	c := newEgressCommand()
	c.SetOut(&out)
	c.SetErr(&out)
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(append(arguments, "--socket="+o.socket))
	err := c.ExecuteContext(ctx)
	return out.Bytes(), err
}

// pool returns how the pool stands; nothing where there is none.
func (o *collectOptions) pool(ctx context.Context) ([]byte, error) {
	if o.node != nil && len(o.node.Values("egress-snat-assign-cidrs")) == 0 {
		return nil, nil
	}
	pool, err := o.client().Pool(ctx)
	if err != nil {
		return nil, err
	}
	return json.MarshalIndent(pool, "", " ")
}

// kernelParts are what the kernel has.
func kernelParts() []bugreport.Part {
	return []bugreport.Part{
		bugreport.Programs("iptables.txt", []string{"iptables-save", "-c"}, []string{"ip6tables-save", "-c"}),
		{Name: "nftables.txt", Make: nftTables},
		bugreport.Programs("routes.txt", []string{"ip", "rule"}, []string{"ip", "-6", "rule"}, []string{"ip", "route", "show", "table", "all"}, []string{"ip", "-6", "route", "show", "table", "all"}),
		bugreport.Programs("links.txt", []string{"ip", "-d", "-s", "link"}, []string{"ip", "addr"}, []string{"ip", "neigh"}, []string{"ip", "-6", "neigh"}, []string{"cat", "/proc/net/igmp6"}, []string{"bridge", "fdb"}),
		{Name: "conntrack.txt", Make: counters},
	}
}

// nftTables lists this program's tables of nftables.
func nftTables(ctx context.Context) ([]byte, error) {
	list, err := bugreport.Output(ctx, "nft", "list", "tables")
	var all bytes.Buffer
	for line := range strings.Lines(string(list)) {
		if words := strings.Fields(line); len(words) == 3 && strings.HasPrefix(words[2], "openshift-") {
			table, tableErr := bugreport.Output(ctx, "nft", "list", "table", words[1], words[2])
			all.Write(table)
			err = errors.Join(err, tableErr)
		}
	}
	return all.Bytes(), err
}

// counters returns those of the conntrack table, and sysctls that it depends on.
func counters(context.Context) ([]byte, error) {
	var all bytes.Buffer
	files, err := filepath.Glob("/proc/sys/net/netfilter/nf_conntrack_*")
	for _, file := range append(files, "/proc/net/stat/nf_conntrack") {
		content, readErr := os.ReadFile(file)
		if errors.Is(readErr, os.ErrPermission) {
			continue // sysctls that can only be written
		}
		fmt.Fprintf(&all, "# %s\n%s", file, content)
		err = errors.Join(err, readErr)
	}
	return all.Bytes(), err
}

// leases returns those in which nodes announce their egress IPs.
func (o *collectOptions) leases(ctx context.Context) ([]byte, error) {
	file, master := o.kubeconfigFile(), ""
	if o.node != nil {
		master = o.node.Last("master", "")
	}
	if file == "" && master == "" {
		return nil, errors.New("the node's configuration names no kubeconfig, or cannot be read")
	}
	config, err := clientcmd.BuildConfigFromFlags(master, file)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	list, err := client.CoordinationV1().Leases(o.node.Last("egress-snat-lease-namespace", holders.DefaultNamespace)).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		list.Items[i].ManagedFields = nil
	}
	return json.MarshalIndent(list, "", " ")
}

// metricsAddress returns where the node serves metrics, as kube-proxy reads its arguments; empty if it serves none.
func (o *collectOptions) metricsAddress() (string, error) {
	if o.node == nil {
		return defaultMetrics, nil
	}
	port, err := strconv.ParseInt(o.node.Last("metrics-port", strconv.Itoa(ports.ProxyStatusPort)), 0, 32)
	if err != nil {
		return "", fmt.Errorf("proxyArguments.metrics-port: %w", err)
	}
	if port == 0 {
		return "", nil
	}
	return proxyutil.AppendPortIfNeeded(cmp.Or(o.node.Last("metrics-bind-address", ""), defaultMetrics), int32(port)), nil
}

// metrics returns those that the node serves.
func (o *collectOptions) metrics(ctx context.Context) ([]byte, error) {
	address, err := o.metricsAddress()
	if err != nil || address == "" {
		return nil, cmp.Or(err, errors.New("the node's configuration switches them off"))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}
