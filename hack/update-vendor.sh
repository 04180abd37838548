#!/usr/bin/env bash
# Makes vendor/ anew from go.mod, go.sum and patches/.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=hack/lib/vendor.sh
source "${root}/hack/lib/vendor.sh"
vendor::regenerate "${root}"
