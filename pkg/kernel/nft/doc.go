// Package nft keeps an nftables table of one's own as it should be, over netlink. It knows how to
// write, change, read and compare one; its users say what is in it.
//
// A [Spec] says what never changes of a table: sets, counters, base chains. A [State] says what it
// should hold: the elements of the sets, and the rules of the chains. The [Writer] sends what
// differs from what the kernel holds, in one transaction, all of it or nothing. It remembers what
// it wrote, and the generation of the kernel's ruleset with it, so that a look at a kernel that
// nobody has changed costs one message. If somebody has changed the ruleset, most often the proxier its own
// tables, a look compares digests of the sets and makes no copy of them.
//
// Of tables of others it reads what somebody looks for in them ([Conn.Chains], [Reader]), again only when the generation has changed ([Found]).
//
// Elements with a timeout are not compared: packets write them, or the State has them as passing, to be written once. Package conntrack has
// many, and may not lose them with the table: it has a connection of its own, adds the messages of [Spec.Make] to its transactions, and
// keeps the elements itself.
//
// # Rules
//
// A rule is written as nft reads it, with IP for ip or ip6:
//
//	spec.Commented("a bound pod", "IP saddr . meta l4proto @bound goto bound-pod")
//
// makes the expressions that nft makes of that text, in the same order. Where a source NAT asks a map, the map comes first, and no field is
// loaded twice: nft prints the same text, and what it makes of that decides the same. The package knows the part of nft's language that our rules need:
// fields of packets (fields_linux.go), matches, and what a rule does (rule_linux.go). A new word is a line in one of their tables,
// and one in the test that compares it with what nft itself makes of it. A text that it cannot read is an error of whoever writes the table.
// [Spec.Text] prints a whole table for nft -f. There is one statement that nft has no words for, source NAT by a map of ports: see snatByMap.
//
// A rule is recognised by a mark in its user data. [Spec.Commented] makes the mark of the rule's comment and a hash of its expressions.
// The expressions themselves are not compared: nobody can change them and keep the mark. When nft restores its own listing, a rule keeps
// its mark only if it still does the same. If anything else is not as it was written, such as a base chain or the table's
// flags, the whole table is written anew. Its counters go on from where they were.
package nft
