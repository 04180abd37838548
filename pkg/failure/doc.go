// Package failure knows which failures are news, of something that is tried again and again: so that a log, an Event or a metric tells
// of a failure that lasts once, and when it is over. And it cuts lists of errors short. It logs nothing itself.
package failure
