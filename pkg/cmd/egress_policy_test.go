package cmd

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEgressPolicy_IsTheShippedOne for the shipped configuration, but for the comment.
func TestEgressPolicy_IsTheShippedOne(t *testing.T) {
	out, errs, err := openshift(t, "egress", "policy", "--config=../../images/node/node-config.yaml")
	if err != nil || errs != "" {
		t.Fatalf("%v, %s", err, errs)
	}
	shipped, err := os.ReadFile("../../images/node/admission-policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(shipped), "---\n")
	if diff := cmp.Diff("---\n"+text, out); diff != "" {
		t.Errorf("images/node/admission-policy.yaml is not what the command prints (-file +command):\n%s", diff)
	}
}

func TestEgressPolicy_NamesWhatIsWrong(t *testing.T) {
	if _, _, err := openshift(t, "egress", "policy", "--config=no-such-file"); err == nil || !strings.Contains(err.Error(), "no-such-file") {
		t.Errorf("a file that does not exist: %v", err)
	}
}
