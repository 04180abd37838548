// Package testlog knows which of upstream's packages are tested, and reads what `go test -json` printed of
// them. It runs nothing.
package testlog
