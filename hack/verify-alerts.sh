#!/usr/bin/env bash
# Lets promtool check and test the alert rules, and checks that images/node/README.md has each alert and
# the metrics that it uses. TestMetrics_AllAreDocumented of pkg/egress and pkg/tunnel checks the other metrics.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v promtool >/dev/null; then
  echo "promtool is missing; it comes with Debian's package prometheus" >&2
  exit 1
fi
promtool check rules images/node/alerts.yaml
promtool test rules hack/alerts_test.yaml
{
  grep -oE 'egress_snat_[a-z_]+' images/node/alerts.yaml | sed 's/_bucket$//'
  sed -n 's/^ *- alert: //p' images/node/alerts.yaml
} | sort -u | while read -r name; do
  if ! grep -q "^| \`${name}\` " images/node/README.md; then
    echo "images/node/alerts.yaml: no table of images/node/README.md has ${name}" >&2
    exit 1
  fi
done
sed -n 's/^ *- alert: //p' images/node/alerts.yaml | while read -r alert; do
  if ! grep -q "alertname: ${alert}\$" hack/alerts_test.yaml; then
    echo "hack/alerts_test.yaml: nothing tests that ${alert} fires" >&2
    exit 1
  fi
done
