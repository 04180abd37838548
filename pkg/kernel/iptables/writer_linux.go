package iptables

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/kernel"
	nftables "github.com/openshift/origin-node/pkg/kernel/nft"
)

const (
	// lockWait is how long iptables waits for the xtables lock, in seconds; the proxier
	// waits as long.
	lockWait = "5"
	// execTimeout ends a command that hangs. A hundred thousand bindings take some 2 s.
	execTimeout = 30 * time.Second
)

var errHung = fmt.Errorf("did not end within %s", execTimeout)

// Writer keeps the owned chains of one IP family. It must not be used by two goroutines
// at once.
type Writer struct {
	owner    Owner
	commands commands
	// known is what the kernel holds, or nil if that is unknown.
	known *Kernel
	// mark is the one that the last write has left, until it is missed; empty if none.
	mark string
	// sights are the chains that others could change, as they were seen when the kernel was known to hold
	// what was written; without those that were written since.
	sights map[string]sight
	// backend is that of the iptables on PATH, as of the last Read; empty before the first.
	backend string
}

// NewWriter returns a Writer of the chains of [Egress], for family, that uses the iptables on PATH, as the
// proxier does.
func NewWriter(family kernel.Family) *Writer { return NewWriterFor(Egress, family) }

// NewWriterFor is NewWriter for the chains of another owner.
func NewWriterFor(owner Owner, family kernel.Family) *Writer {
	return &Writer{owner: owner, commands: commandsFor(family, "")}
}

// Read looks at what the kernel holds, so that the next Write repairs whatever differs.
// It returns that, and what is missing of the proxier's rules, as [MissingFromProxier] does.
func (w *Writer) Read(ctx context.Context) (k Kernel, missing []string, err error) {
	sights := w.seeAll(ctx)
	w.known = nil
	k, missing, err = w.commands.read(ctx, w.owner)
	if err != nil {
		return Kernel{}, nil, err
	}
	w.sights = sights
	if k.restored = w.mark != "" && len(k.marks) > 0 && !slices.Contains(k.marks, w.mark); k.restored {
		w.mark = ""
	}
	known := k.clone()
	w.known = &known
	return k, missing, nil
}

// Look returns what the kernel holds of one IP family, in the iptables on PATH. It changes
// nothing.
func Look(ctx context.Context, family kernel.Family) (Kernel, error) {
	return LookFor(ctx, Egress, family)
}

// LookFor is Look for the chains of another owner.
func LookFor(ctx context.Context, owner Owner, family kernel.Family) (Kernel, error) {
	k, _, err := commandsFor(family, "").read(ctx, owner)
	return k, err
}

// Write makes the kernel hold want and tells whether it had to change anything. It looks
// at the kernel first if it does not know it. After an error the kernel holds what it held
// before, and the next Write looks again.
func (w *Writer) Write(ctx context.Context, want Ruleset) (changed bool, err error) {
	if w.known == nil {
		if _, _, err := w.Read(ctx); err != nil {
			return false, err
		}
	}
	names := slices.Concat(slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(w.known.Chains)))
	return w.restore(ctx, want, *w.known, names)
}

// WriteChains is Write for a ruleset of which nothing but these chains, and the jump, differs from
// what was written last. It does not look at the kernel: an error may mean that somebody else
// has changed the rules.
func (w *Writer) WriteChains(ctx context.Context, want Ruleset, names []string) (changed bool, err error) {
	if w.known == nil {
		return false, errors.New("what the kernel holds is not known")
	}
	part, have := Ruleset{}, *w.known
	have.Chains = Ruleset{}
	for _, name := range append(names, RootChain, RemovedChain) { // with one of these, if anything is wanted
		if rules, wanted := want[name]; wanted {
			part[name] = rules
		}
		if rules, exists := w.known.Chains[name]; exists {
			have.Chains[name] = rules
		}
	}
	return w.restore(ctx, part, have, names)
}

// restore makes the chains of these names, which are all of want and of have, hold want.
func (w *Writer) restore(ctx context.Context, want Ruleset, have Kernel, names []string) (changed bool, err error) {
	mark := ""
	if len(want) > 0 {
		mark = w.owner.newMark()
	}
	change := edit(want, have, mark)
	payload := change.payload(want, have, nil)
	if payload == nil {
		return false, nil
	}
	if logger := klog.FromContext(ctx).V(9); logger.Enabled() {
		logger.Info("Restoring rules", "rules", string(payload))
	}
	if err := w.commands.apply(ctx, payload); err != nil {
		w.known = nil
		return false, err
	}
	w.known.become(want, names, mark)
	w.mark = mark
	for _, chain := range change.touched() {
		delete(w.sights, chain)
	}
	return true, nil
}

