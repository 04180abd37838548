// Command nodeimage makes the container image of the node, as an OCI image archive. It needs neither a container engine nor
// root, and fetches nothing: Debian's packages are files that hack/build-image.sh has fetched. The same packages, binaries and
// SOURCE_DATE_EPOCH give the same bytes.
//
// The image has two layers: what the node's programs need of Debian, which changes rarely, and the programs. Packages are
// unpacked, not installed: no maintainer script runs, so there are no alternatives (images/node/entrypoint.sh chooses between
// the flavours of iptables), no caches and no database. Only programs, libraries and licences are taken.
package main
