package specs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// State is how a spec ended.
type State string

// The states. A spec that panicked, timed out or was interrupted has failed.
const (
	Passed  State = "passed"
	Failed  State = "failed"
	Skipped State = "skipped"
	// Unselected is a spec that neither ran nor said why: the run was not asked for it.
	Unselected State = "unselected"
)

// Result is what became of a spec.
type Result struct {
	// Name is the whole one, as ginkgo matches it: "[sig-network] Services should …". Group is that of its containers: "Services".
	Name, Group string
	State       State
	// Reason is the message of a failure, or why the spec has skipped itself.
	Reason string `json:",omitempty"`
	Took   time.Duration
}

// Read reads ginkgo's report in JSON. What runs before or after all specs is a result only if it has failed.
func Read(r io.Reader) ([]Result, error) {
	var reports []struct {
		SpecReports []struct {
			ContainerHierarchyTexts           []string
			LeafNodeType, LeafNodeText, State string
			RunTime                           time.Duration
			Failure                           struct{ Message string }
		}
	}
	if err := json.NewDecoder(r).Decode(&reports); err != nil {
		return nil, fmt.Errorf("read ginkgo's report: %w", err)
	}
	var results []Result
	for _, report := range reports {
		for _, s := range report.SpecReports {
			group := strings.Join(s.ContainerHierarchyTexts, " ")
			result := Result{
				Name: group + " " + s.LeafNodeText, Group: strings.TrimPrefix(group, "[sig-network] "),
				State: stateOf(s.State, s.Failure.Message), Reason: s.Failure.Message, Took: s.RunTime,
			}
			if s.LeafNodeType != "It" {
				result.Name, result.Group = s.LeafNodeType, s.LeafNodeType
			}
			if s.LeafNodeType == "It" || result.State == Failed {
				results = append(results, result)
			}
		}
	}
	if len(results) == 0 {
		return nil, errors.New("ginkgo's report has no specs")
	}
	return results, nil
}

func stateOf(state, message string) State {
	switch {
	case state == "passed":
		return Passed
	case state == "pending" || state == "skipped" && message == "":
		return Unselected
	case state == "skipped":
		return Skipped
	}
	return Failed
}

// Limit is what an environment cannot do.
type Limit struct {
	// Specs are those that it is about.
	Specs *regexp.Regexp
	// Run says that they are run and may fail; all others are left out.
	Run bool
	// Only is the proxy mode that it is about; empty for all.
	Only   string
	Reason string
}

// Environment is all that one cannot do.
type Environment []Limit

// heading is the first line of a limit.
var heading = regexp.MustCompile(`^(left out|may fail)(?: ((?:in|without) \w+))?: (.+)$`)

// ParseEnvironment parses a file in which each limit is a line "left out: REGEXP" or "may fail: REGEXP", with "in MODE" in
// front of the colon if it is about one proxy mode, or "without THING" if about machines that lack something, and indented lines below it with the reason. Lines that begin with # are
// comments.
func ParseEnvironment(text string) (Environment, error) {
	var env Environment
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		found := heading.FindStringSubmatch(line)
		switch {
		case line == "" || line[0] == '#':
		case found != nil:
			specs, err := regexp.Compile(found[3])
			if err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
			env = append(env, Limit{Specs: specs, Run: found[1] == "may fail", Only: found[2]})
		case line[0] == ' ' && len(env) > 0:
			last := &env[len(env)-1]
			last.Reason = strings.TrimSpace(last.Reason + " " + strings.TrimSpace(line))
		default:
			return nil, fmt.Errorf("%q: want \"left out: REGEXP\", \"may fail: REGEXP\" or an indented reason", line)
		}
	}
	for _, limit := range env {
		if limit.Reason == "" {
			return nil, fmt.Errorf("%q has no reason", limit.Specs)
		}
	}
	return env, nil
}

// Of is what of the environment holds under these conditions, such as "in nftables".
func (e Environment) Of(conditions ...string) Environment {
	return slices.DeleteFunc(slices.Clone(e), func(l Limit) bool { return l.Only != "" && !slices.Contains(conditions, l.Only) })
}

// LeftOut is a regular expression for all specs that are left out.
func (e Environment) LeftOut() string {
	var patterns []string
	for _, l := range e {
		if !l.Run {
			patterns = append(patterns, l.Specs.String())
		}
	}
	return strings.Join(patterns, "|")
}

