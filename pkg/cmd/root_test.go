package cmd

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestErrorText_IsForATerminal: an API server, or who answers in its place, writes the messages of its errors.
func TestErrorText_IsForATerminal(t *testing.T) {
	err := errors.Join(fmt.Errorf("listing Nodes: %w", apierrors.NewBadRequest("no\x1b[2J\r such \u202eobject")), errors.New("second"))
	if got, want := errorText(err), "listing Nodes: no?[2J? such ?object\nsecond"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
