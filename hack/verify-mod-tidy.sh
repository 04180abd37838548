#!/usr/bin/env bash
# Fails if 'go mod tidy' would change go.mod or go.sum, here or in another module of this
# repository.
set -euo pipefail
cd "$(dirname "$0")/.."
for module in . hack/tools hack/tools/nfpm hack/controlplane hack/metallb hack/flannel hack/containerd hack/crio hack/multus hack/conformance hack/conformance/coredns hack/bench/picture hack/dashboard/grafana; do
  if ! (cd "${module}" && GOFLAGS=-mod=mod go mod tidy -diff); then
    echo "${module}/go.mod is not tidy; run 'GOFLAGS=-mod=mod go mod tidy' in ${module}, then 'make update-vendor'" >&2
    exit 1
  fi
done
