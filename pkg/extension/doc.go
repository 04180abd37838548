// Package extension lets any number of extensions act beside kube-proxy's proxier.
//
//	                       ┌─► extensions that follow Services and EndpointSlices
//	kube-proxy ─► Host ────┤
//	                       └─► the proxier ── after each sync ──► Host ─► every extension
//
// A [Host] is the one proxy.Provider around the proxier, and the one proxy.SyncExtension that the
// proxier calls. It passes everything on and keeps nothing. With it come the parts that an extension
// needs in any case: a [Gate] that opens when all kinds of objects are known, and a [Loop] that
// calls a sync function when something has changed, once changes have paused.
//
// A fault of an extension never stops Service programming: extensions act on goroutines of their
// own, after the proxier's transactions, and hold no lock of the proxier's.
//
// # How to write an extension
//
// pkg/tunnel is the smaller example: its plan is in pkg/tunnel/plan, its rules for three back ends in pkg/kernel/redirect. Write the parts in
// this order:
//
//  1. Values. Define in pkg/kernel the desired content of the kernel, as plain values that compare (redirects.go).
//  2. Plan. A pure package turns objects and configuration into these values, and into problems with a reason. It imports the standard
//     library and pkg/kernel. Tests state its rules in a table, and a fuzz test feeds it user input.
//  3. Drivers. A package below pkg/kernel turns the values into writes. For nftables give an nft.Spec and an nft.State, whose rules are
//     nft's own text, to an nft.Writer. For iptables name an iptables.Owner, with the prefix of its chains and its jumps, and give
//     rulesets to a Writer: it writes in one transaction, keeps the jumps in front, finds what a crash left, and checks its rules without
//     running a program. To find what to remove, look for names in the kernel.
//  4. Connections. Tracked connections keep the decisions of earlier rules. After a write, decide in pkg/kernel/conntrack which of them to
//     end, with a pure function of the old values, the new values and a conntrack entry. The process may die between the write and this
//     step. So each write records in the kernel what it removes, until the connections are checked (record.go of pkg/kernel/redirect).
//  5. Extension. Attach, ProxierSynced, Run. A [Gate] waits for all kinds of objects. A [Loop] for each IP family calls a sync, which
//     makes a plan and has the driver bring the kernel to it. ProxierSynced has the proxier's lock: only wake the loop. Follow Services by
//     implementing ServiceFollower as well, Nodes by the informer that all share (NewNodes, which keeps no more of a Node than the
//     extensions need), other objects with an informer of your own (Follow, Handler). NewRecorder writes Events, NewMetrics defines metrics.
//     systemd gets the Summary: READY=1 and the watchdog wait for every extension.
//  6. Wiring. Arguments in a file pkg/kubeproxy/arguments_NAME.go, the extension in extensions.go, removal at a start without it and by
//     --cleanup in cleanup.go, --dry-run in dryrun_NAME.go; a status.Resource for its commands in pkg/cmd; rights in a file of their own
//     in images/node.
//  7. Proof. Packets in a network namespace for each back end and IP family, and a scenario in hack/e2e beside the other extensions, in
//     which each is switched off without the others noticing.
package extension
