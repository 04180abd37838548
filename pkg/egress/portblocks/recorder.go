package portblocks

import (
	"context"
	"time"
)

// Recorder writes down who has which ports. It is called before the pod runs, and after it has ended.
type Recorder interface {
	Assigned(ctx context.Context, a Assignment) error
	Released(ctx context.Context, a Assignment, at time.Time) error
}
