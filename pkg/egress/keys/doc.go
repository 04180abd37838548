// Package keys keeps the keys by which nodes know each other: in a Secret that they share, and in a file of each node.
//
//	Secret origin-node-keys ◄─► Keeper ─► holders.Keyring ─► Announcer, pool
//	                              ▲ ▼
//	                       file of this node
//
// The Secret is in the namespace of the Leases. images/node/rbac.yaml ships it empty, and gives nodes the right to list, watch
// and update it, by its name: a right to create could not be limited to a name. Applying the file again leaves what is in it. Whoever
// finds it empty makes a key. All nodes may, and the API server takes the first one's: an update must name the version
// of the Secret that it changes.
//
//	data:
//	  keys:     a key in each line; the first signs, all are accepted
//	  step:     steady, adding or dropping
//	  changed:  when that began, by the clock of the node that wrote it (RFC 3339)
//
// # Rotation
//
// Keys are changed without a moment in which nodes do not understand each other:
//
//	steady    one key; after 30 days another one is added, as the second
//	adding    the first one signs, both are accepted; after a day, when all nodes have both, they change places
//	dropping  the new one signs, both are accepted; after a day the old one is dropped
//
// Each node looks about every hour and a half, at a time of its own. The first node that finds a step due by its own clock takes it, but
// only if its process has seen the data of the Secret unchanged for a day. So whatever the clocks say, all nodes have had the time that a
// step is given. A wrong clock can make keys change more often than every 30 days, up to a step a day, but it cannot cause a gap. If no
// process lives for a day, keys are not changed. A time that is missing, or more than a day ahead of a node's clock, is replaced by that
// node's.
//
// An administrator who wants other keys at once, because somebody has stolen one, empties the Secret:
//
//	kubectl -n origin-node patch secret origin-node-keys --type=json -p '[{"op": "remove", "path": "/data"}]'
//
// A node makes a new key within a second, and nobody accepts the old ones any more as soon as he hears of it. For that moment the
// nodes follow the Leases. He may write keys of his own as well, in the form of data.keys.
//
// # The file
//
// A process that starts takes the keys of the file until it has read the Secret, which may be long if the API server refuses that. The
// file ends with a checksum, and belongs to this process's user, who alone may read it; another one is reported and not trusted.
//
// # What can go wrong
//
// A node that cannot read the Secret, or finds something else in it than keys, keeps the keys that it has, and reports it. A node without
// any key neither announces nor believes anything directly. If the Secret is deleted, all nodes keep their keys, and say that somebody has
// to apply images/node/rbac.yaml; they make new ones then. Nobody writes keys of his own into a Secret that is there: what is in it counts.
//
// Whoever may read the Secret, or is root on a node, has the keys, and can speak for any node whose address he has.
package keys
