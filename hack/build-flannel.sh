#!/usr/bin/env bash
# Builds flannel's daemon at the version that hack/flannel pins into _output/flannel/VERSION, and prints that folder. What is there
# already, of the same pins and the same Go, is not built again. Needs the Go module proxy for what the module cache lacks, and nothing
# else.
set -euo pipefail
cd "$(dirname "$0")/.."

module=hack/flannel
version=$(go list -C "${module}" -m -f '{{.Version}}' github.com/flannel-io/flannel)
dir=${PWD}/_output/flannel/${version}
mkdir -p "${dir}"
# Whoever else builds the same now is waited for.
exec 9>"${dir}/lock"
flock 9

pins=$({ go env GOVERSION; cat "${module}/go.mod" "${module}/go.sum" hack/build-flannel.sh; } | sha256sum)
if [[ "$(cat "${dir}/pins" 2>/dev/null)" != "${pins}" ]]; then
  rm -f "${dir}/flanneld"
  echo "${pins}" >"${dir}/pins"
fi

if [[ ! -e "${dir}/flanneld" ]]; then
  echo "building flannel's daemon" >&2
  rm -rf "${dir:?}/src"
  mkdir "${dir}/src"
  cp "${module}"/go.{mod,sum} "${dir}/src"
  go mod download -C "${module}" github.com/flannel-io/flannel
  # Its own main, with the backends vxlan and host-gw: the module proxy lacks a module that a backend for a cloud imports.
  sed -e '/_ ".*\/pkg\/backend\//{/hostgw\|vxlan/!d}' "$(go list -C "${module}" -m -f '{{.Dir}}' github.com/flannel-io/flannel)/main.go" >"${dir}/src/main.go"
  CGO_ENABLED=0 go build -C "${dir}/src" -trimpath -ldflags "-s -w -X github.com/flannel-io/flannel/pkg/version.Version=${version}" -o "${dir}/flanneld.new" .
  mv "${dir}/flanneld.new" "${dir}/flanneld"
  rm -r "${dir}/src"
fi
echo "${dir}"
