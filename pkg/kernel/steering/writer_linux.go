package steering

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// Writer keeps what steers the packets of one IP family. It must not be used by two goroutines at
// once, and not in two network namespaces.
type Writer struct {
	config Config
	layout layout
	table  *nft.Writer
	ways   holderWays
	belief
	// links are what the interfaces were at the last write.
	links links
	// pods are the networks of the cluster's pods as of the last Write or Update. Only Write changes the settings that follow from them.
	pods []netip.Prefix
	// before are the settings that this process and earlier ones have changed; nil if they are not known yet.
	before settings
	// removed are the bindings that the next write keeps on record.
	removed []kernel.Binding
	// here are the egress IPs that were here at the last write, and fresh those that have come of late; nil before the first one.
	here  map[netip.Addr]bool
	fresh map[nft.Key]nft.Passing
	// numbers are those that the kernel may hold something for; nil if that is not known yet.
	numbers numbers
	fast    fast
	// glanced is what the last Fingerprint has seen, if nothing was written or compared since.
	glanced *glanced
}

// holderWays are what carries marked packets to the nodes that hold egress IPs: a device, routes and rules.
type holderWays interface {
	ensure(ctx context.Context, holders map[int]netip.Addr) (changed bool, err error)
	remove(ctx context.Context, number int) error
	glance(ctx context.Context, holders map[int]netip.Addr) (fingerprint string, differences []string, err error)
	known(ctx context.Context, nodes []netip.Addr) (numbers, error)
}

// NewWriter returns a Writer for the network namespace of the process.
func NewWriter(c Config) *Writer { return newWriter(c, newPath(c)) }

func newWriter(c Config, ways holderWays) *Writer {
	l := newLayout(c)
	return &Writer{config: c, layout: l, table: nft.NewWriter(l.spec), ways: ways, fast: fast{Path: c.Fast}}
}

// Close gives back what the Writer has from the kernel. What it has written stays.
func (w *Writer) Close() { w.table.Close() }

// Record has the next Write or Update, and those that follow, keep bindings on record that were removed: in the same transaction, and in a
// set that no packet meets. A process that dies before it has seen to their flows leaves the next one to know of them ([Stands]). It tells
// whether these are others than before.
func (w *Writer) Record(removed []kernel.Binding) (others bool) {
	others = !slices.Equal(w.removed, removed)
	w.removed = removed
	return others
}

// Standing returns what the table had when it was read or written last.
func (w *Writer) Standing() Standing {
	if w.numbers == nil { // nothing has been written: the numbers are those of who wrote the table
		return standingLeft(w.config.Family, w.table.Held().Sets)
	}
	return standingOf(w.table.Held().Sets, w.numbers.holders())
}

// Elements returns the number of elements that were written last.
func (w *Writer) Elements() int { return w.table.Held().Sets.Elements() }

// Write makes the kernel hold what d asks for, whatever it holds, and tells whether it had to change
// anything. leaving are bindings that are not wanted any more: what their pods send is dropped, so that no flow begins
// while theirs are judged. After an error some of it may be missing: call Write again.
//
// The table is written even if what carries packets to other nodes cannot be made: then the guard drops these
// packets.
func (w *Writer) Write(ctx context.Context, d kernel.Desired, leaving []kernel.Binding) (changed bool, err error) {
	if err := w.readRecord(ctx); err != nil { // a table without it would erase it
		return false, err
	}
	w.pods = d.ClusterCIDRs
	w.content = w.contentOf(d, leaving)
	changes, settingsErr := w.prepareSettings()
	w.markFresh(time.Now())
	guarded, err := w.guard(ctx, d, leaving)
	if err != nil {
		return false, errors.Join(settingsErr, w.forgetAfter(err))
	}
	var wayErr error
	if w.numbers == nil { // until they are known no packet is sent to another node
		w.numbers, wayErr = w.ways.known(ctx, d.Steering.Nodes)
	}
	changed, err = w.write(ctx, true, func(assigned numbers) (bool, error) {
		if links, err := w.readLinks(); err == nil {
			w.links = links
		} else {
			wayErr = errors.Join(wayErr, err)
		}
		w.fast.uplink = w.fast.look(w.config)
		w.content.point(nft.NewFill(w.content.sets), assigned)
		w.limit(nil, assigned, true)
		return w.table.Write(ctx, w.layout.stateOf(w.content, assigned, w.links))
	})
	if isWritten(err) {
		settingsErr = errors.Join(settingsErr, changeSettings(ctx, changes)) // they are on record now
	}
	if settingsErr == nil && wayErr == nil {
		w.extend(err)
	}
	return changed || guarded || len(changes) > 0, errors.Join(settingsErr, wayErr, err)
}

