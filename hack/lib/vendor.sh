# shellcheck shell=bash
# What vendor/ is: `go mod vendor` and then the series in patches/ applied to
# the vendored k8s.io/kubernetes, in order, without fuzz.

# vendor::regenerate ROOT makes ROOT/vendor anew from ROOT/go.mod and
# ROOT/patches. ROOT must be inside no git work tree but its own: git apply
# skips files outside of the tree that it runs in.
vendor::regenerate() {
  local root=$1 patch
  rm -rf "${root}/vendor"
  (cd "${root}" && GOFLAGS=-mod=mod go mod vendor)
  for patch in "${root}"/patches/*.patch; do
    if ! (cd "${root}/vendor/k8s.io/kubernetes" && GIT_CEILING_DIRECTORIES="${root}/vendor/k8s.io" git apply --whitespace=nowarn "${patch}"); then
      echo "$(basename "${patch}") does not apply to the vendored k8s.io/kubernetes; see CONTRIBUTING.adoc, \"Patches\"" >&2
      return 1
    fi
  done
}
