package nft

import (
	"context"
	"errors"
)

// Found is what somebody looks for in the kernel's ruleset again and again. As long as nobody changes the ruleset, that costs one
// message. The zero value has not looked yet.
type Found[T any] struct {
	// generation is that of the ruleset in which result was so; 0 if it is not known.
	generation uint32
	result     T
}

// Find returns what look finds, and nothing where the kernel has no nftables. With an error it returns what was found last. It must not be
// used by two goroutines at once.
func (f *Found[T]) Find(ctx context.Context, look func(*Conn) (T, error)) (T, error) {
	var none T
	c, err := Open(ctx)
	if errors.Is(err, ErrNone) {
		return none, nil
	}
	if err != nil {
		return f.result, err
	}
	defer c.Close()
	generation, err := c.Generation()
	if errors.Is(err, ErrNone) {
		return none, nil
	}
	if err != nil {
		return f.result, err
	}
	if generation == f.generation {
		return f.result, nil
	}
	result, err := look(c)
	if err != nil {
		return f.result, err
	}
	f.generation, f.result = generation, result // of before, so that what has changed meanwhile shows the next time
	return result, nil
}

// Forget has the next Find look, whether or not the ruleset has changed.
func (f *Found[T]) Forget() { f.generation = 0 }
