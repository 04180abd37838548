#!/usr/bin/env bash
# usage: fuzz.sh TIME
# Runs every fuzz target for TIME, for example 10s.
set -euo pipefail
cd "$(dirname "$0")/.."
time=$1
# The first target of a package takes longer: fuzzing compiles everything that the package
# imports anew, with coverage counters. Minimizing interesting inputs would eat up TIME.
export CGO_ENABLED=0
grep -rl --include='*_test.go' '^func Fuzz' pkg | sort | while read -r file; do
  package=./$(dirname "${file}")
  sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "${file}" | while read -r target; do
    go test -vet=off -run '^$' -fuzz "^${target}\$" -fuzztime "${time}" -fuzzminimizetime 1x "${package}"
  done
done
