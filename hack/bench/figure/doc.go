// Package figure is what all benchmarks of the program bench share: their names, how they measure in
// rounds, and the rows that they return.
//
// A Figure compares several cases in one run. [Settings.Measure] measures each case once per round, in
// random order, and [Ratio] divides the values of two cases round by round, so that whatever else the
// machine does hits both sides. Every value is recorded as a line for benchstat. Results are the rows of
// the table, with their targets.
//
// The package measures nothing itself and knows no particular figure.
package figure