// become updates k after a transaction that made the chains of these names hold want, and left a mark
// or none.
func (k *Kernel) become(want Ruleset, names []string, mark string) {
	for _, name := range names {
		rules, wanted := want[name]
		_, exists := k.Chains[name]
		switch {
		case wanted:
			k.Chains[name] = rules
		case exists && k.held[name]:
			k.Chains[name] = nil
		default:
			delete(k.Chains, name)
		}
	}
	k.marks = slices.DeleteFunc(k.marks, func(name string) bool { return !k.held[name] })
	if mark != "" {
		k.marks = append(k.marks, mark)
	}
	k.hooks = map[string]hook{}
	for _, jump := range k.ownedBy().Jumps {
		if want.needs(jump) {
			k.hooks[jump.Chain] = hook{[]string{jump.Rule}, true}
		}
	}
}

// Installed tells whether the iptables that the Writer uses is on PATH.
func (w *Writer) Installed() bool { return w.commands.installed() }

// Check lets iptables-restore check payload without applying it.
func (w *Writer) Check(ctx context.Context, payload []byte) error {
	return w.commands.apply(ctx, payload, "--test")
}

// OtherBackend returns what an earlier run has written through the iptables back end that is
// not the one on PATH. A back end that cannot be used has nothing.
func (w *Writer) OtherBackend(ctx context.Context) (Kernel, error) {
	other, err := otherBackend(ctx, w.commands.family)
	if err != nil {
		return Kernel{}, err
	}
	if !other.usable(ctx) {
		return Kernel{}, nil
	}
	found, _, err := other.read(ctx, w.owner)
	return found, err
}

// PruneOtherBackend removes what an earlier run has written through the iptables back end
// that is not the one on PATH: its rules would act beside ours. A back end that cannot
// be used is no error.
func (w *Writer) PruneOtherBackend(ctx context.Context) error {
	other, err := otherBackend(ctx, w.commands.family)
	if err != nil {
		return err
	}
	_, err = empty(ctx, w.owner, other, false)
	return err
}

// Withdraw takes all bindings of both families out of the kernel, through every back end that can be
// used, but leaves them in the journal. It returns them, also where not all could be
// taken; [Cleanup] removes the journal when nothing depends on it any more.
func Withdraw(ctx context.Context) (map[kernel.Family][]kernel.Binding, error) {
	withdrawn := map[kernel.Family][]kernel.Binding{}
	err := everywhere(func(c commands) error {
		bindings, err := empty(ctx, Egress, c, true)
		withdrawn[c.family] = append(withdrawn[c.family], bindings...)
		return err
	})
	return withdrawn, err
}

// Cleanup removes all chains and rules of an owner, of both families and through every back end that can be
// used.
func Cleanup(ctx context.Context, owner Owner) error {
	return everywhere(func(c commands) error {
		_, err := empty(ctx, owner, c, false)
		return err
	})
}

func everywhere(do func(commands) error) error {
	var errs []error
	for _, family := range []kernel.Family{kernel.IPv4, kernel.IPv6} {
		for _, backend := range []string{"", backendLegacy, backendNFT} {
			errs = append(errs, do(commandsFor(family, backend)))
		}
	}
	return errors.Join(errs...)
}

// empty removes everything of ours, or leaves the journal of it, and returns the bindings that it
// stood for. A back end that cannot be used has none.
func empty(ctx context.Context, owner Owner, c commands, journal bool) ([]kernel.Binding, error) {
	if !c.usable(ctx) {
		return nil, nil
	}
	w := &Writer{owner: owner, commands: c}
	found, _, err := w.Read(ctx)
	switch {
	case errors.Is(err, ErrIncompatible) && !HasChainsOf(ctx, owner, c.family):
		return nil, nil // the table is others'
	case err != nil:
		return nil, err
	}
	bindings, want := found.Bindings(), Ruleset{}
	if journal {
		want.Record(bindings)
	}
	_, err = w.Write(ctx, want)
	return bindings, err
}

// installed tells whether the programs are there.
func (c commands) installed() bool {
	_, err := exec.LookPath(c.save)
	return !errors.Is(err, exec.ErrNotFound)
}

