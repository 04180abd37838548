#!/usr/bin/env bash
# Builds MetalLB's controller and speaker at the version that hack/metallb pins, and copies its CRDs, into
# _output/metallb/VERSION, and prints that folder. What is there already, of the same pins and the same Go, is not built again.
# Needs the Go module proxy for what the module cache lacks, and nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."

module=hack/metallb
version=$(go list -C "${module}" -m -f '{{.Version}}' go.universe.tf/metallb)
dir=${PWD}/_output/metallb/${version}
mkdir -p "${dir}"
# Whoever else builds the same now is waited for.
exec 9>"${dir}/lock"
flock 9

pins=$({ go env GOVERSION; cat "${module}/go.mod" "${module}/go.sum" hack/build-metallb.sh; } | sha256sum)
if [[ "$(cat "${dir}/pins" 2>/dev/null)" != "${pins}" ]]; then
  rm -f "${dir}"/{controller,speaker}
  echo "${pins}" >"${dir}/pins"
fi

export CGO_ENABLED=0
if [[ ! -e "${dir}/speaker" ]]; then # the last one that is made
  rm -rf "${dir:?}"/{src,crds}
  mkdir "${dir}/src"
  cp "${module}"/go.{mod,sum} "${dir}/src"
  go mod download -C "${module}"
  cp -r --no-preserve=mode "$(go list -C "${module}" -m -f '{{.Dir}}' go.universe.tf/metallb)" "${dir}/src/metallb"
  go mod edit -replace=go.universe.tf/metallb=./metallb "${dir}/src/go.mod"
  # The frr-k8s that the module proxy has knows no AS path prepending. That is for BGP by FRR, which the tests do not use.
  sed -i -e '/^func toAdvertiseWithAsPathPrepend/,/^}/d' -e '/if adv.AsPathPrepend != 0/,/}/d' -e '/AsPathPrepend/d' \
    "${dir}/src/metallb/internal/bgp/frrk8s/frrk8s.go"
  cp -r "${dir}/src/metallb/config/crd/bases" "${dir}/crds"
  for program in controller speaker; do
    echo "building MetalLB's ${program}" >&2
    go build -C "${dir}/src" -trimpath -ldflags '-s -w' -o "${dir}/${program}.new" "go.universe.tf/metallb/${program}"
    mv "${dir}/${program}.new" "${dir}/${program}"
  done
  rm -r "${dir}/src"
fi
echo "${dir}"
