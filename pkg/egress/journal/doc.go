// Package journal keeps who had which source ports of egress IPs, so that an address, a port and a time name a pod also when the pod
// has ended (RFC 6888, RFC 7422): in files of each node, in the folder
//
//	/var/lib/origin-node/journal/00000001.journal, 00000002.journal, …
//
// A file can be read alone. It begins with what was assigned at that time, and the last line is on the disk before the pod runs.
//
//	origin-node-journal 1 node-a 2026-11-27T03:00:00.000Z -
//	2026-11-27T03:12:00.123Z + 1 shop/web-0 6f1c2e7a-0b5e-4a53-9a3e-0d4a1c9d7f11 10.128.0.11 web 203.0.113.10 32000-32511
//	2026-11-27T03:12:04.000Z + 2 shop/web-1 0d4a1c9d-7f11-4a53-9a3e-6f1c2e7a0b5e 10.128.0.12 web 203.0.113.10 ~61440-65535
//	2026-11-27T03:13:00.000Z alive
//	2026-11-27T03:40:00.456Z - 1
//	2026-11-27T04:00:00.000Z gap 2026-11-27T03:41:00.000Z
//	2026-11-27T04:00:00.001Z - 2 2026-11-27T03:41:00.000Z
//
// The first line has the version of the format, the node, and the time from which this file is complete; then the same time of the file
// before and that file's size in bytes, or - if there is no file before. If a copy of the file before is shorter than that, lines of it are
// missing, and it is not certain what happened between the two files. The same holds if there is no size, as in files from before December
// 2026. Times are RFC 3339. Then each line is one of
//
//	TIME + REF POD UID POD-IP SERVICE EGRESS-IP PORTS   the pod has the ports since TIME. ~: it shares them with others.
//	                                                    A Service of another namespace is written with it.
//	                                                    +: a second block, besides that of another line.
//	TIME - REF                                          what REF has in this file ended at TIME
//	TIME - REF SEEN                                     it ended at TIME or before, but not before SEEN
//	TIME alive                                          everything until TIME is in front of this line, or in the file before
//	TIME gap SINCE                                      nobody wrote between SINCE and TIME; what was assigned before was so
//	                                                    all the time, unless a line says otherwise
//
// [Journal] writes them, and is a [portblocks.Recorder]. A disk that is full, or broken, keeps no pod from running: lines wait in memory,
// in their order, until they can be written, and meanwhile nothing says alive. If more than 100,000 would wait, those that wait are given
// up, and the next file has a gap. A line that was cut by a crash is cut off by the next process. [ReadAll] reads any number of files of
// any number of nodes, and [History.Who] answers from them, or says why they cannot tell. It never guesses.
//
// One process writes a folder: it has the lock (flock) on it. The package decides nothing about ports. format.go, read.go and history.go
// are pure.
package journal
