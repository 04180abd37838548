#!/usr/bin/env bash
# Fails if what is committed of the fast path's programs is not what clang makes of their source.
set -euo pipefail
cd "$(dirname "$0")/.."
made=$(mktemp -d)
trap 'rm -rf "${made}"' EXIT
hack/build-fastpath.sh "${made}"
for file in "${made}"/*; do
  if ! cmp "${file}" "pkg/kernel/fastpath/$(basename "${file}")"; then
    echo "pkg/kernel/fastpath/$(basename "${file}") is not what clang makes of bpf/fastpath.c: run make update-fastpath" >&2
    exit 1
  fi
done
