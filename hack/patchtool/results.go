package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// tested are the packages whose tests are counted: the patched ones, and the one through which they write.
var tested = append(slices.Clone(patched), "pkg/util/iptables")

var testFunction = regexp.MustCompile(`(?m)^func (Test[^a-z]\w*|Test)\(`)

// countTests returns how many test functions each package of the module has.
func countTests(module fs.FS) (map[string]int, error) {
	counts := map[string]int{}
	for _, root := range tested {
		err := fs.WalkDir(module, root, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(name, "_test.go") {
				return err
			}
			content, err := fs.ReadFile(module, name)
			if err != nil {
				return err
			}
			if n := len(testFunction.FindAll(content, -1)); n > 0 {
				counts[path.Dir(name)] += n
			}
			return nil
		})
		if err != nil && !os.IsNotExist(err) {
			return nil, fmt.Errorf("count the tests: %w", err)
		}
	}
	return counts, nil
}

// outcomes counts tests and subtests by how they ended: "pass", "fail" and "skip".
type outcomes map[string]int

// results reads what `go test -json` printed on the patched tree of a version, which whoever ran
// it left as VERSION.json in the directory. Without the file there are none.
func results(dir, version string) (map[string]outcomes, error) {
	if dir == "" {
		return nil, nil
	}
	file, err := os.Open(filepath.Join(dir, version+".json"))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the results of tests: %w", err)
	}
	defer file.Close()
	found := map[string]outcomes{}
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 16<<20) // a line is as long as what a test prints in one
	for scanner.Scan() {
		var event struct{ Action, Package, Test string }
		if err := json.Unmarshal(scanner.Bytes(), &event); err != nil {
			continue // go mixes what a compiler says into it
		}
		if event.Test == "" || event.Action != "pass" && event.Action != "fail" && event.Action != "skip" {
			continue
		}
		_, folder, _ := strings.Cut(event.Package, "k8s.io/kubernetes/")
		if found[folder] == nil {
			found[folder] = outcomes{}
		}
		found[folder][event.Action]++
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("read the results of tests: %w", err)
	}
	return found, nil
}

func (o outcomes) String() string {
	if o == nil {
		return "not run"
	}
	return fmt.Sprintf("%d passed, %d failed, %d skipped", o["pass"], o["fail"], o["skip"])
}