func (w *Writer) contentOf(d kernel.Desired, leaving []kernel.Binding) *content {
	c := newContent(w.config, d, leaving)
	c.sets[removedSet] = journalOf(w.removed)
	return c
}

// guard writes the table where there is none, before there is a device by which other nodes' packets arrive. Packets that
// need a node that has no number yet are rejected. It tells whether it has.
func (w *Writer) guard(ctx context.Context, d kernel.Desired, leaving []kernel.Binding) (changed bool, err error) {
	if w.table.Held().Sets != nil {
		return false, nil
	}
	at, err := w.readLinks()
	if err != nil {
		at = links{} // the write that follows says so
	}
	content := w.contentOf(d, leaving) // w.content is for the next write, which sends what differs from this one
	content.before, content.blocks.fresh = w.before, w.fresh
	return w.table.Write(ctx, w.layout.stateOf(content, w.numbers, at))
}

// readRecord reads once, before the table is first written, which settings the one in the kernel has on record.
func (w *Writer) readRecord(ctx context.Context) error {
	if w.before != nil {
		return nil
	}
	held, _, err := w.table.Read(ctx)
	if err != nil {
		return fmt.Errorf("read which settings the nftables table %s has on record: %w", Table, err)
	}
	w.before = recordOf(held)
	if w.config.Fast == nil { // an earlier process may have had one
		w.before.putBackFast(ctx)
	}
	return nil
}

// prepareSettings returns the settings that have to be changed, and has the table record them.
func (w *Writer) prepareSettings() (changes []setting, err error) {
	w.content.before = w.before
	if changes, err = w.config.settings(w.pods); err != nil {
		return nil, err
	}
	w.before.add(changes)
	return changes, nil
}

// Update is Write for what c changes since the last write. Leaving are those of the bindings removed so far that are to be treated as in
// Write; the others go. It costs what c is about, and does not look at the kernel. If the table is not [Writer.Known] after an error,
// only Write will do.
func (w *Writer) Update(ctx context.Context, c kernel.Change, leaving []kernel.Binding) (changed bool, err error) {
	if c.NetworksChanged { // the next look finds what settings that asks for
		w.pods = c.Networks.ClusterCIDRs
	}
	if w.content == nil {
		return false, fmt.Errorf("write the nftables table %s: what it holds is not known", Table)
	}
	edit := w.content.follow(c, leaving)
	edit.Replace(removedSet, journalOf(w.removed))
	w.markFresh(time.Now())
	changed, err = w.write(ctx, false, func(assigned numbers) (bool, error) {
		w.content.point(edit, assigned)
		change := edit.Change()
		w.limit(&change, assigned, c.NetworksChanged || c.SteeringChanged || !maps.Equal(assigned, w.numbers))
		return w.table.Change(ctx, w.layout.stateOf(w.content, assigned, w.links), change)
	})
	w.extend(err)
	return changed, err
}

// Known tells whether the table is as it was written last, as far as this process knows.
func (w *Writer) Known() bool { return w.content != nil }

