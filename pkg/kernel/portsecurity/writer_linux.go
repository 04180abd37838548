package portsecurity

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/openshift/origin-node/pkg/kernel"
	"github.com/openshift/origin-node/pkg/kernel/nft"
)

// Writer keeps the table. It must not be used by two goroutines at once.
type Writer struct {
	table *nft.Writer
	state nft.State
	// edit has what of the sets is not written yet.
	edit  nft.Edit
	owned map[netip.Addr]bool
	bound map[netip.Addr]bool
	// claimed are egress IPs, which are no pod's.
	claimed map[kernel.Family]map[netip.Addr]bool
}

// NewWriter returns a Writer for the network namespace of the process.
func NewWriter() *Writer {
	w := &Writer{table: nft.NewWriter(spec()), bound: map[netip.Addr]bool{}, owned: map[netip.Addr]bool{}, claimed: map[kernel.Family]map[netip.Addr]bool{}}
	w.state.Sets = nft.Content{}
	for _, set := range spec().Sets {
		w.state.Sets[set.Name] = nft.Elements{}
	}
	w.state.Chains, w.state.Devices = chains(nil, nil)
	w.edit = nft.NewEdit(w.state.Sets)
	return w
}

// Close gives back what the Writer has from the kernel. What it has written stays.
func (w *Writer) Close() { w.table.Close() }

// Adopt goes on with what an earlier process has written: which addresses belong to which interface, and whose pods are bound,
// until Unbind. There is no table if grants are nil.
func (w *Writer) Adopt(ctx context.Context) (grants Grants, bound []netip.Addr, err error) {
	held, _, err := w.table.Inspect(ctx)
	if err != nil || held.Sets == nil {
		return nil, nil, err
	}
	for _, names := range families {
		for key := range held.Sets[names.bound] {
			w.Bind(key.Pod)
			bound = append(bound, key.Pod)
		}
	}
	return granted(held), bound, nil
}

// SetInterfaces says which interfaces there are, and which addresses they have. Write writes it.
func (w *Writer) SetInterfaces(interfaces []Interface, grants Grants) {
	w.state.Chains, w.state.Devices = chains(interfaces, grants)
	before := w.owned
	w.owned = kernel.SetOf(slices.Concat(slices.Collect(maps.Values(grants))...))
	for address := range before {
		w.place(address)
	}
	for address := range w.owned {
		w.place(address)
	}
}

// Bind says that a pod with an address is bound, Unbind that none is. Write writes it.
func (w *Writer) Bind(address netip.Addr) {
	w.bound[address] = true
	w.place(address)
}

// Unbind is the opposite of Bind.
func (w *Writer) Unbind(address netip.Addr) {
	delete(w.bound, address)
	w.place(address)
}

// Claim says which egress IPs of a family Services claim: no pod may send from one. Write writes it.
func (w *Writer) Claim(family kernel.Family, claimed []netip.Addr) {
	before := w.claimed[family]
	w.claimed[family] = kernel.SetOf(claimed)
	for address := range before {
		w.place(address)
	}
	for _, address := range claimed {
		w.place(address)
	}
}

// place says of an address whether it is a bound pod's, and behind an interface that is known, or no pod's.
func (w *Writer) place(address netip.Addr) {
	family, key := kernel.FamilyOf(address), nft.Key{Pod: address}
	put := func(set string, is bool) {
		if is || w.claimed[family][address] {
			w.edit.Set(set, key, netip.Addr{})
		} else {
			w.edit.Remove(set, key)
		}
	}
	put(families[family].bound, w.bound[address])
	put(families[family].placed, w.bound[address] && w.owned[address])
}

// Unplaced returns the addresses of bound pods that are behind no interface that is known, sorted. Among them are those on
// other nodes.
func (w *Writer) Unplaced() (unplaced []netip.Addr) {
	for address := range w.bound {
		if !w.owned[address] {
			unplaced = append(unplaced, address)
		}
	}
	slices.SortFunc(unplaced, netip.Addr.Compare)
	return unplaced
}

// Placed tells whether an address is behind an interface that is known.
func (w *Writer) Placed(address netip.Addr) bool { return w.owned[address] }

// Bound tells whether an address is that of a bound pod.
func (w *Writer) Bound(address netip.Addr) bool { return w.bound[address] }

// Write makes the kernel hold what was said, and tells whether it had to change anything. With look it repairs what others
// have changed. It is an error if an interface has gone meanwhile: look at the interfaces again then.
func (w *Writer) Write(ctx context.Context, look bool) (changed bool, err error) {
	change := w.edit.Change()
	w.edit = nft.NewEdit(w.state.Sets)
	if w.table.Known() {
		changed, err = w.table.Change(ctx, w.state, change)
	} else {
		changed, err = w.table.Write(ctx, w.state)
	}
	if err != nil || !look {
		return changed, err
	}
	if _, _, err := w.table.Read(ctx); err != nil {
		return changed, err
	}
	repaired, err := w.table.Write(ctx, w.state)
	return changed || repaired, err
}

// Compare says, for an operator and in a line each, how the kernel differs from what was written last.
func (w *Writer) Compare(ctx context.Context) ([]string, error) {
	held, fault, err := w.table.Inspect(ctx)
	if err != nil {
		return nil, err
	}
	return spec().Differences(w.state, held, fault), nil
}

// Available returns why this kernel cannot check the sources of packets; nil if it can.
func Available(ctx context.Context) error {
	if _, err := Interfaces(nil, nil, func(Link) bool { return false }); err != nil {
		return err
	}
	tried := spec()
	tried.Name += "-try" // the table itself may be there, and stays
	w := nft.NewWriter(tried)
	defer w.Close()
	const loopback = 1
	rules, devices := chains([]Interface{{Link: Link{loopback, "lo"}}}, nil)
	if err := w.Try(ctx, nft.State{Sets: nft.Content{}, Chains: rules, Devices: devices}); err != nil {
		if errors.Is(err, nft.ErrNone) {
			return err
		}
		return fmt.Errorf("this kernel's nftables has no hook at the ingress of interfaces (CONFIG_NETFILTER_INGRESS, CONFIG_NF_TABLES_NETDEV): %w", err)
	}
	return nil
}

// Drops returns how many packets were dropped, by IP family; nothing if there is no table.
func Drops(ctx context.Context) (map[kernel.Family]uint64, error) {
	w := nft.NewWriter(spec())
	defer w.Close()
	counted, err := w.Counters(ctx)
	if err != nil || len(counted) == 0 {
		return nil, err
	}
	drops := map[kernel.Family]uint64{}
	for family, names := range families {
		drops[family] = counted[names.counter]
	}
	return drops, nil
}

// Cleanup removes the table, if there is one.
func Cleanup(ctx context.Context) error { return spec().Remove(ctx) }
