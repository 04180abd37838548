package kubeproxy

import (
	"errors"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestKeepWithdrawing: it ends when it has succeeded alone. Its caller does not wait for what is forbidden.
func TestKeepWithdrawing(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "", nil)
	for name, test := range map[string]struct {
		answers []error
		waits   int // for so many of them
	}{
		"at once":            {[]error{nil}, 1},
		"forbidden at first": {[]error{forbidden, forbidden, nil}, 1},
		"no answer at first": {[]error{errors.New("connection refused"), nil}, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			asked, answered := 0, []int{}
			keepWithdrawing(t.Context(), func() error {
				asked++
				return test.answers[asked-1]
			}, func() { answered = append(answered, asked) })
			if asked != len(test.answers) || len(answered) == 0 || answered[0] != test.waits {
				t.Errorf("%s: asked %d times, and its caller goes on after those of %v", name, asked, answered)
			}
		})
	}
}
