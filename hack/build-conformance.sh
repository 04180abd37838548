#!/usr/bin/env bash
# Builds upstream's end-to-end specs [sig-network], ginkgo, stock kube-proxy and a folder that is the root of the pods' images
# (agnhost, CoreDNS and a userland of this machine's Debian packages), at the versions that hack/conformance pins, into
# _output/conformance/VERSION, and prints that folder. What is there already, of the same pins and the same Go, is not built
# again. Needs the Go module proxy for what the module cache lacks, and Debian's archive for missing packages.
set -euo pipefail
cd "$(dirname "$0")/.."

module=hack/conformance
version=$(go list -C "${module}" -m -f '{{.Version}}' k8s.io/kubernetes)
dir=${PWD}/_output/conformance/${version}
mkdir -p "${dir}"
# Whoever else builds the same now is waited for.
exec 9>"${dir}/lock"
flock 9

pins=$({ go env GOVERSION; cat "${module}"/{go.mod,go.sum,registries.yaml,suite/*.go,coredns/*} hack/build-conformance.sh; } | sha256sum)
if [[ "$(cat "${dir}/pins" 2>/dev/null)" != "${pins}" ]]; then
  rm -rf "${dir:?}"/{bin,root,images}
  mkdir "${dir}/bin"
  echo "${pins}" >"${dir}/pins"
fi

IFS=. read -r major minor _ <<<"${version#v}"
component=k8s.io/component-base/version
ldflags="-s -w -X ${component}.gitVersion=${version} -X ${component}.gitMajor=${major} -X ${component}.gitMinor=${minor}"
# As the control plane is built: most packages are then compiled once for both. And programs need no libc in their images.
export CGO_ENABLED=0

# build BINARY COMMAND... runs COMMAND with what it is to write. A binary that is there is whole: it gets its name at the end.
build() {
  local binary=${dir}/bin/$1
  if [[ ! -e "${binary}" ]]; then
    echo "building $1" >&2
    "${@:2}" -trimpath -ldflags "${ldflags}" -o "${binary}.new"
    mv "${binary}.new" "${binary}"
  fi
}
# program BINARY PACKAGE
program() { build "$1" go_with_package "$2"; }
go_with_package() { go build -C "${module}" "${@:2}" "$1"; }
specs() { go test -C "${module}" -c "$@" ./suite; }
coredns() { go build -C "${module}/coredns" "$@" .; }

program ginkgo github.com/onsi/ginkgo/v2/ginkgo
program kube-proxy k8s.io/kubernetes/cmd/kube-proxy
program agnhost k8s.io/kubernetes/test/images/agnhost
program regression-issue-74839 k8s.io/kubernetes/test/images/regression-issue-74839
build coredns coredns
build e2e.test specs

# install_with_libraries FILE... copies programs of this machine into the images.
install_with_libraries() {
  local file library
  for file; do
    install -D "${file}" "${root}${file}"
    ldd "${file}" 2>/dev/null | grep -o '/[^ ]*' | while read -r library; do
      [[ -e "${root}${library}" ]] || install -D "${library}" "${root}${library}"
    done
  done
}

# make_root makes the root of the images. Specs run shell commands in their pods.
make_root() {
  local root=${dir}/root.new name module_cache
  rm -rf "${root}"
  mkdir -p "${root}"/{etc,tmp,uploads,proc,sys,dev,run,var/registry,usr/bin,usr/sbin,usr/lib,usr/lib64}
  chmod 1777 "${root}/tmp"
  for name in bin sbin lib lib64; do
    ln -s "usr/${name}" "${root}/${name}"
  done
  for name in bash cat chmod cp cut date dd dig echo env false find getent grep head hostname id ip ls mkdir mktemp mv nc nslookup \
    printf readlink rm sed seq sleep sort ss stat tail tee test timeout touch tr true uname wc wget xargs curl conntrack; do
    install_with_libraries "$(type -P "${name}")"
  done
  install_with_libraries "$(readlink -f "$(type -P dash)")"
  ln -s dash "${root}/usr/bin/sh"
  echo 'hosts: files dns' >"${root}/etc/nsswitch.conf"
  echo 'root:x:0:0:root:/:/bin/sh' >"${root}/etc/passwd"
  echo 'tries = 1' >"${root}/etc/wgetrc" # as busybox's, which specs expect
  module_cache=$(go list -C "${module}" -m -f '{{.Dir}}' k8s.io/kubernetes)
  install -m 0644 "${module_cache}"/test/images/agnhost/porter/localhost.{crt,key} "${root}"
  ln "${dir}"/bin/{agnhost,coredns,regression-issue-74839} "${root}"
  mv "${root}" "${dir}/root"
}
if [[ ! -e "${dir}/root" ]]; then
  hack/install-packages.sh netcat-openbsd:nc bind9-dnsutils:dig wget:wget curl:curl conntrack:conntrack iproute2:ss >&2
  make_root
fi

# The names of the images, which have the versions of this release.
if [[ ! -e "${dir}/images" ]]; then
  KUBE_TEST_REPO_LIST=${module}/registries.yaml "${dir}/bin/e2e.test" --list-images >"${dir}/images.new" 2>/dev/null
  mv "${dir}/images.new" "${dir}/images"
fi
echo "${dir}"
