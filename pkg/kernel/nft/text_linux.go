package nft

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/nftables"

	"github.com/openshift/origin-node/pkg/kernel"
)

// Text returns the input of nft -f that makes the table as it should be, where there is none. What nft has no words for it makes otherwise, in
// IPv4, or leaves out: see snatByMap.
func (s Spec) Text(want State) (string, error) { return s.TextWith(want, nil) }

// TextWith is Text with comments behind elements, by the set and the key. They have no line breaks.
func (s Spec) TextWith(want State, comments map[string]map[Key]string) (string, error) {
	if err := want.err(); err != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "table %s %s {\n", FamilyNames[languageOf(s).table], s.Name)
	for _, name := range s.Counters {
		fmt.Fprintf(&out, "\tcounter %s { }\n", name)
	}
	for _, set := range s.Sets {
		set.writeText(&out, s.familyOf(set), want.Sets[set.Name], comments[set.Name])
	}
	for _, name := range slices.Sorted(maps.Keys(want.Chains)) {
		if !s.isBase(name) {
			s.writeChain(&out, name, atDevice(want.Devices[name]), want.Chains[name])
		}
	}
	for _, chain := range s.Chains {
		s.writeChain(&out, chain.Name, fmt.Sprintf("type %s hook %s priority %d; policy accept;", chain.Type, hookNames[*chain.Hook], chain.Priority), want.Chains[chain.Name])
	}
	out.WriteString("}\n")
	return out.String(), nil
}

var hookNames = map[nftables.ChainHook]string{
	*nftables.ChainHookPrerouting: "prerouting", *nftables.ChainHookInput: "input", *nftables.ChainHookForward: "forward", *nftables.ChainHookOutput: "output",
	*nftables.ChainHookPostrouting: "postrouting",
}

func atDevice(device string) string {
	if device == "" {
		return ""
	}
	return fmt.Sprintf("type filter hook ingress device %q priority %d; policy accept;", device, ingressPriority)
}

func (s Spec) writeChain(out *strings.Builder, name, hook string, rules []Rule) {
	fmt.Fprintf(out, "\tchain %s {\n", name)
	if hook != "" {
		fmt.Fprintf(out, "\t\t%s\n", hook)
	}
	for _, r := range rules {
		text := r.Text
		if r.Comment != "" {
			text += fmt.Sprintf(" comment %q", r.Comment)
		}
		if r.unsaid && s.Family == kernel.IPv6 {
			text = "# nft cannot read this: " + text
		}
		fmt.Fprintf(out, "\t\t%s\n", text)
	}
	out.WriteString("\t}\n")
}

func (s Set) writeText(out *strings.Builder, family kernel.Family, elements Elements, comments map[Key]string) {
	kind := "set"
	if s.Map {
		kind = "map"
	}
	fmt.Fprintf(out, "\t%s %s {\n\t\ttype %s;\n", kind, s.Name, s.typeText(family))
	switch {
	case s.Ranges, s.PortRange:
		out.WriteString("\t\tflags interval;\n")
	case s.Passing:
		fmt.Fprintf(out, "\t\tflags timeout; timeout %s;\n", s.Timeout)
	case s.learned():
		fmt.Fprintf(out, "\t\tsize %d; flags dynamic,timeout; timeout %s;\n", s.Size, s.Timeout)
	}
	if len(elements) > 0 {
		out.WriteString("\t\telements = {\n")
		for _, key := range slices.SortedFunc(maps.Keys(elements), compareKeys) {
			fmt.Fprintf(out, "\t\t\t%s,", s.Text(key, elements[key]))
			if comment := comments[key]; comment != "" {
				fmt.Fprintf(out, " # %s", comment) // in the same line: nft 0.9.8 reads no other between elements
			}
			out.WriteString("\n")
		}
		out.WriteString("\t\t}\n")
	}
	out.WriteString("\t}\n")
}

// typeText is the type of a set as nft has it.
func (s Set) typeText(family kernel.Family) string {
	set := s.definition(nil, FamilyOf(family))
	switch {
	case s.GivesPorts:
		return set.KeyType.Name + " : interval " + set.DataType.Name
	case s.Map:
		return set.KeyType.Name + " : " + set.DataType.Name
	}
	return set.KeyType.Name
}

// compareKeys sorts elements for readers.
func compareKeys(a, b Key) int {
	return cmp.Or(a.Pod.Compare(b.Pod), cmp.Compare(a.Protocol, b.Protocol), a.Other.Compare(b.Other),
		cmp.Compare(a.Port, b.Port), cmp.Compare(a.Ports.First, b.Ports.First), bytes.Compare(a.Hardware[:], b.Hardware[:]))
}
