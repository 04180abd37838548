// Package tables is what benchmarks do with the rules and flows of a node of package lab: remove them, feed rules to
// the tools, and run the product's writers there.
package tables
