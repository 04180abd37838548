package failure

import (
	"errors"
	"testing"
)

// TestJoinSome_Counts errors alone: what is not wrong is neither joined nor counted.
func TestJoinSome_Counts(t *testing.T) {
	wrong := errors.New("wrong")
	for _, tt := range []struct {
		errs []error
		want string
	}{
		{nil, ""},
		{[]error{nil, nil, nil, nil, nil}, ""},
		{[]error{nil, nil, nil, wrong, nil}, "wrong"},
		{[]error{wrong, nil, wrong, nil, wrong}, "wrong\nwrong\nwrong"},
		{[]error{wrong, wrong, nil, wrong, wrong, wrong}, "wrong\nwrong\nwrong\nfield: 2 more errors"},
	} {
		got := ""
		if err := JoinSome("field", tt.errs); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.errs, got, tt.want)
		}
	}
}
