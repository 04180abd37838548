package kubeproxy

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2/textlogger"
)

// TestPlainLog_Values: no value has a line that looks like an entry, even without the leading white
// space, or a character that controls a terminal.
func TestPlainLog_Values(t *testing.T) {
	for name, test := range map[string]struct{ value, want string }{
		"plain":   {"shop/web", `"message" key="shop/web"` + "\n"},
		"unicode": {"é\x1b", `"message" key="é\x1b"` + "\n"},
		"rules":   {"*nat\nCOMMIT\n", "\"message\" key=<\n\t| *nat\n\t| COMMIT\n >\n"},
		"forged":  {"x\nI0101 00:00:00.000000 1 a.go:1] \"all is well\"\r\n\n\t >", "\"message\" key=<\n\t| x\n\t| I0101 00:00:00.000000 1 a.go:1] \"all is well\"?\n\t| \n\t| \t >\n >\n"},
		"control": {"\x1b[2J\n\u009b31m\x00\x7f\u202e\xff", "\"message\" key=<\n\t| ?[2J\n\t| ?31m???\ufffd\n >\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(plainLog{&log, true, false}))).Info("message", "key", test.value)
			_, entry, _ := strings.Cut(log.String(), "] ") // behind time, process and line
			if diff := cmp.Diff(test.want, entry); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestPlainLog_LongLines: journald would split them.
func TestPlainLog_LongLines(t *testing.T) {
	for _, value := range []string{strings.Repeat("é", maxLine), "x\n" + strings.Repeat("é", maxLine)} {
		var log strings.Builder
		textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(plainLog{&log, true, false}))).Info("message", "key", value)
		lines := strings.Split(strings.TrimSuffix(strings.TrimSuffix(log.String(), "\n"), "\n >"), "\n")
		last := lines[len(lines)-1]
		if len(last) > maxLine+40 || !utf8.ValidString(last) || !strings.HasSuffix(last, " bytes more") {
			t.Errorf("a line of %d bytes, which ends with %q", len(last), last[len(last)-30:])
		}
	}
}

func TestPlainLog_SeveralEntriesInAWrite(t *testing.T) {
	const text = "I0101 one\nI0101 two\x1b\n"
	var log strings.Builder
	n, err := plainLog{&log, false, false}.Write([]byte(text))
	if want := "I0101 one\nI0101 two?\n"; log.String() != want || n != len(text) || err != nil {
		t.Errorf("got %q, %d, %v; want %q, %d", log.String(), n, err, want, len(text))
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

var errBroken = errors.New("no space left on device")

func TestPlainLog_WriteFails(t *testing.T) {
	for _, text := range []string{"plain\n", "\x1b\n"} {
		for _, journal := range []bool{false, true} {
			if n, err := (plainLog{broken{}, true, journal}).Write([]byte(text)); n != 0 || !errors.Is(err, errBroken) {
				t.Errorf("%q, to the journal %v: got %d, %v; want 0, %v", text, journal, n, err, errBroken)
			}
		}
	}
}

// TestPlainLog_JournalIsToldPriorities: of each line, because each is an entry of its own there.
func TestPlainLog_JournalIsToldPriorities(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"info":        {"I0101 message\n", "<6>I0101 message\n"},
		"warning":     {"W0101 message\n", "<4>W0101 message\n"},
		"error":       {"E0101 message key=<\n\tone\n\t<0>two\n >\n", "<3>E0101 message key=<\n<3>\t| one\n<3>\t| <0>two\n<3> >\n"},
		"fatal":       {"F0101 message\n", "<2>F0101 message\n"},
		"JSON":        {`{"msg":"message"}` + "\n", `<6>{"msg":"message"}` + "\n"},
		"no line end": {"I0101 message", "<6>I0101 message"},
		"nothing":     {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			n, err := plainLog{&log, true, true}.Write([]byte(test.text))
			if diff := cmp.Diff(test.want, log.String()); diff != "" || n != len(test.text) || err != nil {
				t.Errorf("%d bytes of %d, %v; (-want +got):\n%s", n, len(test.text), err, diff)
			}
		})
	}
}
