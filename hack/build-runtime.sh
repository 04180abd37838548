#!/usr/bin/env bash
# usage: build-runtime.sh containerd|crio|multus
# Builds a container runtime or Multus' thin plugin, and network plugins that speak CNI 1.1, at the versions that the module hack/NAME
# pins, into _output/NAME/VERSION, and prints that folder. What is there already, of the same pins and the same Go, is not built again.
# Needs the Go module proxy for what the module cache lacks, and for CRI-O a C compiler.
set -euo pipefail
cd "$(dirname "$0")/.."

case $1 in
containerd)
  main=github.com/containerd/containerd/v2
  programs=("${main}"/cmd/{containerd,containerd-shim-runc-v2,ctr})
  tags=no_btrfs
  ;;
crio)
  main=github.com/cri-o/cri-o
  programs=("${main}"/{cmd/crio,test/copyimg})
  tags=containers_image_openpgp,exclude_graphdriver_btrfs
  ;;
multus)
  main=gopkg.in/k8snetworkplumbingwg/multus-cni.v4
  programs=("${main}/cmd/multus")
  tags=
  ;;
*)
  echo "invalid argument $1: expected containerd, crio or multus" >&2
  exit 2
  ;;
esac
module=hack/$1
plugins=github.com/containernetworking/plugins/plugins
version=$(go list -C "${module}" -m -f '{{.Version}}' "${main}")
dir=${PWD}/_output/$1/${version}
mkdir -p "${dir}"
# Whoever else builds the same now is waited for.
exec 9>"${dir}/lock"
flock 9

pins=$({ go env GOVERSION; cat "${module}/go.mod" "${module}/go.sum" hack/build-runtime.sh; } | sha256sum)
if [[ "$(cat "${dir}/pins" 2>/dev/null)" != "${pins}" ]]; then
  rm -rf "${dir:?}"/{bin,cni}
  echo "${pins}" >"${dir}/pins"
fi

export CGO_ENABLED=0
# build FOLDER PACKAGE. A program that is there is whole: it gets its name at the end.
build() {
  local program=${dir}/$1/${2##*/}
  if [[ ! -e "${program}" ]]; then
    echo "building ${2##*/}" >&2
    go build -C "${module}" -trimpath -ldflags '-s -w' -tags "${tags}" -o "${program}.new" "$2"
    mv "${program}.new" "${program}"
  fi
}
mkdir -p "${dir}"/{bin,cni}
for program in "${plugins}"/{ipam/host-local,main/bridge,main/loopback}; do
  build cni "${program}"
done
for program in "${programs[@]}"; do
  build bin "${program}"
done
if [[ $1 == crio && ! -e "${dir}/bin/pinns" ]]; then
  # This one is of C. It pins the namespaces of pods.
  sources=$(go list -C "${module}" -m -f '{{.Dir}}' "${main}")/pinns/src
  gcc -std=c99 -Os -o "${dir}/bin/pinns.new" "${sources}"/*.c
  mv "${dir}/bin/pinns.new" "${dir}/bin/pinns"
fi
echo "${dir}"
