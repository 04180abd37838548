#!/usr/bin/env bash
# usage: build-image.sh BINARIES VERSION
# Makes the container image of the node from the folder BINARIES and Debian's packages, and prints the path of the OCI image
# archive. The packages are fetched once, by the machine's apt-get, into _output/image/packages: remove that folder for newer
# ones. Needs no root.
set -euo pipefail
cd "$(dirname "$0")/.."
binaries=$1
version=$2

# What the node runs, and a shell for images/node/entrypoint.sh.
packages=(iptables nftables ipset busybox)
# The name that images/node/daemonset.yaml has.
name=localhost/origin-node:latest

dir=${PWD}/_output/image
mkdir -p "${dir}"
# Whoever else makes the same now is waited for.
exec 9>"${dir}/lock"
flock 9

if [[ ! -d "${dir}/packages" ]]; then
  rm -rf "${dir}/fetched"
  mkdir -p "${dir}/fetched/partial"
  # As if nothing was installed: all that they need is fetched.
  apt-get --yes --quiet --quiet --no-install-recommends --download-only install "${packages[@]}" \
    -o Dir::State::status=/dev/null -o Dir::Cache::archives="${dir}/fetched" -o Debug::NoLocking=true -o APT::Sandbox::User= \
    >"${dir}/log" 2>&1 || { tail -n 20 "${dir}/log" >&2; echo "run 'apt-get update' first" >&2; exit 1; }
  mv "${dir}/fetched" "${dir}/packages"
fi

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
CGO_ENABLED=0 go run -trimpath ./hack/nodeimage -o "${dir}/origin-node.tar" -name "${name}" -binaries "${binaries}" \
  -entrypoint images/node/entrypoint.sh -version "${version}" -revision "$(git rev-parse HEAD)" "${dir}"/packages/*.deb
echo "${dir}/origin-node.tar"
