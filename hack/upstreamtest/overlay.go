package main

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/openshift/origin-node/hack/patchtool/tree"
)

//go:embed testdata
var embedded embed.FS

// laidOver returns what is laid over a tree.
func laidOver() fs.FS {
	files, err := fs.Sub(embedded, "testdata")
	if err != nil {
		panic(err) // only for an invalid path
	}
	return files
}

//go:embed overlay.go
var overlaySource string // how the trees' files are edited decides what is recorded

// The proxiers range over maps, whose order differs from run to run: what they write would too.
// All of these are maps, in every branch that has them; where one is missed, two runs of the same
// tree differ, which is found.
var ranges = regexp.MustCompile(`(:?= range )(proxier\.svcPortMap|proxier\.nfAcctCounters|existingNATChains\.Difference\(activeNATChains\)|existingNATChains|s\.elements|s\.leftoverKeys|proxier\.staleChains|existingChains|existingAffinitySets|endpointsMap) \{`)

// orderRanges has ranges over maps keep an order.
func orderRanges(source string) (string, error) {
	source = strings.ReplaceAll(source, "range nodeIPs {", "range sorted(nodeIPs) {") // a list made from a map
	ordered := ranges.ReplaceAllString(source, "${1}inOrder(${2}) {")
	if ordered == source {
		return "", errors.New("it ranges over no map that is known: upstream changed it; adapt hack/upstreamtest/overlay.go")
	}
	return ordered, nil
}

// overlay says to go what is laid over a tree: files beside or in the place of the tree's own.
type overlay struct {
	tree, dir string
	laid      fs.FS
	Replace   map[string]string
}

// newOverlay returns what to lay over the tree so that the tests of both proxiers record what is
// written. With an extension, every proxier of a test has one; an unpatched tree does not compile then.
func newOverlay(in *tree.Tree, dir string, laid fs.FS, extension bool) (*overlay, error) {
	o := &overlay{tree: in.Dir, dir: dir, laid: laid, Replace: map[string]string{}}
	attach := "plain_test.go"
	if extension {
		attach = "extension_test.go"
	}
	for _, proxier := range proxiers {
		folder := "pkg/proxy/" + proxier
		for _, name := range []string{"order.go", "clusters_test.go", attach, proxier + "_test.go"} {
			if err := o.add(folder, name, proxier); err != nil {
				return nil, err
			}
		}
		if err := o.edit(folder+"/proxier.go", orderRanges); err != nil {
			return nil, err
		}
		if err := o.edit(folder+"/proxier_test.go", editProxierTest); err != nil {
			return nil, err
		}
	}
	if err := o.add("pkg/proxy", "order.go", "proxy"); err != nil {
		return nil, err
	}
	if err := o.edit("pkg/proxy/topology.go", orderRanges); err != nil {
		return nil, err
	}
	const fake = "pkg/util/iptables/testing"
	if err := o.add(fake, "record.go", "testing"); err != nil {
		return nil, err
	}
	return o, o.edit(fake+"/fake.go", func(source string) (string, error) {
		return insert(source, "func (f *FakeIPTables) RestoreAll(data []byte, flush iptables.FlushFlag, counters iptables.RestoreCountersFlag) error {\n",
			"\tRecord(fmt.Sprintf(\"restore flush=%v counters=%v\", flush, counters), string(data))\n")
	})
}

var nft = regexp.MustCompile(`(\n\t\tnftables: +)nft,\n`)

// editProxierTest has each proxier that upstream's tests make record what it writes, and have the extension.
func editProxierTest(source string) (string, error) {
	if !strings.Contains(source, "\tiptablestest \"") {
		source = strings.Replace(source, "import (\n", "import (\n\tiptablestest \"k8s.io/kubernetes/pkg/util/iptables/testing\"\n", 1)
	}
	source = nft.ReplaceAllString(source, "${1}record(nft),\n")
	return insert(source, "\tp.setInitialized(true)\n", "\tattachExtension(p)\n\tiptablestest.Record(\"proxier\", \"\")\n")
}

// insert inserts text behind the only place of a source that has the marker.
func insert(source, marker, text string) (string, error) {
	if n := strings.Count(source, marker); n != 1 {
		return "", fmt.Errorf("%d places have %q, want one: upstream changed it; adapt hack/upstreamtest/overlay.go", n, strings.TrimSpace(marker))
	}
	return strings.Replace(source, marker, marker+text, 1), nil
}

var packageClause = regexp.MustCompile(`(?m)^package \w+$`)

// add lays one of the files into a folder, as a file of the package.
func (o *overlay) add(folder, name, packageName string) error {
	content, err := fs.ReadFile(o.laid, name)
	if err != nil {
		return fmt.Errorf("lay over the tree: %w", err)
	}
	text := packageClause.ReplaceAllString(string(content), "package "+packageName)
	return o.write(folder+"/upstreamtest_"+name, text)
}

// edit lays an edited file over the tree's.
func (o *overlay) edit(file string, change func(string) (string, error)) error {
	content, err := os.ReadFile(filepath.Join(o.tree, file))
	if err != nil {
		return fmt.Errorf("lay over the tree: %w", err)
	}
	text, err := change(string(content))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return o.write(file, text)
}

func (o *overlay) write(file, text string) error {
	name := filepath.Join(o.dir, strings.ReplaceAll(file, "/", "_"))
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		return fmt.Errorf("lay over the tree: %w", err)
	}
	o.Replace[filepath.Join(o.tree, file)] = name
	return nil
}

// file writes what go reads and returns its name.
func (o *overlay) file() (string, error) {
	content, err := json.Marshal(o)
	if err != nil {
		return "", fmt.Errorf("lay over the tree: %w", err)
	}
	name := filepath.Join(o.dir, "overlay.json")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		return "", fmt.Errorf("lay over the tree: %w", err)
	}
	return name, nil
}
