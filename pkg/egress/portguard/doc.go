// Package portguard keeps other pods from using the addresses of bound pods, by package portsecurity, and tells people, a verification and
// the metrics where that cannot be done.
package portguard
