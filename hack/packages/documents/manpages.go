package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manPages returns a man page for each command, and for each topic of help, by name: openshift-egress-list.1. cobra's own
// generator takes the texts for Markdown, which they are not, and leaves out the topics.
func manPages(root *cobra.Command, version string, date time.Time) map[string][]byte {
	pages := map[string][]byte{}
	for _, c := range documented(root) {
		name, section := pageOf(c)
		p := &page{}
		p.printf(".TH %s %s %s %s %s\n", quoted(strings.ToUpper(name)), section, date.Format(time.DateOnly),
			quoted("origin-node "+version), quoted("OpenShift node"))
		p.describe(c, name)
		pages[name+"."+section] = p.Bytes()
	}
	return pages
}

// documented are a command and all below it, without hidden ones.
func documented(c *cobra.Command) []*cobra.Command {
	commands := []*cobra.Command{c}
	for _, child := range children(c) {
		commands = append(commands, documented(child)...)
	}
	return commands
}

func children(c *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(c.Commands()), func(child *cobra.Command) bool {
		return !child.IsAvailableCommand() && !child.IsAdditionalHelpTopicCommand()
	})
}

// pageOf is the name of a command's page and its section: 1, or 5 for a topic, which explains a file (man-pages(7)).
func pageOf(c *cobra.Command) (name, section string) {
	name, section = strings.ReplaceAll(c.CommandPath(), " ", "-"), "1"
	if c.IsAdditionalHelpTopicCommand() {
		section = "5"
	}
	return name, section
}

// page is a man page, in the language of man(7).
type page struct{ bytes.Buffer }

func (p *page) printf(format string, args ...any) { fmt.Fprintf(&p.Buffer, format, args...) }

func (p *page) describe(c *cobra.Command, name string) {
	p.printf(".SH NAME\n%s \\- %s\n", escaped(name), escaped(c.Short))
	if c.Runnable() {
		p.printf(".SH SYNOPSIS\n%s\n", escaped(c.UseLine()))
	}
	if c.Long != "" {
		p.printf(".SH DESCRIPTION\n")
		p.text(c.Long)
	}
	p.options("OPTIONS", c.NonInheritedFlags())
	p.options("OPTIONS OF ALL COMMANDS OF THE GROUP", c.InheritedFlags())
	if c.Example != "" {
		p.printf(".SH EXAMPLES\n")
		p.verbatim(c.Example)
	}
	var related []*cobra.Command
	if c.HasParent() {
		related = append(related, c.Parent())
	}
	related = append(related, children(c)...)
	if len(related) > 0 {
		p.printf(".SH SEE ALSO\n")
	}
	for _, other := range related {
		name, section := pageOf(other)
		p.printf(".TP\n.BR %s (%s)\n%s\n", escaped(name), section, escaped(other.Short))
	}
}

// text writes paragraphs. One with indented lines keeps its layout.
func (p *page) text(text string) {
	for paragraph := range strings.SplitSeq(strings.Trim(text, "\n"), "\n\n") {
		p.printf(".PP\n")
		if strings.HasPrefix(paragraph, " ") || strings.Contains(paragraph, "\n ") {
			p.verbatim(paragraph)
		} else {
			p.printf("%s\n", escaped(paragraph))
		}
	}
}

func (p *page) verbatim(text string) {
	p.printf(".nf\n%s\n.fi\n", escaped(strings.Trim(text, "\n")))
}

func (p *page) options(heading string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	p.printf(".SH %s\n", heading)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		option := "--" + f.Name
		if f.Shorthand != "" {
			option = "-" + f.Shorthand + ", " + option
		}
		p.printf(".TP\n\\fB%s\\fP", escaped(option))
		if value != "" {
			p.printf(" \\fI%s\\fP", escaped(value))
		}
		p.printf("\n%s\n", escaped(usage))
		if !slices.Contains([]string{"", "false", "[]", "0", "0s"}, f.DefValue) {
			p.printf("The default is %s.\n", escaped(f.DefValue))
		}
	})
}

// glyphs are the characters that groff would replace, or understand as its own (groff_char(7)).
var glyphs = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`)

// escaped is text that is to be read as it is. A full stop at the beginning of a line would make a request of it.
func escaped(text string) string {
	lines := strings.Split(glyphs.Replace(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// quoted is a single argument of a request.
func quoted(text string) string { return `"` + strings.ReplaceAll(escaped(text), `"`, `\(dq`) + `"` }
