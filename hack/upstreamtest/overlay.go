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

// The proxiers range over maps, whose order differs from run to run: what they write would too.
// All of these are maps, in every branch that has them. If one is missed, two runs of the same tree
// differ, which identity reports.
var ranges = regexp.MustCompile(`(:?= range )(proxier\.svcPortMap|proxier\.nfAcctCounters|existingNATChains\.Difference\(activeNATChains\)|existingNATChains|s\.elements|s\.leftoverKeys|proxier\.staleChains|existingChains|existingAffinitySets|endpointsMap) \{`)

// orderRanges makes ranges over maps keep an order.
func orderRanges(source string) (string, error) {
	source = strings.ReplaceAll(source, "range nodeIPs {", "range sorted(nodeIPs) {") // a list made from a map
	ordered := ranges.ReplaceAllString(source, "${1}inOrder(${2}) {")
	if ordered == source {
		return "", errors.New("no range over a known map is left: upstream changed it; adapt hack/upstreamtest/overlay.go")
	}
	return ordered, nil
}

// overlay tells go what is laid over a tree: files beside or in the place of the tree's own.
type overlay struct {
	tree, dir string
	laid      fs.FS
	Replace   map[string]string
}

// newOverlay writes into dir what to lay over the tree so that the tests of both proxiers record what is
// written, and returns the file for go's -overlay. With an extension, every proxier of a test has one; an
// unpatched tree does not compile then.
func newOverlay(in *tree.Tree, dir string, laid fs.FS, extension bool) (string, error) {
	o := &overlay{tree: in.Dir, dir: dir, laid: laid, Replace: map[string]string{}}
	attach := "plain_test.go"
	if extension {
		attach = "extension_test.go"
	}
	var failed error
	add := func(folder, name, packageName string) { failed = errors.Join(failed, o.add(folder, name, packageName)) }
	edit := func(file string, change func(string) (string, error)) {
		failed = errors.Join(failed, o.edit(file, change))
	}
	for _, proxier := range proxiers {
		folder := "pkg/proxy/" + proxier
		for _, name := range []string{"order.go", "clusters_test.go", attach, proxier + "_test.go"} {
			add(folder, name, proxier)
		}
		edit(folder+"/proxier.go", orderRanges)
		edit(folder+"/proxier_test.go", editProxierTest)
	}
	add("pkg/proxy", "order.go", "proxy")
	edit("pkg/proxy/topology.go", orderRanges)
	const fake = "pkg/util/iptables/testing"
	add(fake, "record.go", "testing")
	edit(fake+"/fake.go", func(source string) (string, error) {
		return insert(source, "func (f *FakeIPTables) RestoreAll(data []byte, flush iptables.FlushFlag, counters iptables.RestoreCountersFlag) error {\n",
			"\tRecord(fmt.Sprintf(\"restore flush=%v counters=%v\", flush, counters), string(data))\n")
	})
	content, err := json.Marshal(o)
	file := filepath.Join(dir, "overlay.json")
	return file, errors.Join(failed, err, os.WriteFile(file, content, 0o600))
}

var nft = regexp.MustCompile(`(\n\t\tnftables: +)nft,\n`)

// editProxierTest makes each proxier of upstream's tests record what it writes, and gives it the extension.
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
		return "", fmt.Errorf("%d places have %q, expected one: upstream changed it; adapt hack/upstreamtest/overlay.go", n, strings.TrimSpace(marker))
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
