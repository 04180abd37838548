package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/openshift/origin-node/pkg/cmd"
)

// TestManPages_OfACommandLine: what groff would change is escaped, indented text keeps its layout, hidden commands have no page.
func TestManPages_OfACommandLine(t *testing.T) {
	pflag.CommandLine = pflag.NewFlagSet("", pflag.ContinueOnError) // kube-proxy's packages add flags to every command line
	run := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "tool", Short: "Does it"}
	list := &cobra.Command{
		Use: "list NAME", Short: "List 'it'", Run: run, Example: "  tool list ~",
		Long: "The first paragraph\n.is plain: a\\b.\n\nTo see:\n    tool  list x",
	}
	list.Flags().StringP("output", "o", "table", "The `FORMAT`.")
	list.Flags().Bool("all", false, "Everything.")
	list.Flags().Bool("debug", false, "")
	if err := list.Flags().MarkHidden("debug"); err != nil {
		t.Fatal(err)
	}
	root.PersistentFlags().String("config-file", "", "The configuration.")
	root.AddCommand(list, &cobra.Command{Use: "secret", Hidden: true, Run: run}, &cobra.Command{Use: "topic", Short: "Explains", Long: "Words."})

	got := map[string]string{}
	for name, page := range manPages(root, "1.0~2", time.Unix(0, 0).UTC()) {
		got[name] = string(page)
	}
	want := map[string]string{
		"tool.1": `.TH "TOOL" 1 1970-01-01 "origin\-node 1.0\(ti2" "OpenShift node"
.SH NAME
tool \- Does it
.SH OPTIONS
.TP
\fB\-\-config\-file\fP \fIstring\fP
The configuration.
.SH SEE ALSO
.TP
.BR tool\-list (1)
List \(aqit\(aq
.TP
.BR tool\-topic (5)
Explains
`,
		"tool-list.1": `.TH "TOOL\-LIST" 1 1970-01-01 "origin\-node 1.0\(ti2" "OpenShift node"
.SH NAME
tool\-list \- List \(aqit\(aq
.SH SYNOPSIS
tool list NAME [flags]
.SH DESCRIPTION
.PP
The first paragraph
\&.is plain: a\eb.
.PP
.nf
To see:
    tool  list x
.fi
.SH OPTIONS
.TP
\fB\-\-all\fP
Everything.
.TP
\fB\-o, \-\-output\fP \fIFORMAT\fP
The FORMAT.
The default is table.
.SH OPTIONS OF ALL COMMANDS OF THE GROUP
.TP
\fB\-\-config\-file\fP \fIstring\fP
The configuration.
.SH EXAMPLES
.nf
  tool list \(ti
.fi
.SH SEE ALSO
.TP
.BR tool (1)
Does it
`,
		"tool-topic.5": `.TH "TOOL\-TOPIC" 5 1970-01-01 "origin\-node 1.0\(ti2" "OpenShift node"
.SH NAME
tool\-topic \- Explains
.SH DESCRIPTION
.PP
Words.
.SH OPTIONS OF ALL COMMANDS OF THE GROUP
.TP
\fB\-\-config\-file\fP \fIstring\fP
The configuration.
.SH SEE ALSO
.TP
.BR tool (1)
Does it
`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestManPages_OfOpenshift: the commands and flags of the node are in them.
func TestManPages_OfOpenshift(t *testing.T) {
	pages := manPages(cmd.Commands(), "1.0", time.Unix(0, 0))
	for name, text := range map[string]string{
		"openshift-start-node.1": `\fB\-\-cleanup\fP`, "openshift-egress-explain.1": `\fB\-\-socket\fP`, "openshift-proxy-arguments.5": `egress\-snat\-scope`,
	} {
		if !strings.Contains(string(pages[name]), text) {
			t.Errorf("%s lacks %q:\n%s", name, text, pages[name])
		}
	}
}
