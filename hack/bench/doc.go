// Command bench shows what egress SNAT costs: each figure as a ratio of things measured
// within one run, against the target that it has.
//
//	go run ./hack/bench [-smoke] [-run REGEXP] [-rounds N] [-o FILE] [-readme README.md]
//
// It needs root and the tools of hack/lab. Everything happens in network namespaces of its
// own and goes with them. The table goes to standard output, what goes on meanwhile to
// standard error, and every single value to FILE, for benchstat. A missed target
// is no error: who reads the table judges it.
//
// What is measured, and how, is the business of the packages below; this one lets them run,
// and tells.
package main
