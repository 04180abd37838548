package extension

import "time"

// Summary tells how an extension stands, in short.
type Summary struct {
	// Name is what people call what it does.
	Name string
	// Ready: the plan has been written, in every IP family that the proxier serves.
	Ready bool
	// Missing are the kinds of objects that are waited for.
	Missing []string
	// DueSince is when the oldest change came that is not in the kernel; zero if none, or as long as objects are
	// waited for: that is no fault that a restart would mend.
	DueSince time.Time
	// Numbers are what it does now, for people.
	Numbers string
}
