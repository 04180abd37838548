package wake

import "testing"

// TestSignal_OnceForAll: nobody waits to send it, what is sent before it is received is received once, and what is sent afterwards again.
func TestSignal_OnceForAll(t *testing.T) {
	s := New()
	if len(s) != 0 {
		t.Fatal("a new one was sent")
	}
	for range 2 {
		for range 3 {
			s.Send()
		}
		<-s
		if len(s) != 0 {
			t.Fatal("sent three times before it was received, and received twice")
		}
	}
}
