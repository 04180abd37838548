package failure

import (
	"errors"
	"testing"
)

// TestStreak_News: the first failure and the end of it are news, for those who want to know also another failure in between.
func TestStreak_News(t *testing.T) {
	var turning, changing Streak
	for i, try := range []struct {
		err            error
		turns, changes bool
	}{
		{nil, false, false},
		{errors.New("full"), true, true},
		{errors.New("full"), false, false},
		{errors.New("gone"), false, true},
		{errors.New(""), false, true},
		{nil, true, true},
		{nil, false, false},
		{errors.New(""), true, true},
	} {
		if got := turning.Turns(try.err); got != try.turns {
			t.Errorf("try %d, %v: turns %t", i, try.err, got)
		}
		if got := changing.Changes(try.err); got != try.changes {
			t.Errorf("try %d, %v: changes %t", i, try.err, got)
		}
		if !errors.Is(turning.Err(), try.err) || !errors.Is(changing.Err(), try.err) {
			t.Errorf("try %d: %v and %v, expected %v", i, turning.Err(), changing.Err(), try.err)
		}
	}
}
