package kubeproxy

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/wake"
)

// Of failures that pass.
const (
	probes     = 5
	probePause = 2 * time.Second
)

// passing are failures of a kernel that is busy. They say nothing of what it can.
var passing = []error{os.ErrDeadlineExceeded, unix.ENOMEM, unix.ENOBUFS, unix.EAGAIN, unix.EINTR, unix.EBUSY}

// probed returns why a kernel cannot do something that probe tries. After a failure that passes it tries again, some times: what follows from
// the answer lasts until the process ends.
func probed(ctx context.Context, probe func() error) (err error) {
	passes := func(p error) bool { return errors.Is(err, p) }
	err = probe()
	for n := 1; n < probes && slices.ContainsFunc(passing, passes) && wake.Sleep(ctx.Done(), probePause); n++ {
		err = probe()
	}
	return err
}
