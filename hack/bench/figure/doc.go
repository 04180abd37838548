// Package figure is what every benchmark of the program bench has in common: what it is
// called, how it measures in rounds, and what it hands over.
//
// A Figure measures some cases against each other in one run, [Settings.Measure] takes one
// value of each in every round, in another order each time, and [Ratio] compares two of
// them round by round: what the machine does besides is mostly the same within a round. Each
// value is recorded as a line that benchstat reads; the Results are the lines of the
// table, with the targets that they are held against.
//
// The package measures nothing itself and knows no particular figure.
package figure
