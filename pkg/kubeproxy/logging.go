package kubeproxy

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
)

// ApplyLogging sets klog up as the configuration says. It must be called before the other
// methods, and while no other goroutine may log.
func (p *Proxy) ApplyLogging() error {
	logs.InitLogs()
	config := &p.options.Config().Logging
	entries := config.Format == logsapi.DefaultLogFormat && !config.Options.Text.SplitStream // else a write may be several
	return logsapi.ValidateAndApplyWithOptions(config, &logsapi.LoggingOptions{
		ErrorStream: plainLog{os.Stderr, entries}, InfoStream: plainLog{os.Stdout, entries},
	}, utilfeature.DefaultFeatureGate)
}

// plainLog writes a log that says what it seems to say. klog prints a value with a line break
// as it is, and such a value may be an annotation that anybody wrote: with control
// characters for a terminal, or with a line that looks like an entry of the log once
// journald has removed the white space in front. And it may be as long as an object.
type plainLog struct {
	to io.Writer
	// entries: each write is one entry, whose further lines are marked as such.
	entries bool
}

func (w plainLog) Write(text []byte) (int, error) {
	if isPlain(text) {
		return w.to.Write(text)
	}
	if _, err := io.WriteString(w.to, w.clean(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// maxLine is how many bytes a line may have. journald makes several of a line of more than 48
// KiB (LineMax= of journald.conf), which begin anywhere.
const maxLine = 40 << 10

// isPlain tells whether a text is a line without anything special, as nearly all are.
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
