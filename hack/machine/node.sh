#!/usr/bin/env bash
# usage: node.sh NETNS DIR CGROUP NAME KUBELET ARGUMENT... <PIPE
# Runs containerd and a kubelet in the network namespace at NETNS, as on a machine of their own, until PIPE ends. DIR, which
# is /mnt inside, has their files. CGROUP, below the root of each hierarchy, is the node's own and is removed in the end.
set -euo pipefail

if [[ -z "${ORIGIN_NODE_INSIDE:-}" ]]; then
  status=0
  ORIGIN_NODE_INSIDE=1 nsenter --net="$1" unshare --mount --uts --ipc --pid --fork --kill-child --mount-proc "$0" "$@" || status=$?
  # The kernel needs a moment for those of processes that have just ended.
  for _ in {1..100}; do
    left=$(find /sys/fs/cgroup -maxdepth 2 -type d -name "$3")
    [[ -n "${left}" ]] || exit "${status}"
    # shellcheck disable=SC2086 # each word is a folder
    find ${left} -depth -type d -exec rmdir {} + 2>/dev/null || sleep 0.1
  done
  echo "these cgroups cannot be removed: ${left}" >&2
  exit 1
fi

dir=$2 name=$4
shift 4
for folder in /run /opt /var/lib /var/log; do
  own=${dir}/overlay${folder}
  mkdir -p "${own}/upper" "${own}/work"
  mount -t overlay -o "lowerdir=${folder},upperdir=${own}/upper,workdir=${own}/work" overlay "${folder}"
done
for sysctl in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
  own=${dir}/sysctl/${sysctl}
  mkdir -p "$(dirname "${own}")"
  cat "/proc/sys/${sysctl}" >"${own}"
  mount --bind "${own}" "/proc/sys/${sysctl}"
done
mount --bind "${dir}" /mnt
hostname "${name}"

containerd --config=/mnt/containerd.toml &
until ctr --namespace=k8s.io images import /mnt/image.tar; do
  kill -0 $! # or it has ended
  sleep 0.2
done
"$@" --config=/mnt/kubelet.yaml --root-dir=/mnt/kubelet --hostname-override="${name}" &
cat >/dev/null
