// Command playground runs the cluster of the end-to-end tests for a person to play with: three nodes in
// network namespaces that run the given binary, a real control plane, and a shop.
//
//	playground up OPENSHIFT CONTROLPLANE   start it, and say how to use it
//	playground down                        end it
//
// OPENSHIFT is the binary, CONTROLPLANE the folder of the control plane's binaries. What keeps the
// cluster alive is a process in the background, whose folder is _output/cluster below the working
// directory; nothing outside of that folder and of the namespaces is changed.
package main
