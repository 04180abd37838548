package nft

import (
	"errors"
	"fmt"
	"testing"
)

func TestUnlessNone(t *testing.T) {
	other := errors.New("another one")
	for _, test := range []struct{ err, want error }{{nil, nil}, {other, other}, {fmt.Errorf("look: %w", ErrNone), nil}} {
		if got := UnlessNone(test.err); !errors.Is(got, test.want) {
			t.Errorf("%v: %v", test.err, got)
		}
	}
}
