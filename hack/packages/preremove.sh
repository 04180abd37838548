#!/bin/sh
# Runs before a removal of the deb ("remove") and of the rpm ("0"), and does nothing before an upgrade. A stopped node leaves its
# rules in the kernel for the process that comes next. After a removal none comes, so a node that runs takes them along. One
# that was stopped before is left alone: kube-proxy may have taken its place.
set -e
case "$1" in
remove | 0) ;;
*) exit 0 ;;
esac
# keep_plugin refuses the removal while a network plugin's list names the CNI plugin.
keep_plugin() {
  list=$(grep -ls '"origin-node-cni"' /etc/cni/net.d/*.conflist) || return 0
  echo "origin-node: $list names the CNI plugin origin-node-cni, without which no pod starts then. Take its entry out (openshift start node --cleanup does, with egress rules), and remove the package again" >&2
  exit 1
}
if [ ! -d /run/systemd/system ]; then # a chroot, or the build of an image
  keep_plugin
  exit 0
fi
state=$(systemctl is-active origin-node.service) || true

# openshift runs the program with the configuration that the unit names. systemd fills in CONFIG_FILE.
openshift() {
  systemd-run --quiet --collect --wait --pipe --property=RuntimeMaxSec=120 --property=EnvironmentFile=/etc/sysconfig/origin-node \
    /usr/bin/openshift "$@" "--config=\${CONFIG_FILE}" </dev/null
}

case "${state}" in
active | activating | reloading)
  # As the unit does before a shutdown: egress IPs that this program has put on the node go to other nodes.
  if openshift egress pool >/dev/null 2>&1; then openshift egress drain --until-restart --timeout=20s || true; fi
  ;;
esac
systemctl --quiet disable --now origin-node.service || true # somebody may have deleted the unit
case "${state}" in
active | activating | reloading)
  openshift start node --cleanup ||
    echo "origin-node: not all rules were removed from the kernel; the next boot removes them" >&2
  ;;
esac
keep_plugin
