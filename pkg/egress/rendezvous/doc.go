// Package rendezvous ranks choices by hashing (Thaler and Ravishankar, "Using Name-Based Mappings to Increase Hit Rates", 1998): of those
// that there are, whoever chooses for a name takes the one with the highest score. All who choose for the same name among the same
// choices agree, and one that comes or goes changes nothing but its own share of the names. The package knows nothing of who chooses what.
//
// It is pure.
package rendezvous
