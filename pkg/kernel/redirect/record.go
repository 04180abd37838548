package redirect

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/openshift/origin-node/pkg/kernel"
)

// partLength is how long a part of a record is. A comment of iptables and the user data of an nftables rule take 255 bytes.
const partLength = 240

// partPrefix begins each part: a word must not look like an option.
const partPrefix = "r"

// encode returns redirects as words that a rule's comment takes; none if there are none.
func encode(redirects []kernel.Redirects) (parts []string) {
	if len(redirects) == 0 {
		return nil
	}
	text, _ := json.Marshal(redirects) // addresses and numbers
	encoded := base64.RawURLEncoding.EncodeToString(text)
	for part := range slices.Chunk([]byte(encoded), partLength) {
		parts = append(parts, partPrefix+string(part))
	}
	return parts
}

// decode returns what was encoded; nothing if somebody has changed it.
func decode(parts []string) (redirects []kernel.Redirects) {
	var encoded strings.Builder
	for _, part := range parts {
		encoded.WriteString(strings.TrimPrefix(part, partPrefix))
	}
	text, err := base64.RawURLEncoding.DecodeString(encoded.String())
	if err != nil || json.Unmarshal(text, &redirects) != nil {
		return nil
	}
	return redirects
}
