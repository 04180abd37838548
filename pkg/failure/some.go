package failure

import (
	"errors"
	"fmt"
)

// most is how many errors JoinSome joins.
const most = 3

// JoinSome joins the first few errors of a field of an object, and says how many more there are: an object may be large, and anything may be in
// it.
func JoinSome(field string, errs []error) error {
	if more := len(errs) - most; more > 0 {
		errs = append(errs[:most], fmt.Errorf("%s: %d more errors", field, more))
	}
	return errors.Join(errs...)
}
