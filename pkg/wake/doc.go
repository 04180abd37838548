// Package wake has one goroutine tell another that there is something to do: a [Signal] is for one goroutine, a [Broadcast] for all
// that wait. Neither says what there is to do: that is kept elsewhere, under a lock. Nobody waits to send them. [Sleep] pauses a goroutine.
package wake
