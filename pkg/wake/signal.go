package wake

// Signal is received by the goroutine that is to look for something to do, once for all that was sent before. It holds one element.
type Signal chan struct{}

// New returns a Signal that was not sent.
func New() Signal { return make(Signal, 1) }

// Send has the receiver look now, or as soon as it comes to it. It never waits; any goroutine may call it, under any lock.
func (s Signal) Send() {
	select {
	case s <- struct{}{}:
	default: // one waits already
	}
}
