#!/usr/bin/env bash
# usage: kubelet.sh NAME RUNTIME KUBELET ARGUMENT...
# Runs a container runtime, which is containerd or crio, and a kubelet on a machine of their own, see machine.sh. A runtime that somebody
# kills starts again.
set -euo pipefail

# A kubelet sets these for the whole machine.
for sysctl in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
  own=/mnt/sysctl/${sysctl}
  mkdir -p "$(dirname "${own}")"
  cat "/proc/sys/${sysctl}" >"${own}"
  mount --bind "${own}" "/proc/sys/${sysctl}"
done
hostname "$1"
PATH=/mnt/runtime/bin:${PATH}

case $2 in
containerd)
  socket=/run/containerd/containerd.sock
  run() { containerd --config=/mnt/runtime.toml; }
  load() {
    until ctr --namespace=k8s.io images import "$1"; do
      kill -0 $! # or it has ended
      sleep 0.2
    done
  }
  ;;
crio)
  socket=/run/crio/crio.sock
  # CRI-O takes every controller of this list for one that pods can have. Some machines have hugetlb in none of the hierarchies.
  grep -v hugetlb /proc/cgroups >/mnt/cgroups
  mount --bind /mnt/cgroups /proc/cgroups
  run() { crio --config=/mnt/runtime.toml --config-dir=; }
  # This one loads archives with a single image, that of the pods.
  load() {
    copyimg --root=/mnt/storage --runroot=/run/containers/storage --storage-driver=overlay --signature-policy=/mnt/policy.json \
      --import-from="oci-archive:$1" --image-name=localhost/pod:test
  }
  ;;
esac
{ until run; [[ $? -ne 137 ]]; do :; done; } &
for archive in /mnt/images/*; do
  load "${archive}"
done
echo "containerRuntimeEndpoint: unix://${socket}" >>/mnt/kubelet.yaml
exec "${@:3}" --config=/mnt/kubelet.yaml --root-dir=/mnt/kubelet --hostname-override="$1"
