// Package report tells people how egress SNAT stands on a node: the status and its snapshot, what a verification says, the faults that
// Events about the Node name, and the metrics that are counted when somebody asks.
//
//	loops, State, Steerer, pool, ... ─► Reporter ─┬─► Summary, Snapshot, Usage, Verify ─► the local socket, systemd
//	what parts say is wrong ─────────────┘        ├─► FaultsChanged ─► tell.EventRecorder
//	                                              └─► Collect ─► metrics
//
// A [Reporter] asks, and changes nothing that packets depend on. Only a verification that finds a difference asks for a full look, which
// repairs it, and repairs the check of sources at once. Package egress gives it the parts ([Parts]).
package report
