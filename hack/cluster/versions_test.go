package cluster

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	productModule     = "../../go.mod"
	ownModule         = "../controlplane/go.mod"
	conformanceModule = "../conformance/go.mod"
)

// TestVersions_AreTheVendoredOnes keeps the control plane at the version that the product is built with.
func TestVersions_AreTheVendoredOnes(t *testing.T) {
	for name, pattern := range map[string]string{
		"k8s.io/kubernetes":      `(?m)^\tk8s\.io/kubernetes (v\S+)`,
		"the staging modules":    `(?ms)^replace \(\n(.*?)^\)`,
		"etcd and its libraries": `(?m)^\tgo\.etcd\.io/etcd/api/v3 (v\S+)`,
	} {
		if diff := cmp.Diff(found(t, productModule, pattern), found(t, ownModule, pattern)); diff != "" {
			t.Errorf("%s: hack/controlplane/go.mod is not like go.mod (-product +control plane):\n%s", name, diff)
		}
	}
	server := found(t, ownModule, `(?m)^\tgo\.etcd\.io/etcd/server/v3 (v\S+)`)
	if diff := cmp.Diff(found(t, productModule, `(?m)^\tgo\.etcd\.io/etcd/api/v3 (v\S+)`), server); diff != "" {
		t.Errorf("etcd (-what Kubernetes is made with +what is built):\n%s", diff)
	}
}

// TestVersions_OfUpstreamsSpecsAreTheVendoredOnes keeps upstream's end-to-end tests at the version that the product is built with.
func TestVersions_OfUpstreamsSpecsAreTheVendoredOnes(t *testing.T) {
	for name, patterns := range map[string][2]string{
		"k8s.io/kubernetes":   {`(?m)^\tk8s\.io/kubernetes (v\S+)`, `(?m)^(?:\t|require )k8s\.io/kubernetes (v\S+)`},
		"the staging modules": {`(?ms)^replace \(\n(.*?)^\)`, `(?ms)^replace \(\n(.*?)^\)`},
	} {
		if diff := cmp.Diff(found(t, productModule, patterns[0]), found(t, conformanceModule, patterns[1])); diff != "" {
			t.Errorf("%s: hack/conformance/go.mod is not like go.mod (-product +specs):\n%s", name, diff)
		}
	}
}

func vendoredKubernetes(t *testing.T) string {
	return found(t, productModule, `(?m)^\tk8s\.io/kubernetes (v\S+)`)
}

func found(t *testing.T, file, pattern string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(pattern).FindSubmatch(text)
	if match == nil {
		t.Fatalf("%s has no %s", file, pattern)
	}
	return string(match[1])
}
