package failure

import (
	"errors"
	"fmt"
	"slices"
)

// most is how many errors JoinSome joins.
const most = 3

// JoinSome joins the first few errors of a field of an object, and says how many more there are: an object may be large, and anything may be in
// it. Those that are nil do not count.
func JoinSome(field string, errs []error) error {
	errs = slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
	if more := len(errs) - most; more > 0 {
		errs = append(errs[:most], fmt.Errorf("%s: %d more errors", field, more))
	}
	return errors.Join(errs...)
}
