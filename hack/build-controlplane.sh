#!/usr/bin/env bash
# Builds etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, kube-proxy and
# kubectl at the versions that hack/controlplane pins, into _output/controlplane/VERSION, and
# prints that folder. What is there already, of the same pins and the same Go, is not built again. Needs the Go module
# proxy for what the module cache lacks, and nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."

module=hack/controlplane
version=$(go list -C "${module}" -m -f '{{.Version}}' k8s.io/kubernetes)
dir=_output/controlplane/${version}
mkdir -p "${dir}"
# Whoever else builds the same now is waited for.
exec 9>"${dir}/lock"
flock 9

pins=$({ go env GOVERSION; cat "${module}/go.mod" "${module}/go.sum" hack/build-controlplane.sh; } | sha256sum)
if [[ "$(cat "${dir}/pins" 2>/dev/null)" != "${pins}" ]]; then
  rm -f "${dir}"/{etcd,kube*}
  echo "${pins}" >"${dir}/pins"
fi

IFS=. read -r major minor _ <<<"${version#v}"
component=k8s.io/component-base/version
ldflags="-s -w -X ${component}.gitVersion=${version} -X ${component}.gitMajor=${major} -X ${component}.gitMinor=${minor}"
export CGO_ENABLED=0

# build BINARY PACKAGE. A binary that is there is whole: it gets its name at the end.
build() {
  local binary=${dir}/$1
  if [[ -e "${binary}" ]]; then
    return
  fi
  echo "building $1" >&2
  go build -C "${module}" -trimpath -ldflags "${ldflags}" -o "${PWD}/${binary}.new" "$2"
  mv "${binary}.new" "${binary}"
}
build etcd go.etcd.io/etcd/server/v3
for program in kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl; do
  build "${program}" "k8s.io/kubernetes/cmd/${program}"
done
echo "${PWD}/${dir}"
