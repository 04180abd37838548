// Package folders tells when names in folders change, by the kernel's notifications.
//
// The kernel sends none for a file behind a link, on a network file system, or beyond its limits. So whoever needs to know of every change
// looks again now and then.
package folders
