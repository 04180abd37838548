package nft

import (
	"context"
	"errors"
	"time"
)

// Found is what somebody looks for in the kernel's ruleset again and again. As long as nobody changes the ruleset, that costs one
// message. The zero value has not looked yet. It stays connected between looks, until Close.
type Found[T any] struct {
	conn *Conn
	// generation is that of the ruleset in which result was so; 0 if it is not known.
	generation uint32
	result     T
	// lacking is when the kernel had no nftables.
	lacking time.Time
}

// restWithout is how long it is from one look to the next where the kernel has no nftables: it would run modprobe for each.
const restWithout = time.Minute

// Find returns what look finds, and nothing where the kernel has no nftables. With an error it returns what was found last. It must not be
// used by two goroutines at once, nor in two network namespaces.
func (f *Found[T]) Find(ctx context.Context, look func(*Conn) (T, error)) (T, error) {
	var none T
	if time.Since(f.lacking) < restWithout {
		return none, nil
	}
	err := f.find(ctx, look)
	if err != nil {
		f.Close()
	}
	if errors.Is(err, ErrNone) {
		f.lacking = time.Now()
		return none, nil
	}
	return f.result, err
}

func (f *Found[T]) find(ctx context.Context, look func(*Conn) (T, error)) (err error) {
	if f.conn == nil {
		if f.conn, err = Open(ctx); err != nil {
			return err
		}
	}
	if err := f.conn.expect(ctx); err != nil {
		return err
	}
	generation, err := f.conn.Generation()
	if err != nil || generation == f.generation {
		return err
	}
	result, err := look(f.conn)
	if err != nil {
		return err
	}
	f.generation, f.result = generation, result // of before, so that what has changed meanwhile shows the next time
	return nil
}

// Forget has the next Find look, whether or not the ruleset has changed.
func (f *Found[T]) Forget() { f.generation = 0 }

// Close ends the connection. The next Find opens another one.
func (f *Found[T]) Close() {
	if f.conn != nil {
		f.conn.Close()
		f.conn = nil
	}
}
