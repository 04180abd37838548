#!/bin/sh
# Runs before a removal of the deb ("remove") and of the rpm ("0"), and does nothing before an upgrade. A stopped node leaves its
# rules in the kernel for the process that comes next. After a removal none comes, so a node that runs takes them along. One
# that was stopped before is left alone: kube-proxy may have taken its place.
#
# A removal after which no pod would start, or some would not end, is refused before anything is changed.
set -e
case "$1" in
remove | 0) ;;
*) exit 0 ;;
esac
newline='
'

# lists prints the network plugins' lists that name the CNI plugin.
lists() { grep -ls '"origin-node-cni"' /etc/cni/net.d/*.conflist || true; }

# refuse_if refuses the removal if there are such lists.
refuse_if() {
  [ -n "$1" ] || return 0
  echo "origin-node: not removed: $1 names the CNI plugin origin-node-cni, without which no pod starts then. Take its entry out, and remove the package again" >&2
  return 1
}

# attached prints the pods that have started with the CNI plugin, and still run. One that has ended while no node process answered has a
# note in released.
attached() {
  for file in /run/origin-node/attachments/*.json; do
    [ -e "/run/origin-node/released/${file##*/}" ] || grep -Ls '"released":"[^"]*:' "${file}" # a time, not a label
  done |
    xargs -r sed -n 's|.*"pod":{"namespace":"\([^"]*\)","name":"\([^"]*\)".*|\1/\2|p' | paste -s -d ' ' -
}

# CRI-O ends a pod by the list of plugins that it has started with, whatever is in the list now.
if [ -e /run/crio/crio.sock ] && pods=$(attached) && [ -n "${pods}" ]; then
  echo "origin-node: not removed: CRI-O cannot end these pods without the CNI plugin origin-node-cni, with which they have started: ${pods}. Drain the node (kubectl drain); before you delete pods of DaemonSets, unset egress-snat-cni-install and take the plugin out of the list. Then remove the package again" >&2
  exit 1
fi

# openshift runs the program with the configuration that the unit names. systemd fills in CONFIG_FILE, and OPTIONS: the node may have its name
# from there.
openshift() {
  systemd-run --quiet --collect --wait --pipe --property=RuntimeMaxSec=120 --property=EnvironmentFile=/etc/sysconfig/origin-node \
    /usr/bin/openshift "$@" "--config=\${CONFIG_FILE}" </dev/null
}

state=
if [ -d /run/systemd/system ]; then # else a chroot, or the build of an image
  state=$(systemctl is-active origin-node.service) || true
fi
case "${state}" in
active | activating | reloading) runs=true ;;
*) runs= ;;
esac

# What a clean-up takes out stays in no list. It names lists without symbolic links.
stays=$(lists)
if [ -n "${runs}" ] && [ -n "${stays}" ]; then
  cleaned=$(openshift start node --cleanup --dry-run "\$OPTIONS") || cleaned=
  stays=$(lists | while read -r file; do
    case "${newline}${cleaned}${newline}" in *"${newline}$(readlink -f "${file}")${newline}"*) ;; *) echo "${file}" ;; esac
  done)
fi
refuse_if "${stays}"
[ -d /run/systemd/system ] || exit 0

enabled=$(systemctl is-enabled origin-node.service 2>/dev/null) || true
if [ -n "${runs}" ]; then
  # As the unit does before a shutdown: egress IPs that this program has put on the node go to other nodes.
  if openshift egress pool >/dev/null 2>&1; then openshift egress drain --until-restart --timeout=20s || true; fi
fi
systemctl --quiet disable --now origin-node.service || true # somebody may have deleted the unit
if [ -n "${runs}" ]; then
  openshift start node --cleanup "\$OPTIONS" ||
    echo "origin-node: not all rules were removed from the kernel; the next boot removes them" >&2
fi
if ! refuse_if "$(lists)"; then # the clean-up failed, or other software has put it back
  if [ "${enabled}" = enabled ]; then systemctl --quiet enable origin-node.service || true; fi
  if [ -n "${runs}" ]; then systemctl --no-block start origin-node.service || true; fi
  exit 1
fi
