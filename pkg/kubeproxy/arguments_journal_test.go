package kubeproxy

import (
	"strings"
	"testing"

	"github.com/openshift/origin-node/pkg/egress/sourceports"
)

func TestTakeJournal(t *testing.T) {
	take := func(arguments string) (*Proxy, error) {
		config := parse(t, "proxyArguments: {"+arguments+"}")
		args, err := setArguments(config)
		if err != nil {
			t.Fatal(err)
		}
		p := &Proxy{config: config, flags: args.egress}
		return p, p.takeJournal()
	}
	for arguments, want := range map[string]sourceports.Journal{
		"":                                  {Folder: "/var/lib/origin-node/journal", Size: 64 << 20},
		"egress-snat-socket: [/run/a.b]":    {Folder: "/run/a.b.journal", Size: 64 << 20},
		"egress-snat-socket: ['']":          {Folder: "/var/lib/origin-node/journal", Size: 64 << 20},
		"egress-snat-journal: [/srv/j]":     {Folder: "/srv/j", Size: 64 << 20},
		"egress-snat-journal-size: [1Mi]":   {Folder: "/var/lib/origin-node/journal", Size: 1 << 20},
		"egress-snat-journal-size: [1.5Mi]": {Folder: "/var/lib/origin-node/journal", Size: 3 << 19},
		"egress-snat-journal-size: [2G]":    {Folder: "/var/lib/origin-node/journal", Size: 2_000_000_000},
	} {
		if p, err := take(arguments); err != nil || p.extension.Journal != want {
			t.Errorf("%s: %+v, %v; want %+v", arguments, p.extension.Journal, err, want)
		}
	}
	for _, size := range []string{"0", "1023Ki", "-1Gi", "many", "100m", "100000000Ti", "1e-2147483647"} {
		if _, err := take("egress-snat-journal-size: ['" + size + "']"); err == nil || !strings.Contains(err.Error(), "proxyArguments.egress-snat-journal-size: invalid value \""+size) {
			t.Errorf("%s: %v", size, err)
		}
	}
}
