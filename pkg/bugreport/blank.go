package bugreport

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// removed stands where a secret was.
const removed = "(removed)"

// leastSecret is how many bytes a secret has that is looked for everywhere. Shorter ones would be found in other words.
const leastSecret = 6

// secretName matches the names of values that are secrets.
const secretName = `(?:token|passw(?:or)?d|passphrase|secret|credential|api[_-]?key|private[_-]?key|access[_-]?key|auth[_-]?key|(?:client-)?key-data|cookie)`

// beforeAt matches what stands before the last @ of a word; a quote in it is escaped.
const beforeAt = `((?:\\.|[^\s"'\\])+)@`

var (
	isSecretName = regexp.MustCompile(`(?i)` + secretName)
	// Looks are what a secret looks like, and what stands in its place.
	looks = []struct {
		like *regexp.Regexp
		by   string
	}{
		{regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`), removed},
		{regexp.MustCompile(`eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]*`), removed}, // a JSON web token
		{regexp.MustCompile(`(?i)\b((?:bearer|authorization:? *basic) +)[^\s"']+`), "${1}" + removed},
		{urlUser, "${1}" + removed + "@"},
		{regexp.MustCompile(`(?i)((?:http|https|ftp|all|socks5?)_?proxy\\?["']? *[:=] *\\?["']?(?:[a-z0-9]+://)?)` + beforeAt), "${1}" + removed + "@"}, // without a scheme
		{regexp.MustCompile(`(?i)(--[a-z0-9-]*` + secretName + `[a-z0-9-]* +)[^\s"']+`), "${1}" + removed},
		{regexp.MustCompile(`(?i)([a-z0-9_.-]*` + secretName + `[a-z0-9_.-]*\\?["']? *[:=] *)(?:\\?"[^"\n]*"|'[^'\n]*'|[^\s,;}\]"']+)`), "${1}" + removed},
	}
	// urlUser is a URL's user and password, up to the last @: nobody has to escape those in a password, and it may have slashes. A
	// URL with an @ in its path loses more than that.
	urlUser = regexp.MustCompile(`(://)` + beforeAt)
	// keyLike is a value that may be a key: no word of a configuration is as long.
	keyLike = regexp.MustCompile(`[A-Za-z0-9+/_-]{32,}={0,2}`)
	// blockEdge is a line that begins or ends a key in PEM.
	blockEdge = regexp.MustCompile(`^-----(?:BEGIN|END) [A-Z0-9 ]+-----$`)
)

// Blanker removes secrets. It is for one goroutine at a time.
type Blanker struct{ known map[string]bool }

// Learn notes secrets that are removed wherever they are. Each line of one counts by itself, but for those that begin and end a key: by these
// [Blanker.Text] finds other keys.
func (b *Blanker) Learn(secrets ...string) {
	if b.known == nil {
		b.known = map[string]bool{}
	}
	for _, secret := range secrets {
		for line := range strings.Lines(secret) {
			if line = strings.TrimSpace(line); len(line) >= leastSecret && !blockEdge.MatchString(line) {
				b.known[line] = true
			}
		}
	}
}

// LearnFile is Learn for the content of a file. It is no error if there is none.
func (b *Blanker) LearnFile(path string) {
	if content, err := os.ReadFile(path); err == nil {
		b.Learn(string(content))
	}
}

// Text returns text without the secrets that are known, and without what looks like one.
func (b *Blanker) Text(text []byte) []byte {
	longestFirst := slices.SortedFunc(maps.Keys(b.known), func(x, y string) int { return cmp.Or(cmp.Compare(len(y), len(x)), cmp.Compare(x, y)) })
	for _, secret := range longestFirst {
		text = bytes.ReplaceAll(text, []byte(secret), []byte(removed))
	}
	for _, look := range looks {
		text = look.like.ReplaceAll(text, []byte(look.by))
	}
	return text
}

// YAML returns a document without the values of keys that name secrets, without all values below the keys in whole, and
// without values that look like keys. What it removes, it learns. It is an error if the text is no YAML: then
// nothing of it is returned.
func (b *Blanker) YAML(text []byte, whole ...string) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("it is left out, because it is no YAML in which secrets could be found: %w", err)
	}
	b.blank(&document, keeps, whole)
	var result bytes.Buffer
	encoder := yaml.NewEncoder(&result)
	encoder.SetIndent(2)
	if err := encoder.Encode(&document); err != nil {
		return nil, err
	}
	return result.Bytes(), nil
}

// What becomes of a value.
type fate int

const (
	// keeps: it stays, unless it looks like a key.
	keeps fate = iota
	// blanked: it goes, but may stay elsewhere: it need not be a secret.
	blanked
	// secret: it goes everywhere.
	secret
)

// blank removes secrets below a node.
func (b *Blanker) blank(node *yaml.Node, what fate, whole []string) {
	blankComments(node)
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			blankComments(node.Content[i])
			b.blank(node.Content[i+1], max(what, fateOf(node.Content[i].Value, what, whole)), whole)
		}
	case yaml.ScalarNode:
		if keyLike.MatchString(node.Value) && !strings.HasPrefix(node.Value, "/") {
			what = secret
		}
		if what == secret {
			b.Learn(node.Value)
		}
		b.Learn(passwordsIn(node.Value)...)
		if what != keeps && node.Value != "" {
			*node = yaml.Node{Kind: yaml.ScalarNode, Value: removed}
		}
	default:
		for _, child := range node.Content {
			b.blank(child, what, whole)
		}
	}
}

// blankComments removes what looks like a key from a node's comments.
func blankComments(node *yaml.Node) {
	for _, comment := range []*string{&node.HeadComment, &node.LineComment, &node.FootComment} {
		*comment = keyLike.ReplaceAllString(*comment, removed)
	}
}

// fateOf returns that of what a key has. The key "value" is that of an environment variable of a credential plugin.
func fateOf(key string, around fate, whole []string) fate {
	switch {
	case isSecretName.MatchString(key), around == blanked && key == "value":
		return secret
	case slices.Contains(whole, key):
		return blanked
	}
	return keeps
}

// Environment returns variables, NAME=VALUE, with the values of those alone that are named as harmless.
func (b *Blanker) Environment(variables []string, harmless ...string) []byte {
	var text strings.Builder
	for _, variable := range slices.Sorted(slices.Values(variables)) {
		name, value, _ := strings.Cut(variable, "=")
		if !slices.Contains(harmless, name) {
			b.Learn(secretsIn(name, value)...)
			value = removed
		}
		fmt.Fprintf(&text, "%s=%s\n", name, value)
	}
	return []byte(text.String())
}

// secretsIn returns the value of a variable whose name says that it is secret, or the passwords in it.
func secretsIn(name, value string) []string {
	if isSecretName.MatchString(name) {
		return []string{value}
	}
	return passwordsIn(value)
}

// passwordsIn returns the passwords of the URLs in a text, as they are there and without escapes.
func passwordsIn(text string) (passwords []string) {
	for _, match := range urlUser.FindAllStringSubmatch(text, -1) {
		_, password, _ := strings.Cut(match[2], ":")
		passwords = append(passwords, password)
		if plain, err := url.PathUnescape(password); err == nil {
			passwords = append(passwords, plain)
		}
	}
	return passwords
}
