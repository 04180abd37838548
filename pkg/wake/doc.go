// Package wake has one goroutine tell another that there is something to do. What that is stands elsewhere, under a lock: a
// [Signal] says only that it may have changed, and nobody waits to send it. Who has nothing to do for a time may [Sleep].
package wake
