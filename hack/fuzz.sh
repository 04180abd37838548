#!/usr/bin/env bash
# usage: fuzz.sh TIME
# Runs every fuzz target for TIME, for example 10s.
set -euo pipefail
cd "$(dirname "$0")/.."
time=$1
log=$(mktemp)
trap 'rm -f "${log}"' EXIT
# The first target of a package takes longer: fuzzing compiles everything that the package
# imports anew, with coverage counters. Minimizing interesting inputs would eat up TIME.
export CGO_ENABLED=0

# fuzz PACKAGE TARGET
fuzz() {
  if go test -vet=off -run '^$' -fuzz "^$2\$" -fuzztime "${time}" -fuzzminimizetime 1x "$1" | tee "${log}"; then
    return
  fi
  # Before Go 1.27 the end of TIME itself may count as a failure (https://go.dev/issue/75804).
  # A true one has written its input to testdata/fuzz.
  if grep -q '^ *context deadline exceeded$' "${log}" && ! grep -q 'Failing input written to' "${log}"; then
    echo "$2: the time was up, which is no failure"
    return
  fi
  return 1
}

grep -rl --include='*_test.go' '^func Fuzz' pkg | sort | while read -r file; do
  sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "${file}" | while read -r target; do
    fuzz "./$(dirname "${file}")" "${target}"
  done
done
