#!/bin/sh
# The first process of the virtual machine. It makes what tools expect of a machine, runs the tests that the disk "tests" has,
# whose output is what the machine's second serial port sends, and powers off.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
mountpoint -q /proc || mount -t proc proc /proc
mountpoint -q /sys || mount -t sysfs sysfs /sys
mountpoint -q /dev || mount -t devtmpfs devtmpfs /dev
ln -sfn /proc/self/fd /dev/fd
ln -sfn /proc/self/fd/0 /dev/stdin
ln -sfn /proc/self/fd/1 /dev/stdout
ln -sfn /proc/self/fd/2 /dev/stderr
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
mount -t bpf bpf /sys/fs/bpf
if command -v containerd >/dev/null; then # kubelets have been tried with cgroups of version 1
  mount -t tmpfs tmpfs /sys/fs/cgroup
  for controllers in cpu cpuacct cpuset memory devices freezer blkio pids; do
    mkdir "/sys/fs/cgroup/${controllers}"
    mount -t cgroup -o "${controllers}" cgroup "/sys/fs/cgroup/${controllers}"
  done
  mkdir /sys/fs/cgroup/systemd /sys/fs/cgroup/unified
  mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
  mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified
else
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
fi
ip link set lo up
modprobe -a ip_vs sctp tun overlay br_netfilter macvlan ipvlan # no test loads a module
mount LABEL=tests /mnt
stty -F /dev/ttyS1 raw
/mnt/kernels inside /mnt </dev/null >/dev/ttyS1
sync
echo o >/proc/sysrq-trigger
while :; do sleep 60; done # until it is off: a first process that ends is a panic
