package kubeproxy

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/coreos/go-systemd/v22/journal"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
)

// ApplyLogging configures klog. It must be called before the other methods, and while no other
// goroutine logs.
func (p *Proxy) ApplyLogging() error {
	logs.InitLogs()
	config := &p.options.Config().Logging
	entries := config.Format == logsapi.DefaultLogFormat && !config.Options.Text.SplitStream // otherwise a write may have several entries
	return logsapi.ValidateAndApplyWithOptions(config, &logsapi.LoggingOptions{
		ErrorStream: plainLog{os.Stderr, entries, isJournal(journal.StderrIsJournalStream())},
		InfoStream:  plainLog{os.Stdout, entries, isJournal(journal.StdoutIsJournalStream())},
	}, utilfeature.DefaultFeatureGate)
}

// isJournal: what cannot be found out is not the journal.
func isJournal(is bool, err error) bool { return is && err == nil }

// plainLog writes a log in which no value can imitate a log entry. klog prints a value with line
// breaks unchanged, and such a value may come from an annotation that any user wrote: it may have
// control characters for a terminal, a line that looks like a log entry after journald has removed
// the leading white space, or the length of a whole object.
type plainLog struct {
	to io.Writer
	// entries: each write is one entry. Its lines after the first get a mark.
	entries bool
	// journal: systemd's journal reads it, to which each line has to tell its priority (sd-daemon(3)).
	journal bool
}

func (w plainLog) Write(text []byte) (int, error) {
	plain := isPlain(text)
	if plain && !w.journal {
		return w.to.Write(text)
	}
	written := string(text)
	if !plain {
		written = w.clean(written)
	}
	if w.journal {
		written = prioritized(written)
	}
	if _, err := io.WriteString(w.to, written); err != nil {
		return 0, err
	}
	return len(text), nil
}

// prioritized puts the priority of entries in front of each of their lines. klog's header begins with the severity; entries of
// other formats, and those of which several are written at once, are no worse than information.
func prioritized(text string) string {
	priority := journal.PriInfo
	switch text[:min(len(text), 1)] {
	case "W":
		priority = journal.PriWarning
	case "E":
		priority = journal.PriErr
	case "F":
		priority = journal.PriCrit
	}
	var lines strings.Builder
	for line := range strings.Lines(text) {
		fmt.Fprintf(&lines, "<%d>%s", priority, line)
	}
	return lines.String()
}

// maxLine is the longest line in bytes. journald splits a line of more than 48 KiB (LineMax= of
// journald.conf) at any place.
const maxLine = 40 << 10

// isPlain tells whether a text is a single short line of printable ASCII, as nearly all are.
func isPlain(text []byte) bool {
	if len(text) > maxLine {
		return false
	}
	for i, c := range text {
		if (c < ' ' || c >= 0x7f) && (c != '\n' || i < len(text)-1) {
			return false
		}
	}
	return true
}

func (w plainLog) clean(text string) string {
	const end, mark = " >", "\t| "
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == '\n' || r == '\t' {
			return r
		}
		return '?'
	}, text)
	if !w.entries {
		return text
	}
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if len(lines) > 0 && line != end {
			line = mark + strings.TrimPrefix(line, "\t")
		}
		lines = append(lines, cutLine(line))
	}
	return strings.Join(lines, "\n") + "\n"
}

func cutLine(line string) string {
	if len(line) <= maxLine {
		return line
	}
	return fmt.Sprintf("%s … and %d bytes more", strings.ToValidUTF8(line[:maxLine], ""), len(line)-maxLine)
}
