package kubeproxy

import (
	"math"
	"regexp"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/openshift/origin-node/pkg/egress/journal"
	"github.com/openshift/origin-node/pkg/egress/sourceports"
)

// journalFlags are the values of the arguments about the journal of source ports.
type journalFlags struct {
	folder string
	size   string
}

const (
	journalKey     = "egress-snat-journal"
	journalSizeKey = "egress-snat-journal-size"
)

func (f *journalFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.folder, journalKey, "", "The folder in which this node writes down which pod has which source ports, with egress-snat-port-blocks: an absolute path on a disk that outlives a reboot. "+
		"Empty: /var/lib/origin-node/journal or, if egress-snat-socket is not the default, that path with .journal appended.")
	fs.StringVar(&f.size, journalSizeKey, "64Mi", "How much of the disk the journal may use, at least 1Mi. When it needs more, the oldest of its 8 files is removed. A pod takes 170 to 200 bytes for each egress IP, the node itself 45 kB a day.")
}

// JournalFolder returns where a node with these values of egress-snat-journal and egress-snat-socket has its journal.
func JournalFolder(folder, socket string) string {
	if folder != "" {
		return folder
	}
	return keptFile(socket, "journal")
}

// amount bounds what is parsed: resource.ParseQuantity takes forever on 1e-2147483647.
var amount = regexp.MustCompile(`^[0-9.]{1,18}([kKMGTP]i?)?$`)

// takeJournal parses egress-snat-journal-size.
func (p *Proxy) takeJournal() error {
	f := &p.flags.journal
	var bytes int64
	if amount.MatchString(f.size) {
		if size, err := resource.ParseQuantity(f.size); err == nil && size.CmpInt64(math.MaxInt64) < 0 {
			bytes = size.Value()
		}
	}
	if bytes < journal.LeastSize {
		return p.config.Errorf("proxyArguments."+journalSizeKey, "invalid value %q: expected a number of bytes, at least 1Mi, for example 64Mi", f.size)
	}
	p.extension.Journal = sourceports.Journal{Folder: JournalFolder(f.folder, p.flags.socket), Size: bytes}
	return nil
}
