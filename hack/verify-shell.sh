#!/usr/bin/env bash
# Checks our shell scripts with shellcheck.
set -euo pipefail
cd "$(dirname "$0")/.."
find hack images .ci -type f \( -name '*.sh' -o -path .ci/run \) -print0 | xargs -0 shellcheck --external-sources --source-path=SCRIPTDIR
