#!/bin/sh
# Runs after an installation or an upgrade, of the deb and of the rpm. A new node is not started: it has no kubeconfig yet.
set -e
case "$1" in
abort-*) exit 0 ;; # dpkg, after a removal that preremove.sh has refused: the node goes on as it was
esac
[ -d /run/systemd/system ] || exit 0 # a chroot, or the build of an image
systemctl daemon-reload || true # an installation does not fail because systemd does not answer
# The rules stay in the kernel meanwhile. The node may wait for its API server without a limit; the package manager does not.
case "$(systemctl is-active origin-node.service)" in
active | activating | reloading) systemctl --no-block restart origin-node.service || true ;;
esac
