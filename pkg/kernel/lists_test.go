package kernel

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSetOf(t *testing.T) {
	if diff := cmp.Diff(map[int]bool{1: true, 2: true}, SetOf([]int{2, 1, 2})); diff != "" {
		t.Error(diff)
	}
	if set := SetOf[int](nil); set == nil || len(set) > 0 {
		t.Errorf("of nothing: %#v", set)
	}
}

// TestWithout: what is left keeps its order, and the list stays as it was.
func TestWithout(t *testing.T) {
	list := []int{3, 1, 3, 2}
	for name, test := range map[string]struct{ list, others, want []int }{
		"some":      {list, []int{1, 4}, []int{3, 3, 2}},
		"all":       {list, list, []int{}},
		"no others": {list, nil, list},
		"no list":   {nil, list, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Without(test.list, test.others)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if diff := cmp.Diff([]int{3, 1, 3, 2}, list); diff != "" {
		t.Errorf("the list has changed: %s", diff)
	}
}

func TestPut(t *testing.T) {
	type numbers map[string]int
	of := map[string]numbers{}
	Put(of, "a", "x", 1)
	Put(of, "a", "y", 2)
	Put(of, "a", "x", 3)
	Put(of, "b", "x", 4)
	if diff := cmp.Diff(map[string]numbers{"a": {"x": 3, "y": 2}, "b": {"x": 4}}, of); diff != "" {
		t.Error(diff)
	}
}

func TestListed(t *testing.T) {
	addresses := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.3")}
	for _, test := range []struct {
		count, most int
		want        string
	}{
		{0, 2, ""},
		{1, 2, "192.0.2.1"},
		{2, 2, "192.0.2.1, 192.0.2.2"},
		{3, 2, "192.0.2.1, 192.0.2.2 and 1 others"},
	} {
		if text := Listed(addresses[:test.count], test.most, "others"); text != test.want {
			t.Errorf("%d, at most %d: %q, and not %q", test.count, test.most, text, test.want)
		}
	}
	if text := Join([]uint16{80, 443}, ","); text != "80,443" {
		t.Errorf("joined: %q", text)
	}
}
