// Command bench shows what egress SNAT costs: each figure as a ratio of two values of the same run, against its
// target.
//
//	go run ./hack/bench [-smoke] [-run REGEXP] [-rounds N] [-o FILE] [-publish]
//
// It needs root and the tools of hack/lab, and runs at the top of the repository. Everything happens in network
// namespaces of its own, which it removes. Standard output gets the table, standard error the progress, and FILE
// every single value, for benchstat. A missed target is no error.
//
// With -publish the results go to hack/bench/RESULTS.md, where they replace earlier ones of the same figures. From
// that file it makes hack/bench/new-flows.svg, drawn by the module in hack/bench/picture, and the section
// Performance of README.md.
//
// The packages below measure; this one runs them and prints.
package main
