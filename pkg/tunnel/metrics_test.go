package tunnel

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMetrics_AllAreDocumented(t *testing.T) {
	readme, err := os.ReadFile("../../images/node/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(tunnel_[a-z_]+)` \\|").FindAllStringSubmatch(string(readme), -1) {
		documented = append(documented, row[1])
	}
	var all []string
	for _, metric := range Metrics() {
		all = append(all, metric.Name)
	}
	slices.Sort(documented)
	slices.Sort(all)
	if diff := cmp.Diff(all, documented); diff != "" {
		t.Errorf("metrics that are exported, and that images/node/README.md has (-want +got):\n%s", diff)
	}
}
