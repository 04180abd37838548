#!/usr/bin/env bash
# Proves that vendor/ is what update-vendor.sh makes of go.mod, go.sum and
# patches/, byte for byte. Works in a temporary folder; changes nothing.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=hack/lib/vendor.sh
source "${root}/hack/lib/vendor.sh"

fresh=$(mktemp -d)
trap 'chmod -R u+w "${fresh}"; rm -rf "${fresh}"' EXIT
# Packages of our own decide what is vendored, so they come along.
tar -C "${root}" --exclude=./vendor --exclude=./.git --exclude=./_output -cf - . | tar -C "${fresh}" -xf -
vendor::regenerate "${fresh}"

if ! difference=$(diff -rq --no-dereference "${fresh}/vendor" "${root}/vendor"); then
  first=${difference%%$'\n'*}
  echo "vendor/ is not go.mod + patches/: ${first//${fresh}/regenerated }" >&2
  echo "Change the series in patches/ or go.mod, never vendor/ itself, then run 'make update-vendor'." >&2
  exit 1
fi
all=$(vendor::series "${root}")
carried=
while read -r module folder; do
  carried+=" + $(find "${folder}" -maxdepth 1 -name '*.patch' | wc -l) patches of ${module}"
done <<<"${all}"
echo "vendor/ is go.mod${carried}, byte for byte"
