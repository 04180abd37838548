#!/usr/bin/env bash
# Makes a minimal Debian with systemd and what a node needs, in _output/debian, and prints that folder. What is there already,
# made by this script as it is, is not made again. Needs root, debootstrap and Debian's archive.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v debootstrap >/dev/null; then
  echo "debootstrap is missing: apt-get install debootstrap systemd-container" >&2
  exit 1
fi
dir=_output/debian
mkdir -p "${dir}"
# Whoever else makes the same now is waited for.
exec 9>"${dir}/lock"
flock 9

script=$(sha256sum <hack/build-debian.sh)
if [[ "$(cat "${dir}/made" 2>/dev/null)" != "${script}" ]]; then
  rm -rf "${dir}/root" "${dir}/made"
  echo "making a Debian" >&2
  debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,iptables,nftables,conntrack,ipset,kmod,procps,iproute2 \
    bookworm "${PWD}/${dir}/root" >"${dir}/log" || { tail -n 20 "${dir}/log" >&2; exit 1; }
  echo "${script}" >"${dir}/made"
fi
echo "${PWD}/${dir}/root"
