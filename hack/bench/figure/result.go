package figure

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Result is a line of the table.
type Result struct {
	// Name says what was measured, for people; Results that differ in At alone have the
	// same, and become one line of README.md.
	Name string
	// At is the size: 1k for example. It may be empty.
	At string
	// Measured is one value per round, a ratio if Unit is empty.
	Measured Distribution
	Unit     string
	Target   Target
}

// Met tells whether the median meets the target. There may be none to meet.
func (r Result) Met() bool { return r.Target.met(r.Measured.Median()) }

// Verdict is "met", "missed", or empty where there is no target.
func (r Result) Verdict() string {
	switch {
	case r.Target == None:
		return ""
	case r.Met():
		return "met"
	default:
		return "missed"
	}
}

// Value is the median with its unit.
func (r Result) Value() string { return withUnit(Number(r.Measured.Median()), r.Unit) }

// Spread is the range that the middle half of the rounds lies in; empty for a single one.
func (r Result) Spread() string {
	if len(r.Measured) < 2 {
		return ""
	}
	low, high := r.Measured.Quartiles()
	return Number(low) + "–" + Number(high)
}

// Wants is the target with its unit.
func (r Result) Wants() string {
	if r.Target == None {
		return ""
	}
	return withUnit(fmt.Sprintf("%c %s", r.Target.relation, Number(r.Target.limit)), r.Unit)
}

func withUnit(number, unit string) string {
	if unit == "" {
		return number
	}
	return number + " " + unit
}

// Target is what a Result should reach.
type Target struct {
	relation rune
	limit    float64
}

// None is the target of what is only shown.
var None Target

// AtLeast is the target of what should be large.
func AtLeast(limit float64) Target { return Target{'≥', limit} }

// AtMost is the target of what should be small.
func AtMost(limit float64) Target { return Target{'≤', limit} }

func (t Target) met(value float64) bool {
	switch t.relation {
	case '≥':
		return value >= t.limit
	case '≤':
		return value <= t.limit
	default:
		return true
	}
}

// Distribution has one value per round.
type Distribution []float64

// Ratio divides two distributions round by round.
func Ratio(dividend, divisor Distribution) Distribution {
	ratios := make(Distribution, min(len(dividend), len(divisor)))
	for i := range ratios {
		ratios[i] = dividend[i] / divisor[i]
	}
	return ratios
}

// Scale multiplies every value, for another unit.
func (d Distribution) Scale(factor float64) Distribution {
	scaled := make(Distribution, len(d))
	for i := range d {
		scaled[i] = d[i] * factor
	}
	return scaled
}

// Median is the one in the middle; not a number if there are no values.
func (d Distribution) Median() float64 { return d.quantile(0.5) }

// Quartiles enclose the middle half.
func (d Distribution) Quartiles() (low, high float64) { return d.quantile(0.25), d.quantile(0.75) }

// quantile interpolates between the two values next to it.
func (d Distribution) quantile(q float64) float64 {
	if len(d) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(d))
	position := q * float64(len(sorted)-1)
	below := int(position)
	above := min(below+1, len(sorted)-1)
	return sorted[below] + (position-float64(below))*(sorted[above]-sorted[below])
}

// Number prints three significant digits, and all before the decimal point.
func Number(value float64) string {
	if math.Abs(value) >= 100 || value == 0 {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(value))))
	return strconv.FormatFloat(value, 'f', digits, 64)
}

// Size prints a round number as 100, 1k, 10k.
func Size(n int) string {
	if n >= 1000 && n%1000 == 0 {
		return strconv.Itoa(n/1000) + "k"
	}
	return strconv.Itoa(n)
}
