// Package testlog reads what `go test -json` prints. It runs nothing.
package testlog
