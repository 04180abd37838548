#!/usr/bin/env bash
# usage: debian.sh DEBIAN NAME LAYOUT OPTION...
# Boots DEBIAN on a machine of its own, see machine.sh, with options of systemd-nspawn. What it writes goes to /mnt/upper. Its
# cgroups are those of this machine or, with the layout "unified", of version 2 alone.
set -euo pipefail
mkdir /mnt/work /mnt/root
mount -t overlay -o "lowerdir=$1,upperdir=/mnt/upper,workdir=/mnt/work" overlay /mnt/root
if [[ "$3" == unified ]]; then
  umount --recursive /sys/fs/cgroup
  mount -t cgroup2 cgroup /sys/fs/cgroup
  export SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1
fi
exec systemd-nspawn --quiet --directory=/mnt/root --machine="$2" --boot --register=no --keep-unit --console=pipe \
  --network-namespace-path=/proc/1/ns/net "${@:4}" \
  --capability=CAP_NET_ADMIN,CAP_NET_RAW,CAP_SYS_MODULE,CAP_SYS_RESOURCE
