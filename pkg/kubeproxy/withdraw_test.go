package kubeproxy

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestKeepWithdrawing_UntilItSucceeds: every 10 s, less and less often where it is forbidden. Its caller does not wait for what is forbidden.
func TestKeepWithdrawing_UntilItSucceeds(t *testing.T) {
	refused, forbidden := errors.New("connection refused"), apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "", nil)
	for name, test := range map[string]struct {
		answers     []error
		waits       int // for so many of them
		least, most time.Duration
	}{
		"at once":            {[]error{nil}, 1, 0, 0},
		"forbidden at first": {[]error{forbidden, forbidden, forbidden, nil}, 1, 70 * time.Second, 77 * time.Second},
		"no answer at first": {[]error{refused, refused, refused, nil}, 4, 30 * time.Second, 30 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			began, asked, waited := time.Now(), 0, 0
			keepWithdrawing(t.Context(), func() error {
				asked++
				return test.answers[asked-1]
			}, func() {
				if waited == 0 {
					waited = asked
				}
			})
			if took := time.Since(began); asked != len(test.answers) || waited != test.waits || took < test.least || took > test.most {
				t.Errorf("%s: asked %d times within %s, and its caller waited for %d of them", name, asked, took, waited)
			}
		})
	}
}
