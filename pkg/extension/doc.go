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
package extension
