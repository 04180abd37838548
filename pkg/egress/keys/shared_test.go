package keys

import (
	"strings"
	"testing"
	"time"

	"github.com/openshift/origin-node/pkg/egress/holders"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// TestShared_RotatesWithoutAGap follows years of a key's life: at each step, a node that has what was before and one that has what
// comes understand each other.
func TestShared_RotatesWithoutAGap(t *testing.T) {
	s, due := shared{}.next(start)
	if !due || len(s.keys) != 1 || len(s.keys[0]) != 64 || s.step != steady || !s.changed.Equal(start) {
		t.Fatalf("the first key: %v, %+v", due, s)
	}
	accepts := func(keys holders.Keys, signer []byte) bool {
		for _, key := range keys {
			if string(key) == string(signer) {
				return true
			}
		}
		return false
	}
	now, signers := start, map[string]bool{}
	for range 3 * 12 {
		for _, want := range []struct {
			after time.Duration
			step  step
			keys  int
		}{{lifetime, adding, 2}, {distribution, dropping, 2}, {distribution, steady, 1}} {
			if _, due := s.next(now.Add(want.after - time.Second)); due {
				t.Fatalf("%s: too early", want.step)
			}
			now = now.Add(want.after)
			secret := s.in(object("origin-node"))
			before, err := read(secret)
			if err != nil || !before.keys.Equal(s.keys) || before.step != s.step || !before.changed.Equal(s.changed) {
				t.Fatalf("%+v is read as %+v, %v", s, before, err)
			}
			next, due := before.next(now)
			if !due || next.step != want.step || len(next.keys) != want.keys || !next.changed.Equal(now) {
				t.Fatalf("want %+v, got %v, %+v", want, due, next)
			}
			if !accepts(before.keys, next.keys[0]) && next.step != steady || !accepts(next.keys, before.keys[0]) {
				t.Fatalf("%s: nodes do not understand each other", want.step)
			}
			s = next
		}
		signers[string(s.keys[0])] = true
	}
	if len(signers) != 36 {
		t.Errorf("%d keys in 36 rotations", len(signers))
	}
}

// TestShared_Clocks: a time that cannot be, or none, is replaced, and moves no key.
func TestShared_Clocks(t *testing.T) {
	first, _ := shared{}.next(start)
	for name, changed := range map[string]time.Time{"none": {}, "a year ahead": start.AddDate(1, 0, 0)} {
		s := first
		s.changed = changed
		next, due := s.next(start)
		if !due || !next.changed.Equal(start) || !next.keys.Equal(first.keys) || next.step != steady {
			t.Errorf("%s: %v, %+v", name, due, next)
		}
	}
	s := first
	s.changed = start.Add(time.Hour)
	if _, due := s.next(start); due {
		t.Error("a clock that is an hour late changes something")
	}
}

func TestRead_WhatSomebodyHasWritten(t *testing.T) {
	secret := object("origin-node")
	secret.Data = map[string][]byte{"other": []byte("x")}
	if s, err := read(secret); err != nil || len(s.keys) > 0 {
		t.Errorf("an empty one: %+v, %v", s, err)
	}
	secret.Data[keysEntry] = []byte("the newest key there is\nthe one that was before\n")
	s, err := read(secret)
	if err != nil || s.step != dropping || len(s.keys) != 2 || !s.changed.IsZero() {
		t.Errorf("keys alone: %+v, %v; want the first to stay", s, err)
	}
	if got := s.in(secret).Data["other"]; string(got) != "x" {
		t.Errorf("another entry becomes %q", got)
	}
	for text, words := range map[string]string{
		"short": "data.keys: line 1 has 5 characters", strings.Repeat("0123456789abcdef\n", 9): "is the most",
	} {
		secret.Data[keysEntry] = []byte(text)
		if _, err := read(secret); err == nil || !strings.Contains(err.Error(), words) || !strings.Contains(err.Error(), "kubectl -n origin-node patch secret") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
