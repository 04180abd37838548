#!/usr/bin/env bash
# usage: machine.sh NETNS DIR CGROUP COMMAND... <PIPE
# Runs COMMAND in the network namespace at NETNS, as on a machine of its own, until PIPE ends. DIR, which is /mnt inside, has
# its files. CGROUP, below the root of each hierarchy, is the root that it sees, and is removed in the end.
set -euo pipefail

# hierarchies are the mounts of cgroups.
hierarchies() { grep ' cgroup2\? ' /proc/mounts; }

outside() {
  local hierarchy inherited status=0
  (
    while read -r _ hierarchy _; do
      mkdir "${hierarchy}/$3"
      for inherited in cpuset.cpus cpuset.mems; do
        [[ ! -e "${hierarchy}/${inherited}" ]] || cat "${hierarchy}/${inherited}" >"${hierarchy}/$3/${inherited}"
      done
      echo "${BASHPID}" >"${hierarchy}/$3/cgroup.procs"
    done < <(hierarchies)
    INSIDE=1 exec nsenter --net="$1" unshare --mount --uts --ipc --cgroup --pid --fork --kill-child --mount-proc "$0" "$@"
  ) || status=$?
  # The kernel needs a moment for those of processes that have just ended.
  local left
  for _ in {1..100}; do
    left=$(find /sys/fs/cgroup -maxdepth 2 -type d -name "$3")
    [[ -n "${left}" ]] || exit "${status}"
    # shellcheck disable=SC2086 # each word is a folder
    find ${left} -depth -type d -exec rmdir {} + 2>/dev/null || sleep 0.1
  done
  echo "these cgroups cannot be removed: ${left}" >&2
  exit 1
}

inside() {
  local folder own type options
  for folder in /run /opt /var/lib /var/log; do
    own=$2/overlay${folder}
    mkdir -p "${own}/upper" "${own}/work"
    mount -t overlay -o "lowerdir=${folder},upperdir=${own}/upper,workdir=${own}/work" overlay "${folder}"
  done
  hierarchies | while read -r _ folder type options _; do
    umount "${folder}"
    mount -t "${type}" -o "${options}" cgroup "${folder}"
  done
  mount --bind "$2" /mnt
  shift 3
  "$@" </dev/null &
  cat >/dev/null
}

if [[ -z "${INSIDE:-}" ]]; then
  outside "$@"
else
  unset INSIDE
  inside "$@"
fi
