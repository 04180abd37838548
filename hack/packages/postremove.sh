#!/bin/sh
# Runs after a removal, of the deb and of the rpm, and after a purge of the deb. A kubeconfig in /etc/origin/node stays.
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
if [ "$1" = purge ]; then
  # A node in a container may run here, and use it.
  if ! grep -q '@openshift/origin-node' /proc/net/unix; then rm -rf /var/lib/origin-node; fi
  # Other components of OpenShift may have files here.
  if [ -d /var/lib/origin ]; then rmdir --ignore-fail-on-non-empty /var/lib/origin; fi
fi
