// Package shutdown has the system's shutdown wait until this node has given its addresses away. It asks systemd-logind
// for that, by D-Bus, as the kubelet does for its pods: https://systemd.io/INHIBITOR_LOCKS.
//
// It never delays a shutdown for longer than logind's InhibitDelayMaxSec, five seconds by default. Without logind it does
// nothing.
package shutdown
