package changes

import (
	"errors"

	"github.com/vishvananda/netlink"
)

// attempts is how often a list is read that changes each time. Others change it for a moment only.
const attempts = 20

// Outlast calls read again as long as what it reads from the kernel changes meanwhile: the kernel's lists may lack something
// then. It returns what read returned last, with its error, which is [netlink.ErrDumpInterrupted] if there was no end of it.
func Outlast[T any](read func() (T, error)) (found T, err error) {
	for range attempts {
		if found, err = read(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return found, err
}
