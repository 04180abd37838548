package changes

import (
	"fmt"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
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

// Follow calls changed once, and again after changes of addresses and links, which it gathers for that long, until done is closed. The
// error is changed's own, or says that changes may have been missed; follow anew then. Its sockets are opened on the caller's thread.
func Follow(done <-chan struct{}, gather time.Duration, changed func() error) error {
	s, err := Subscribe()
	if err != nil {
		return err
	}
	defer s.End()
	pause := time.After(0) // for what came before
	for {
		select {
		case <-done:
			return nil
		case err := <-s.Failed:
			return err
		case <-pause:
			pause = nil
			if err := changed(); err != nil {
				return err
			}
			continue
		case <-s.Addresses:
		case u := <-s.Links:
			if u.Family != unix.AF_UNSPEC {
				continue // about a port of a bridge
			}
		}
		if pause == nil {
			pause = time.After(gather)
		}
	}
}

// Drain reads a channel until it is closed: the library's goroutine may wait to send what nobody reads any more.
func Drain[T any](updates <-chan T) {
	for range updates {
		// Nothing is done with it.
	}
}
