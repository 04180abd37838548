#!/usr/bin/env bash
# Fails if gofmt -s would change a Go file of ours.
set -euo pipefail
cd "$(dirname "$0")/.."
unformatted=$(find cmd pkg hack patches -name '*.go' -print0 | xargs -0 gofmt -s -l)
if [[ -n "${unformatted}" ]]; then
  echo "gofmt would change these files; run 'gofmt -s -w' on them:" >&2
  echo "${unformatted}" >&2
  exit 1
fi
