// Package manifests lets a node run without an API server: it reads the
// Services, EndpointSlices, Endpoints, Nodes, Namespaces, ServiceCIDRs and the
// Network (config.openshift.io) of a folder and serves them as a Kubernetes API
// on loopback.
//
//	DIR/*.yaml ─► document ─► object ─► Objects ─► store ─► HTTPS on 127.0.0.1
//	              (decode,    (default,  (sorted,  (resource   (discovery, get,
//	               lines)      validate)  unique)   versions)   list, watch)
//	    fsnotify and re-check ────────────────────┘   ▲              ▲
//	                             events that clients ─┘    client-go informers
//	                             create, patch, delete
//
// The vendored kube-proxy knows only a kubeconfig, so that is what it gets. Its
// informers and handlers are then fed exactly as by a real API server, and
// nothing in it has to know where the objects come from.
//
// What a file says is held to the API server's standard: decoding is strict,
// upstream's own defaulting and validation are applied, and every error names
// the file, the line and the field. Where the API server would fill in a value
// that it allocates (a cluster IP, a node port), there is nobody to allocate,
// so the file has to say it.
//
// While it watches, a folder that is broken in any way changes nothing: the
// last good state stays, whole, until the folder is good again.
//
// Events are the one thing that clients write. Those of events.k8s.io are
// validated as by the API server and kept in memory, the last thousand for an
// hour; the end of the process forgets them. Those of core are logged only.
//
// The package never writes to the folder, never listens on anything but
// loopback, never changes an object of a file because a client asks for it, and
// knows nothing of proxies.
package manifests
