// The cluster's DNS server for upstream's end-to-end tests, built by hack/build-conformance.sh. It is a module of its own
// because CoreDNS wants newer libraries than Kubernetes, and the tests are to be built with those of the release.
module github.com/openshift/origin-node/hack/conformance/coredns

go 1.26.0

require github.com/coredns/coredns v1.15.0
