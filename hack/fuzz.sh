#!/usr/bin/env bash
# usage: fuzz.sh TIME
# Runs every fuzz target for TIME, for example 10s.
set -euo pipefail
cd "$(dirname "$0")/.."
time=$1
grep -rl --include='*_test.go' '^func Fuzz' pkg | while read -r file; do
  package=./$(dirname "${file}")
  sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "${file}" | while read -r target; do
    go test -run '^$' -fuzz "^${target}\$" -fuzztime "${time}" "${package}"
  done
done
