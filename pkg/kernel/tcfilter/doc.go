// Package tcfilter finds the interfaces of the thread's network namespace that somebody has put filters of traffic control (tc) at. It
// changes nothing.
package tcfilter
