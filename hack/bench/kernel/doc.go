// Package kernel is what benchmarks do with the kernel of a node of package lab: empty it, feed rules to
// its tools, and run the product's writers there.
package kernel