// write gives the holders of the content numbers, makes the ways to them, if they are new or all are to be
// looked at, has send bring the table into the kernel, and removes the ways that are no longer needed. Without a way
// the table is sent all the same, and nothing is removed.
func (w *Writer) write(ctx context.Context, all bool, send func(assigned numbers) (changed bool, err error)) (changed bool, err error) {
	w.glanced = nil
	if w.numbers == nil {
		changed, err = send(nil)
		return changed, w.forgetAfter(err)
	}
	assigned, left := w.numbers.assign(w.content.holders())
	var wayErr error
	if all || !maps.Equal(assigned, w.numbers) {
		changed, wayErr = w.ways.ensure(ctx, assigned.holders())
	}
	sent, err := send(assigned)
	changed = changed || sent
	if err != nil || wayErr != nil {
		maps.Copy(w.numbers, assigned) // the kernel may hold something for any of them
		return changed, errors.Join(wayErr, w.forgetAfter(err))
	}
	removed, err := w.removeAllBut(ctx, assigned)
	if err == nil && len(left) > 0 {
		err = tooManyError(left)
	}
	return changed || removed, err
}

// belief is what a writer knows of its table.
type belief struct {
	// content is that of what was written last, if the kernel is known to hold it.
	content *content
}

// forgetAfter forgets what the table holds if writing it failed.
func (b *belief) forgetAfter(err error) error {
	if err != nil {
		b.content = nil
	}
	return err
}

// removeAllBut removes the ways of the other numbers. Those that cannot be removed stay in use.
func (w *Writer) removeAllBut(ctx context.Context, assigned numbers) (removed bool, err error) {
	before := w.numbers
	w.numbers = assigned
	var errs []error
	for node, number := range before {
		if _, stays := assigned[node]; stays {
			continue
		}
		removed = true
		if err := w.ways.remove(ctx, number); err != nil {
			w.numbers[node] = number
			errs = append(errs, err)
		}
	}
	return removed, errors.Join(errs...)
}

// readLinks reads what the table depends on of interfaces.
func (w *Writer) readLinks() (links, error) {
	if w.config.Transport == Direct {
		s, err := w.config.uplinkState()
		return links{uplink: s.uplink.name}, err
	}
	device, err := findDevice()
	if device == nil || err != nil { // nil: somebody has deleted it, which the next look finds
		return links{}, err
	}
	return links{mss: largestSegment(w.config.Family, device.Attrs().MTU)}, nil
}

// Differences are how the kernel differs from what was written last, for a log and in a line each.
type Differences struct {
	// Table are those of the table, and Path those of what carries marked packets, or why they cannot be told.
	Table, Path []string
}

// Read looks for differences, which the next Write repairs. A process that has written nothing yet gets none.
func (w *Writer) Read(ctx context.Context) (d Differences, err error) {
	if _, d.Table, err = w.table.Read(ctx); err != nil {
		return Differences{}, err
	}
	if len(d.Table) > 0 || !w.table.Known() {
		w.content = nil
	}
	if w.numbers == nil {
		return d, nil
	}
	if d.Path, err = w.differencesOfWays(ctx); err != nil {
		d.Path = []string{fmt.Sprintf("it cannot be read: %v", err)}
	}
	return d, nil
}

// Untouched tells whether the kernel holds what was written or seen last. It makes no copy of the table. It is
// false where that cannot be told: then Read can.
func (w *Writer) Untouched(ctx context.Context) (bool, error) {
	if w.numbers == nil {
		return false, nil
	}
	if same, err := w.table.Untouched(ctx); !same || err != nil {
		return false, err
	}
	differences, err := w.differencesOfWays(ctx)
	return len(differences) == 0, err
}

// TableUntouched is Untouched of the table alone.
func (w *Writer) TableUntouched(ctx context.Context) (bool, error) { return w.table.Untouched(ctx) }

