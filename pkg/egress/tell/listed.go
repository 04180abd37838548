package tell

import (
	"fmt"
	"net/netip"
	"strings"
)

// Listed lists addresses, as many as an Event has room for.
func Listed(addresses []netip.Addr) string {
	const most = 20
	var texts []string
	for _, ip := range addresses[:min(len(addresses), most)] {
		texts = append(texts, ip.String())
	}
	if more := len(addresses) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(texts, ", "), more)
	}
	return strings.Join(texts, ", ")
}
