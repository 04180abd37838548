package netns

import (
	"testing"

	"github.com/openshift/origin-node/pkg/kernel/iptables"
)

// TestProxiersJump_IsRecognised: as the proxier writes it and iptables-save prints it. Where it were not
// recognised, a node would look for it until the proxier's first sync is over.
func TestProxiersJump_IsRecognised(t *testing.T) {
	onBackends(t, func(n *node) {
		n.start()
		n.Ready()
		for _, save := range []string{"iptables-save", "ip6tables-save"} {
			printed, err := n.Node().Run(n.Context(), save, "-t", "nat")
			if err != nil {
				n.Fatal(err)
			}
			if kernel, err := iptables.ParseSave(printed); err != nil || !kernel.HasProxierJump() {
				n.Errorf("%s: not found, %v, in\n%s", save, err, printed)
			}
		}
	})
}
