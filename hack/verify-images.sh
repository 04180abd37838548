#!/usr/bin/env bash
# usage: verify-images.sh BINARY
# Lets systemd check the unit and BINARY check the shipped configurations.
set -euo pipefail
cd "$(dirname "$0")/.."
binary=$(realpath "$1")

root=$(mktemp -d)
trap 'rm -rf "${root}"' EXIT
# With another PREFIX, all commands of the unit are there.
make --no-print-directory install DESTDIR="${root}/local" PREFIX=/usr/local >/dev/null
if grep -F ' /usr/bin/openshift' "${root}/local/usr/local/lib/systemd/system/origin-node.service"; then exit 1; fi
# systemd checks that ExecStart exists; it is where 'make install' puts it.
make --no-print-directory install DESTDIR="${root}" >/dev/null
sed "s|/usr/bin/openshift|${binary}|g" images/node/origin-node.service >"${root}/origin-node.service"
complaints=$(systemd-analyze verify --man=no "${root}/origin-node.service" 2>&1) || { echo "${complaints}" >&2; exit 1; }
# It exits 0 for what it ignores, an unknown setting for example.
if grep -F origin-node.service <<<"${complaints}"; then exit 1; fi

# What the unit may do: its exposure is at most 3.0 (systemd-analyze(1)).
analysis=$(systemd-analyze security --offline=true --no-pager --threshold=30 "${root}/origin-node.service") || { echo "${analysis}" >&2; exit 1; }

mkdir "${root}/manifests"
# The example names a kubeconfig that only a node has.
sed 's|^masterKubeConfig:.*||' images/node/node-config.yaml >"${root}/node-config.yaml"
"${binary}" ex validate node-config --manifests="${root}/manifests" "${root}/node-config.yaml"
"${binary}" ex validate node-config --manifests="${root}/manifests" hack/demo/node-config.yaml

# The DaemonSet's ConfigMap has it in one of its values.
awk '/^  node-config.yaml:/ {inside = 1; next} /^---/ {inside = 0} inside && !/masterKubeConfig:/ {print substr($0, 5)}' \
  images/node/daemonset.yaml >"${root}/node-config.yaml"
"${binary}" ex validate node-config --manifests="${root}/manifests" "${root}/node-config.yaml"
