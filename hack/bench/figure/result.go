package figure

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Result is a row of the table.
type Result struct {
	// Name says what was measured, and At at which size, for example 1k. Both together identify a row.
	Name, At string
	// Measured has one value per round, ratios if Unit is empty.
	Measured Distribution
	Unit     string
	Target   Target
}

// Verdict is "met", "missed", or empty where there is no target.
func (r Result) Verdict() string {
	switch {
	case r.Target == None:
		return ""
	case r.Target.met(r.Measured.Median()):
		return "met"
	default:
		return "missed"
	}
}

// Value is the median with its unit.
func (r Result) Value() string { return withUnit(Number(r.Measured.Median()), r.Unit) }

// Spread is the range of the middle half of the rounds; empty for a single round.
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

// Target is a limit for a Result.
type Target struct {
	relation rune
	limit    float64
}

// None is for values without a target.
var None Target

// AtLeast is for values that should be large.
func AtLeast(limit float64) Target { return Target{'≥', limit} }

// AtMost is for values that should be small.
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
	return combine(dividend, divisor, func(a, b float64) float64 { return a / b })
}

// Difference subtracts two distributions round by round.
func Difference(minuend, subtrahend Distribution) Distribution {
	return combine(minuend, subtrahend, func(a, b float64) float64 { return a - b })
}

func combine(a, b Distribution, operation func(a, b float64) float64) Distribution {
	combined := make(Distribution, min(len(a), len(b)))
	for i := range combined {
		combined[i] = operation(a[i], b[i])
	}
	return combined
}

// Scale multiplies every value, for another unit.
func (d Distribution) Scale(factor float64) Distribution {
	scaled := make(Distribution, len(d))
	for i := range d {
		scaled[i] = d[i] * factor
	}
	return scaled
}

// Median returns NaN if there are no values.
func (d Distribution) Median() float64 { return d.quantile(0.5) }

// Quartiles enclose the middle half.
func (d Distribution) Quartiles() (low, high float64) { return d.quantile(0.25), d.quantile(0.75) }

// quantile interpolates between the two nearest values.
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

// Number prints three significant digits, and all digits before the decimal point.
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