// find returns the first limit of a kind that is about a spec; nil if there is none.
func (e Environment) find(name string, run bool) *Limit {
	i := slices.IndexFunc(e, func(l Limit) bool { return l.Run == run && l.Specs.MatchString(name) })
	if i < 0 {
		return nil
	}
	return &e[i]
}

// Verdict is a run that has been held against its environment.
type Verdict struct {
	groups []group
	// Failed are the specs that should not have.
	Failed []Result
	// excused are failures that the environment explains, and skipped what was not run, each by its reason.
	excused, skipped map[string][]Result
}

// group counts the specs of a container, such as Services.
type group struct {
	name                    string
	passed, failed, skipped int
}

// Judge judges the specs that focus asks for.
func Judge(results []Result, focus *regexp.Regexp, env Environment) Verdict {
	v := Verdict{excused: map[string][]Result{}, skipped: map[string][]Result{}}
	for _, r := range results {
		if r.State == Unselected {
			limit := env.find(r.Name, false)
			if limit == nil || !focus.MatchString(r.Name) {
				continue
			}
			r.State, r.Reason = Skipped, limit.Reason
		}
		v.count(r)
		switch r.State {
		case Skipped:
			v.skipped[r.Reason] = append(v.skipped[r.Reason], r)
		case Failed:
			if limit := env.find(r.Name, true); limit != nil {
				v.excused[limit.Reason] = append(v.excused[limit.Reason], r)
			} else {
				v.Failed = append(v.Failed, r)
			}
		}
	}
	return v
}

// count counts a spec in its group.
func (v *Verdict) count(r Result) {
	i := slices.IndexFunc(v.groups, func(g group) bool { return g.name == r.Group })
	if i < 0 {
		i = len(v.groups)
		v.groups = append(v.groups, group{name: r.Group})
	}
	switch r.State {
	case Passed:
		v.groups[i].passed++
	case Failed:
		v.groups[i].failed++
	default:
		v.groups[i].skipped++
	}
}

// Write writes a table of the groups, and below it what failed and what was skipped, each with its reason.
func (v Verdict) Write(w io.Writer) error {
	slices.SortFunc(v.groups, func(a, b group) int { return strings.Compare(a.name, b.name) })
	total := group{name: "all"}
	rows := &strings.Builder{}
	row := func(g group) { fmt.Fprintf(rows, "%s\t%d\t%d\t%d\n", g.name, g.passed, g.failed, g.skipped) }
	for _, g := range v.groups {
		row(g)
		total.passed, total.failed, total.skipped = total.passed+g.passed, total.failed+g.failed, total.skipped+g.skipped
	}
	row(total)
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	_, err := io.WriteString(t, "SPECS\tPASSED\tFAILED\tSKIPPED\n"+rows.String())
	if err = errors.Join(err, t.Flush()); err != nil {
		return err
	}
	var b strings.Builder
	for _, r := range v.Failed {
		fmt.Fprintf(&b, "\nFAILED: %s\n    %s\n", r.Name, firstLine(r.Reason))
	}
	writeReasons(&b, "Failed, as expected here", v.excused)
	writeReasons(&b, "Skipped", v.skipped)
	_, err = io.WriteString(w, b.String())
	return err
}

// writeReasons tells the specs of each reason: all of a few, or how many there are.
func writeReasons(b *strings.Builder, heading string, by map[string][]Result) {
	const few = 6
	for _, reason := range slices.Sorted(maps.Keys(by)) {
		fmt.Fprintf(b, "\n%s, %d: %s\n", heading, len(by[reason]), firstLine(reason))
		for i, r := range by[reason] {
			if i == few {
				fmt.Fprintf(b, "    and %d more\n", len(by[reason])-few)
				break
			}
			fmt.Fprintf(b, "    %s\n", r.Name)
		}
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// Differences tells which specs passed in another run, but not in ours, and which ended otherwise in any other way, if both runs
// had them.
func Differences(ours, others []Result) (worse, other []string) {
	states := map[string]State{}
	for _, r := range others {
		states[r.Name] = r.State
	}
	for _, r := range ours {
		there := states[r.Name]
		line := fmt.Sprintf("%s: %s, there %s", r.Name, r.State, there)
		switch {
		case there == "" || there == Unselected || r.State == Unselected || there == r.State:
		case there == Passed:
			worse = append(worse, line)
		default:
			other = append(other, line)
		}
	}
	slices.Sort(worse)
	slices.Sort(other)
	return worse, other
}
