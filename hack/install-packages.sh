#!/usr/bin/env bash
# usage: install-packages.sh PACKAGE:COMMAND... | PACKAGE:/FILE...
# Installs those Debian packages whose command or file is missing, and starts none of their daemons.
set -euo pipefail
missing=()
for pair in "$@"; do
  [[ -e ${pair#*:} ]] || command -v "${pair#*:}" >/dev/null || missing+=("${pair%%:*}")
done
if [[ ${#missing[@]} -eq 0 ]]; then
  exit 0
fi
if ! command -v apt-get >/dev/null; then
  echo "these packages are missing, and there is no apt-get to install them: ${missing[*]}" >&2
  exit 1
fi
echo "installing: ${missing[*]}"
apt-get update -qq
# RUNLEVEL keeps packages with a daemon from starting it.
RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
