#!/usr/bin/env bash
# usage: kubelet.sh NAME KUBELET ARGUMENT...
# Runs containerd and a kubelet on a machine of their own, see machine.sh.
set -euo pipefail

# A kubelet sets these for the whole machine.
for sysctl in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
  own=/mnt/sysctl/${sysctl}
  mkdir -p "$(dirname "${own}")"
  cat "/proc/sys/${sysctl}" >"${own}"
  mount --bind "${own}" "/proc/sys/${sysctl}"
done
hostname "$1"

containerd --config=/mnt/containerd.toml &
for archive in /mnt/images/*; do
  until ctr --namespace=k8s.io images import "${archive}"; do
    kill -0 $! # or it has ended
    sleep 0.2
  done
done
exec "${@:2}" --config=/mnt/kubelet.yaml --root-dir=/mnt/kubelet --hostname-override="$1"
