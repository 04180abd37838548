package cmd

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestVariablesIn_GoOn: what a variable has in further lines is no variable of its own, whose text would be told as a name.
func TestVariablesIn_GoOn(t *testing.T) {
	const text = "# a comment\n; another\nOPTIONS=--v=2\n\nKEY=\"-----BEGIN PRIVATE KEY-----\nMIIEvQ==\n-----END PRIVATE KEY-----\"\n" +
		"HTTPS_PROXY=http://me:\\\nS3cretPw@proxy:3128\nONE='it is \\'\nTWO=\"a \\\" quote\"\nPLAIN=it's\nOTHER=x\nLAST='open"
	want := []string{
		"OPTIONS=--v=2", "KEY=\"-----BEGIN PRIVATE KEY-----\nMIIEvQ==\n-----END PRIVATE KEY-----\"", "HTTPS_PROXY=http://me:\\\nS3cretPw@proxy:3128",
		`ONE='it is \'`, `TWO="a \" quote"`, "PLAIN=it's", "OTHER=x", "LAST='open",
	}
	if diff := cmp.Diff(want, variablesIn(text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
