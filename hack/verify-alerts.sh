#!/usr/bin/env bash
# Lets promtool check and test the alert rules, and checks that the README has their metrics.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v promtool >/dev/null; then
  echo "promtool is missing; it comes with Debian's package prometheus" >&2
  exit 1
fi
promtool check rules images/node/alerts.yaml
promtool test rules hack/alerts_test.yaml
grep -oE 'egress_snat_[a-z_]+' images/node/alerts.yaml | sed 's/_bucket$//' | sort -u | while read -r metric; do
  if ! grep -q "^| \`${metric}\` " README.md; then
    echo "images/node/alerts.yaml: the README's table has no metric ${metric}" >&2
    exit 1
  fi
done
