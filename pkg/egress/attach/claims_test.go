package attach

import (
	"path/filepath"
	"testing"
)

// TestClaimsFile_NamedMeanwhile: what has got a claim since it was seen that it has none stays in the file.
func TestClaimsFile_NamedMeanwhile(t *testing.T) {
	file := openClaims(filepath.Join(t.TempDir(), "claims"))
	if err := file.add([]string{"bank", "shop"}); err != nil {
		t.Fatal(err)
	}
	_, addition := file.size()
	if err := file.add([]string{"shop"}); err != nil {
		t.Fatal(err)
	}
	if err := file.keep(nil, addition); err != nil {
		t.Fatal(err)
	}
	if again := openClaims(file.path); again.has("bank") || !again.has("shop") {
		t.Errorf("the file names %v, expected shop alone", again.noted)
	}
}