// usable tells whether the programs are installed and, for those of the back end nft, whether the kernel has nftables: without it
// iptables-nft-save fails.
func (c commands) usable(ctx context.Context) bool {
	if !c.installed() {
		return false
	}
	backend, err := c.name, error(nil)
	if backend == "" {
		backend, err = c.backend(ctx)
	}
	if err != nil || backend == backendLegacy {
		return true // an error comes again
	}
	r, err := nftables.OpenReader(ctx, c.family)
	if err == nil {
		r.Close()
	}
	return !errors.Is(err, nftables.ErrNone)
}

// commands are the programs of one family and back end.
type commands struct {
	family kernel.Family
	// name of the back end, or "" for what the system has chosen.
	name                   string
	version, save, restore string
}

// commandsFor returns the commands of family for the back end of that name.
func commandsFor(family kernel.Family, backend string) commands {
	base := "iptables"
	if family == kernel.IPv6 {
		base = "ip6tables"
	}
	if backend != "" {
		base += "-" + backend
	}
	return commands{family: family, name: backend, version: base, save: base + "-save", restore: base + "-restore"}
}

// The back ends of iptables, as its programs are named.
const backendLegacy, backendNFT = "legacy", "nft"

// backend returns backendLegacy or backendNFT.
func (c commands) backend(ctx context.Context) (string, error) {
	version, err := run(ctx, nil, c.version, "--version")
	if err != nil {
		return "", err
	}
	if strings.Contains(version, "nf_tables") {
		return backendNFT, nil
	}
	return backendLegacy, nil
}

// read reads all tables that exist, and returns the owned chains, and what is missing of the
// proxier's. Naming a table would make iptables-legacy create it.
func (c commands) read(ctx context.Context, owner Owner) (k Kernel, missing []string, err error) {
	ours, proxier := newKernelParser(owner), newProxierParser()
	if err := runLines(ctx, func(lines iter.Seq[string]) error { return parse(lines, ours, proxier) }, c.save); err != nil {
		return Kernel{}, nil, err
	}
	return ours.kernel, proxier.missing(), ours.err
}

// apply lets iptables-restore apply payload. Its complaint names a line, which the error
// quotes.
func (c commands) apply(ctx context.Context, payload []byte, options ...string) error {
	_, err := run(ctx, payload, c.restore, append([]string{"-w", lockWait, "--noflush"}, options...)...)
	if err == nil {
		return nil
	}
	if match := complaintLine.FindStringSubmatch(err.Error()); match != nil {
		number, _ := strconv.Atoi(match[1]) // digits
		if lines := strings.Split(string(payload), "\n"); 0 < number && number <= len(lines) {
			return fmt.Errorf("%w (%q)", err, lines[number-1])
		}
	}
	return err
}

var complaintLine = regexp.MustCompile(`line:? ([0-9]+)`)

// run runs name and returns its standard output; an error repeats its standard error. It
// is killed when ctx ends, which is harmless: a transaction is committed as a whole or not.
func run(ctx context.Context, stdin []byte, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, execTimeout, errHung)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := command(ctx, &stderr, name, args...)
	cmd.Stdin, cmd.Stdout = bytes.NewReader(stdin), &stdout
	if err := cmd.Run(); err != nil {
		return "", explain(ctx, err, &stderr, cmd)
	}
	return stdout.String(), nil
}

// runLines is run, and read gets the output line by line: there may be a hundred thousand.
func runLines(ctx context.Context, read func(iter.Seq[string]) error, name string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, execTimeout, errHung)
	defer cancel()
	var stderr bytes.Buffer
	cmd := command(ctx, &stderr, name)
	output, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := cmd.Start(); err != nil {
		return explain(ctx, err, &stderr, cmd)
	}
	// What a killed wrapper has started may keep the pipe open.
	defer context.AfterFunc(ctx, func() { _ = output.Close() })()
	lines := bufio.NewReaderSize(output, 64<<10)
	var unreadable error
	readErr := read(func(yield func(string) bool) {
		for {
			line, err := lines.ReadString('\n')
			if line != "" && !yield(line) {
				return
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					unreadable = err
				}
				return
			}
		}
	})
	if err := cmd.Wait(); err != nil {
		return explain(ctx, err, &stderr, cmd)
	}
	return errors.Join(unreadable, readErr)
}

func command(ctx context.Context, stderr io.Writer, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = stderr
	// Where a wrapper script stands in iptables' place, what it has started lives on and
	// keeps the pipes open.
	cmd.WaitDelay = time.Second
	return cmd
}

// explain adds to an error of a command what that has said.
func explain(ctx context.Context, err error, stderr *bytes.Buffer, cmd *exec.Cmd) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if message := strings.TrimSpace(stderr.String()); message != "" {
		err = fmt.Errorf("%w: %s", err, message)
	}
	return fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
}
