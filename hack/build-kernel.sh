#!/usr/bin/env bash
# usage: build-kernel.sh KERNEL
# Makes a virtual machine's disk with the Debian that has this kernel, and with the kernel and tools of its own, in
# _output/kernels/KERNEL, and prints that folder: disk, vmlinuz and initrd. What is there already, made by these scripts as they are, is
# not made again. Needs root, debootstrap, mke2fs and Debian's archive.
set -euo pipefail
cd "$(dirname "$0")/.."

kernel=${1:?which kernel: 5.10, 6.1, 6.12 or 7.2}
kubelets=""
case ${kernel} in
  5.10) suite=bullseye ;;
  6.1) suite=bookworm kubelets="containerd runc containernetworking-plugins" ;; # for upstream's specs
  6.12) suite=trixie ;;
  7.2) suite=sid ;;
  *)
    echo "no Debian is known that has the kernel ${kernel}: want 5.10, 6.1, 6.12 or 7.2" >&2
    exit 1
    ;;
esac
dir=${PWD}/_output/kernels/${kernel}
mkdir -p "${dir}"
# Whoever else makes the same now is waited for.
exec 9>"${dir}/lock"
flock 9

hack/install-packages.sh debootstrap:debootstrap e2fsprogs:/usr/sbin/mke2fs qemu-system-x86:qemu-system-x86_64 >&2
pins=$(cat hack/build-kernel.sh hack/kernels/init.sh | sha256sum)
if [[ "$(cat "${dir}/made" 2>/dev/null)" != "${pins}" ]]; then
  rm -rf "${dir:?}"/{root,made,disk,vmlinuz,initrd}
  echo "making the Debian ${suite} with the kernel ${kernel}" >&2
  {
    debootstrap --variant=minbase "${suite}" "${dir}/root"
    chroot "${dir}/root" apt-get update
    # shellcheck disable=SC2086 # each word is a package
    DEBIAN_FRONTEND=noninteractive chroot "${dir}/root" apt-get install -y --no-install-recommends \
      linux-image-cloud-amd64 initramfs-tools kmod procps iptables nftables conntrack ipset iproute2 ethtool strace ${kubelets}
  } >"${dir}/log" 2>&1 || { tail -n 20 "${dir}/log" >&2; exit 1; }
  rm -rf "${dir}"/root/var/cache/apt/* "${dir}"/root/var/lib/apt/lists/*
  install -m 0755 hack/kernels/init.sh "${dir}/root/sbin/init-tests"
  if ! compgen -G "${dir}/root/boot/vmlinuz-${kernel}.*" >/dev/null; then
    echo "the Debian ${suite} has another kernel now: $(ls "${dir}/root/boot")" >&2
    exit 1
  fi
  cp "${dir}"/root/boot/vmlinuz-* "${dir}/vmlinuz"
  cp "${dir}"/root/boot/initrd.img-* "${dir}/initrd"
  mke2fs -q -t ext4 -L root -d "${dir}/root" "${dir}/disk" 4G >&2
  rm -r "${dir}/root"
  echo "${pins}" >"${dir}/made"
fi
echo "${dir}"
