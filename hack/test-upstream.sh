#!/usr/bin/env bash
# usage: test-upstream.sh [BRANCH | UNPATCHED PATCHED]
# Runs upstream's own unit tests of what patches/ is about on the unpatched and on the patched tree of a branch, by
# default of each, or on two given ones: the same tests have to end alike. What go printed stays in _output/upstream.
# What vendor/ has besides Kubernetes is tested with the vendored branch.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=hack/lib/vendor.sh
source hack/lib/vendor.sh
output=${OUTPUT:-${PWD}/_output/upstream}
mkdir -p "${output}"

# results NAME TREE RUNS PACKAGE... runs the tests of a tree, and writes a line "PACKAGE TEST OUTCOME" for each way in which
# a test, or without TEST the package, ended. A failed test is no error: it may fail on both trees.
results() {
  local tree=$2 runs=$3 log=${output}/$1-${tested:-given}-$3.json ended=${output}/$1
  shift 3
  for ((; runs > 0; runs--)); do # compiled as patchtool compiles
    (cd "${tree}" && GOWORK=off GOFLAGS='-mod=mod -trimpath -buildvcs=false' CGO_ENABLED=0 go test -json -count=1 "$@") || true
  done >"${log}"
  sed -nE 's!.*"Action":"(pass|fail|skip)","Package":"([^"]*)"(,"Test":"(([^"\\]|\\.)*)")?.*!\2 \4 \1!p' "${log}" | LC_ALL=C sort -u >"${ended}"
  if grep '"Action":"build-fail"' "${log}" || ! grep -q ' [^ ]\+ pass$' "${ended}" ||
    ! awk '$NF == "fail" {if (NF == 2) failed[$1]; else told[$1]} END {for (p in failed) if (!(p in told)) exit 1}' "${ended}"; then
    echo "${tree}: something does not compile, no test passed, or a package failed without a failed test; see ${log}" >&2
    exit 1
  fi
}

# compare UNPATCHED PATCHED RUNS PACKAGE... shows what differs between the trees (< unpatched, > patched),
# and fails if something does.
compare() {
  results unpatched "$1" "${@:3}"
  results patched "$2" "${@:3}"
  diff "${output}/unpatched" "${output}/patched" | tee "${output}/difference"
}

of_kubernetes=(./cmd/kube-proxy/... ./pkg/proxy/... ./pkg/util/iptables/...)

# alike UNPATCHED PATCHED PACKAGE...
alike() {
  local packages
  if ! compare "$1" "$2" 1 "${@:3}"; then
    echo "three more runs of these packages, for upstream has flaky tests:"
    mapfile -t packages < <(sed -nE 's|^[<>] ([^ ]+) .*|\1|p' "${output}/difference" | sort -u)
    compare "$1" "$2" 3 "${packages[@]}" || return
  fi
  echo "$(grep -c ' [^ ]\+ pass$' "${output}/patched") passed; the same tests, the same results"
}

if [[ $# -eq 2 ]]; then
  alike "$@" "${of_kubernetes[@]}"
  exit
fi

# both OF PACKAGE... tests the trees of a branch, or of another module.
both() {
  local unpatched patched tested=${1//\//-}
  echo "$1"
  unpatched=$(go run ./hack/patchtool tree -unpatched "$1")
  patched=$(go run ./hack/patchtool tree "$1")
  alike "${unpatched}" "${patched}" "${@:2}" || status=1
}

branches=$(awk '/^release-/ {print $1}' patches/branches)
if [[ -n ${1:-} && $1 != all ]]; then branches=$1; fi
status=0
for branch in ${branches}; do
  both "${branch}" "${of_kubernetes[@]}"
done
if [[ -z ${1:-} || $1 == all || $1 == vendored ]]; then
  all=$(vendor::series .)
  while read -r module _; do
    if [[ ${module} != k8s.io/kubernetes ]]; then both "${module}" ./...; fi
  done <<<"${all}"
else
  echo "not tested with ${branches}, but with the vendored branch (BRANCH=vendored): other patched modules"
fi
exit "${status}"
