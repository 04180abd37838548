package changes

import (
	"fmt"

	"github.com/vishvananda/netlink"
)

// Subscription is to changes of addresses and links of the network namespace in which it was made.
type Subscription struct {
	Addresses chan netlink.AddrUpdate
	Links     chan netlink.LinkUpdate
	// Failed has an error when changes may have been missed: End it then, and begin anew. The other channels may be
	// closed then.
	Failed chan error

	done chan struct{}
}

// Subscribe begins. Its sockets are opened on the caller's thread. After an error there is nothing to end.
func Subscribe() (*Subscription, error) {
	s := &Subscription{
		Addresses: make(chan netlink.AddrUpdate), Links: make(chan netlink.LinkUpdate),
		Failed: make(chan error, 1), done: make(chan struct{}),
	}
	fail := func(err error) {
		select {
		case s.Failed <- err:
		default: // the first one says why
		}
	}
	if err := netlink.AddrSubscribeWithOptions(s.Addresses, s.done, netlink.AddrSubscribeOptions{ErrorCallback: fail}); err != nil {
		return nil, fmt.Errorf("subscribe to addresses: %w", err)
	}
	if err := netlink.LinkSubscribeWithOptions(s.Links, s.done, netlink.LinkSubscribeOptions{ErrorCallback: fail}); err != nil {
		close(s.done)
		go Drain(s.Addresses)
		return nil, fmt.Errorf("subscribe to links: %w", err)
	}
	return s, nil
}

// End ends it.
func (s *Subscription) End() {
	close(s.done)
	go Drain(s.Addresses)
	go Drain(s.Links)
}

// Drain reads a channel until it is closed: the library's goroutine may wait to send what nobody reads any more.
func Drain[T any](updates <-chan T) {
	for range updates {
		// Nothing is done with it.
	}
}
