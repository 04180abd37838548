package wake

// Broadcast has all goroutines that wait for a change look again. Its user has a lock, under which Next and Send are called.
type Broadcast struct{ next chan struct{} }

// NewBroadcast returns a Broadcast that nobody waits for.
func NewBroadcast() *Broadcast { return &Broadcast{make(chan struct{})} }

// Next returns a channel that the next Send closes. Who takes it together with what is to change misses nothing.
func (b *Broadcast) Next() <-chan struct{} { return b.next }

// Send closes what Next has returned since the last Send.
func (b *Broadcast) Send() {
	close(b.next)
	b.next = make(chan struct{})
}
