package nft

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/nftables/expr"

	"github.com/openshift/origin-node/pkg/kernel"
)

// words are a rule's text that is still to be read, and the rule's expressions up to there.
type words struct {
	language
	left  []string
	exprs []expr.Any
	// changes is where the first expression is that changes something of the packet; -1 if none does yet.
	changes int
	// unsaid: nft has no words for what the rule does.
	unsaid bool
	// asked has the dependencies that the rule has asked for: a TCP port, for example, takes a packet of TCP. They are asked for once.
	asked map[string]bool
}

// errUnread is what reading a rule panics with, which Rule returns as an error: a text that is wrong is a fault of the program.
type errUnread struct{ error }

func (w *words) fail(format string, arguments ...any) {
	panic(errUnread{fmt.Errorf(format, arguments...)})
}

// split returns the words of a text. Parentheses are words of their own, but in a name between quotation marks.
func split(text string) (all []string) {
	for _, word := range strings.Fields(text) {
		if strings.HasPrefix(word, `"`) {
			all = append(all, word)
		} else {
			all = append(all, strings.Fields(parentheses.Replace(word))...)
		}
	}
	return all
}

var parentheses = strings.NewReplacer("(", " ( ", ")", " ) ")

// ofFamily returns a text in which IP and ICMP are those of an IP family.
func ofFamily(text string, family kernel.Family) string {
	all := strings.Fields(text)
	for i, word := range all {
		if names, is := ipWords[word]; is {
			all[i] = names[family]
		}
	}
	return strings.Join(all, " ")
}

var ipWords = map[string]map[kernel.Family]string{
	"IP": {kernel.IPv4: "ip", kernel.IPv6: "ip6"}, "ICMP": {kernel.IPv4: "icmp", kernel.IPv6: "icmpv6"},
}

// next takes a word.
func (w *words) next() string {
	if len(w.left) == 0 {
		w.fail("the text ends too early")
	}
	word := w.left[0]
	w.left = w.left[1:]
	return word
}

// peek is the next word; none if there is none.
func (w *words) peek() string {
	if len(w.left) == 0 {
		return ""
	}
	return w.left[0]
}

// take takes these words if they are next.
func (w *words) take(these ...string) bool {
	if len(w.left) < len(these) || !slices.Equal(w.left[:len(these)], these) {
		return false
	}
	w.left = w.left[len(these):]
	return true
}

// expect takes these words, which have to be next.
func (w *words) expect(these ...string) {
	if !w.take(these...) {
		w.fail("%q is expected before %q", strings.Join(these, " "), strings.Join(w.left, " "))
	}
}

func (w *words) add(exprs ...expr.Any) { w.exprs = append(w.exprs, exprs...) }