// differencesOfWays says how what carries marked packets differs from what was written last. If the last Fingerprint has
// read it, it is not read again: what changes meanwhile shows in the next one.
func (w *Writer) differencesOfWays(ctx context.Context) ([]string, error) {
	seen := w.glanced
	w.glanced = nil
	if seen == nil {
		var err error
		if seen, err = w.glance(ctx); err != nil {
			return nil, err
		}
	}
	return seen.differences, nil
}

// Fingerprint returns another text when something has changed of what carries marked packets. Changes of the
// table show in the generation of the kernel's ruleset.
func (w *Writer) Fingerprint(ctx context.Context) (string, error) {
	var err error
	if w.glanced, err = w.glance(ctx); err != nil {
		return "", err
	}
	return w.glanced.fingerprint, nil
}

// glanced is what carries marked packets: all of it in a few words, and how it differs from what was written last.
type glanced struct {
	fingerprint string
	differences []string
}

func (w *Writer) glance(ctx context.Context) (*glanced, error) {
	changes, err := w.config.settings(w.pods)
	if err != nil {
		return nil, err
	}
	fingerprint, differences, err := w.ways.glance(ctx, w.numbers.holders())
	if err != nil {
		return nil, err
	}
	differences = append(differences, describeSettings(changes)...)
	if at, err := w.readLinks(); err != nil {
		return nil, err
	} else if at != w.links || w.fast.look(w.config) != w.fast.uplink {
		differences = append(differences, "the interface that leads to the other nodes, or its MTU, is not what it was when the rules were written")
	}
	return &glanced{fmt.Sprintf("%s\n%v", fingerprint, changes), differences}, nil
}

// Drops returns how many packets of an IP family were dropped, by the reason, since the table was made;
// nothing if there is no table. It may be called while a [Writer] writes.
func Drops(ctx context.Context, family kernel.Family) (map[string]uint64, error) {
	w := nft.NewWriter(nft.Spec{Name: Table, Family: family, Counters: counters})
	defer w.Close()
	return w.Counters(ctx)
}

// Available returns why packets cannot be steered with this kernel; nil if they can. It leaves nothing.
func Available(ctx context.Context, c Config) error {
	d, pod, egressIP := probe(c.Family)
	whole := c
	whole.NodeIP = pod // so that there is all that depends on one
	l := newLayout(whole)
	spec := l.spec
	spec.Name = Table + "-probe"
	w := nft.NewWriter(spec)
	defer w.Close()
	d.Steering.Ways = map[netip.Addr]kernel.Way{egressIP: {Kind: kernel.Prohibit}}
	d.Steering.Blocks = []kernel.Block{{Pod: pod, EgressIP: egressIP, Ports: kernel.Ports{First: 1024, Last: 2047}}}
	d.Steering.Shared = map[netip.Addr]kernel.Ports{egressIP: {First: 61440, Last: 65535}}
	if err := w.Try(ctx, l.stateOf(newContent(whole, d, nil), nil, links{uplink: "lo", mss: largestSegment(c.Family, 1450)})); err != nil {
		if errors.Is(err, nft.ErrNone) {
			return err
		}
		return fmt.Errorf("the kernel refuses what steering needs of nftables: %w", err)
	}
	return pathAvailable(ctx, c)
}

// probe returns bindings of a pod for which a kernel is asked whether it can do all that a table needs, of addresses of documentation
// (RFC 5737 and RFC 3849).
func probe(family kernel.Family) (d kernel.Desired, pod, egressIP netip.Addr) {
	pod, egressIP = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	if family == kernel.IPv6 {
		pod, egressIP = netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
	}
	d.ClusterCIDRs = []netip.Prefix{netip.PrefixFrom(pod, pod.BitLen())}
	for _, protocol := range []kernel.Protocol{kernel.TCP, kernel.All} {
		d.Bindings = append(d.Bindings, kernel.Binding{Pod: pod, Protocol: protocol, EgressIP: egressIP})
	}
	return d, pod, egressIP
}
