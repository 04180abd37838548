#!/usr/bin/env bash
# usage: demo.sh BINARY
# Shows in network namespaces who is seen as what. Needs root; installs the Debian packages
# that it needs where it can, and says which they are where it cannot.
set -euo pipefail
cd "$(dirname "$0")/.."
binary=$(realpath "$1")

if [[ ${EUID} -ne 0 ]]; then
  echo "make demo needs root: it makes network namespaces. Run 'sudo make demo'." >&2
  exit 1
fi
hack/install-packages.sh iproute2:ip iptables:iptables nftables:nft conntrack:conntrack
# Built as `make build` builds, so that little has to be compiled.
export CGO_ENABLED=0
exec go run -trimpath ./hack/demo "${binary}" hack/demo
