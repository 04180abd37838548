// Package manifests lets a node run without an API server: it reads the
// Services, EndpointSlices, Endpoints, Nodes, Namespaces, ServiceCIDRs and the
// Network (config.openshift.io) of a folder and serves them as a Kubernetes API
// on loopback. That is 'openshift start node --manifests=DIR', with a NodeConfig
// without masterKubeConfig.
//
//	DIR/*.yaml ─► document ─► object ─► Objects ─► store ─► HTTPS on 127.0.0.1
//	              (decode,    (default,  (sorted,  (resource   (discovery, get,
//	               lines)      validate)  unique)   versions)   list, watch)
//	    fsnotify and re-check ────────────────────┘   ▲              ▲
//	                             events that clients ─┘    client-go informers
//	                             create (only logged)
//
// The vendored kube-proxy accepts only a kubeconfig, so it gets one. Its informers
// and handlers then work exactly as with a real API server.
//
// # Files
//
// The files are those of the folder that end in .yaml, .yml or .json; subfolders
// are not read. Each may hold Services, EndpointSlices, Endpoints, Nodes,
// Namespaces, ServiceCIDRs, OpenShift's Network "cluster" (config.openshift.io/v1),
// and lists of these.
//
// They are checked as strictly as by an API server: decoding is strict,
// upstream's own defaulting and validation are applied, and every error names
// the file, the line and the field.
//
// The folder is watched, and every change is followed at once. While anything in
// the folder is wrong nothing changes: the last good state stays, whole, until
// the folder is good again.
//
// # What the files must have
//
// Nothing fills in the values that an API server and its controllers allocate,
// so the files must have them:
//   - clusterIPs and node ports of Services;
//   - endpoints, as EndpointSlices or Endpoints: a Service's selector selects
//     nothing here;
//   - this node's Node, with an InternalIP: without it kube-proxy waits 30 s
//     before it starts.
//
// An object without creationTimestamp counts as the oldest. It matters where two
// Services claim one egress IP.
//
// # The Node
//
// As with an API server, kube-proxy ends with status 1 when the Node of its node
// is deleted or changes its addresses.
//
// # Events
//
// Events are the only objects that clients write. They are logged at level 2, and
// none is kept: a patch finds nothing, so a recorder writes the whole Event again.
//
// # Limits
//
// Discovery tells what a group and version has, which is all that clients here
// ask for. It does not list the groups, so kubectl does not work with it.
//
// The package never writes to the folder, never listens on anything but
// loopback, never changes an object of a file because a client asks for it, and
// knows nothing of proxies.
package manifests
