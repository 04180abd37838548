package kubeproxy

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/openshift/origin-node/pkg/nodeconfig"
)

const argumentsIntro = `proxyArguments in node-config.yaml takes the flags of kube-proxy, without the dashes, and the
arguments of this project, which come first here. Each has a list of values:

  proxyArguments:
    cluster-cidr: ["10.128.0.0/14", "fd01::/48"]
    egress-snat-protocols: ["all"]

The values are set in order: an argument with a single value keeps the last one, a list grows. An
argument overrides the other fields of node-config.yaml, which override the defaults. The defaults
here are those of a node, as OpenShift has always set them, and differ in part from kube-proxy's.

Give all nodes the same egress-snat arguments: each node decides for itself, by its own.
`

const (
	ownHeading       = "\nArguments of this project\n"
	kubeProxyHeading = "\nArguments of kube-proxy\n"
)

// Texts in place of kube-proxy's, for arguments that do more here.
var usages = map[string]string{
	clusterCIDRKey: "The networks of the cluster's pods, as many as there are, of both IP families. Packets to all of them are never SNATed, and only pods in them are. " +
		"kube-proxy itself gets the first of each IP family, for --detect-local-mode=ClusterCIDR. " +
		"If it is not set, egress SNAT takes those of OpenShift's Network.config.openshift.io/cluster, and the log says so; an IP family without any has no egress SNAT.",
	"config": "kube-proxy's own configuration file. It replaces most other arguments of kube-proxy, and masterKubeConfig if it names a kubeconfig. If cluster-cidr is not set its clusterCIDR is used.",
}

// ArgumentsHelp returns the page that has every proxyArgument, with its default and meaning.
func ArgumentsHelp() string {
	config := nodeconfig.Default()
	a, err := setArguments(config)
	if err != nil {
		panic(err) // the defaults do not fit the flags: a bug that any test finds
	}
	fields := map[string]string{}
	for _, field := range nodeFields(config) {
		fields[field.flag] = field.path
	}
	var page strings.Builder
	page.WriteString(argumentsIntro + ownHeading)
	a.own.VisitAll(func(f *pflag.Flag) { describe(&page, f, "") })
	page.WriteString(kubeProxyHeading)
	a.flags.VisitAll(func(f *pflag.Flag) {
		if a.own.Lookup(f.Name) == nil {
			describe(&page, f, fields[f.Name])
		}
	})
	return page.String()
}

// describe writes the entry of an argument. field is the field of the NodeConfig that sets it as
// well, if there is one.
func describe(page *strings.Builder, f *pflag.Flag, field string) {
	kind, usage := pflag.UnquoteUsage(f)
	if kind == "" {
		kind = "bool"
	}
	value := f.Value.String()
	if list, ok := f.Value.(pflag.SliceValue); ok {
		value = strings.Join(list.GetSlice(), ",")
	}
	fmt.Fprintf(page, "\n  %s %s", f.Name, kind)
	if value != "" {
		fmt.Fprintf(page, " (default %s)", value)
	}
	page.WriteString("\n")
	if text, ok := usages[f.Name]; ok {
		usage = text
	}
	if instead, ends := endings[f.Name]; ends {
		usage = "Refused, because it would end the node: " + instead + "."
	}
	if field != "" {
		usage += " The field " + field + " sets it as well."
	}
	if f.Deprecated != "" {
		usage += " Deprecated: " + f.Deprecated + "."
	}
	const indent, width = "      ", 90
	for line := range strings.SplitSeq(usage, "\n") {
		writeWrapped(page, indent, line, width)
	}
}

// writeWrapped writes a text in lines of at most width runes, as far as words allow it.
func writeWrapped(out *strings.Builder, indent, text string, width int) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			out.WriteString(indent + line + "\n")
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	out.WriteString(indent + line + "\n")
}
