// Package attach answers the CNI plugin. A pod with an egress IP starts only when the kernel holds its bindings, and its address is given
// to another pod only when the kernel holds none of them any more.
//
//	CNI plugin ─► cni.Handler ─► Attacher ─► cluster.State (whose an address is) ─► a sync ─► the answer
//	kubelet's Pods, or an informer ─┘ (labels)
//	the runtime's list of plugins ─► pluginList, which keeps ours there, or says that it is missing
//
// Where pods get source ports of their own (package portblocks), a bound pod gets them before that sync.
//
// An [Attacher] keeps attachments in files (package attachments), so that a process that starts knows the pods of the one before. What it
// needs of the node beside the State is a [Node], a list of functions. Package egress makes one Attacher, and says with
// [Attacher.Problems] what keeps the plugin from doing its work.
//
// The State, and who follows all attachments besides, are told of them after each change, with no lock held: lists have the numbers that the
// attachments.Store gives them, so that an older one never replaces a newer one.
package attach
