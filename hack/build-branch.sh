#!/usr/bin/env bash
# Builds openshift against a supported release branch of Kubernetes that is not the vendored one:
#   hack/build-branch.sh BRANCH BINARY LDFLAGS, for example 1.36 _output/openshift-1.36 '-s -w'
# The sources are ours. Kubernetes is the branch's pinned release with the series applied, the
# staging modules are those of that release, and whatever else both of us require comes in
# the version that the release was made with. vendor/ and go.mod stay as they are.
set -euo pipefail
cd "$(dirname "$0")/.."
branch=release-${1#release-} binary=$2 ldflags=$3
dir=_output/branches/${branch}
mkdir -p "${dir}"

go run ./hack/patchtool tree -json "${branch}" >"${dir}/tree.json"
field() { sed -n "s/^  \"$1\": \"\(.*\)\",\$/\1/p" "${dir}/tree.json"; }
version=$(field Version)
tree=$(field Dir)

# requirements FILE lists the modules that a go.mod requires, with their versions and remarks.
requirements() { awk '/^require \($/ {inside = 1; next} /^\)$/ {inside = 0} inside && NF >= 2' "$1"; }
# What we require directly and Kubernetes does not know comes in our version.
ours() {
  awk 'NR == FNR {known[$1]; next} !/\/\/ indirect$/ && !($1 in known) && $1 != "k8s.io/kubernetes"' \
    <(requirements "${tree}/go.mod") <(requirements go.mod)
}
{
  echo "// From go.mod and patches/branches by hack/build-branch.sh."
  grep -E '^(module|go) ' go.mod
  echo "require ("
  echo "k8s.io/kubernetes ${version}"
  ours
  echo ")"
  echo "replace ("
  sed -n 's/^    "\(k8s\.io\/.* => .*\)",\{0,1\}$/\1/p' "${dir}/tree.json"
  echo ")"
} >"${dir}/wanted"
# go completes go.mod; what it found holds until something else is wanted.
if ! cmp -s "${dir}/wanted" "${dir}/known"; then
  cp "${dir}/wanted" "${dir}/go.mod"
  sort -u go.sum "${tree}/go.sum" >"${dir}/go.sum"
fi

# pkg/upstream knows the tag.
CGO_ENABLED=0 go build -mod=mod -modfile="${dir}/go.mod" -tags "kube${branch#release-}" -trimpath -ldflags "${ldflags}" -o "${binary}" ./cmd/openshift
mv "${dir}/wanted" "${dir}/known"
