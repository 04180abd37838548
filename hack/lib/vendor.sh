# shellcheck shell=bash
# What vendor/ is: `go mod vendor` and then the series in patches/ applied to
# the vendored k8s.io/kubernetes, in order, without fuzz.

# vendor::generate ROOT DIR makes in DIR, which is not there, what ROOT/vendor is
# to be by ROOT/go.mod and ROOT/patches. DIR must be inside no git work tree but
# ROOT's: git apply skips files outside of the tree that it runs in.
vendor::generate() {
  local root=$1 dir=$2
  (cd "${root}" && GOFLAGS=-mod=mod go mod vendor -o "${dir}") || return
  vendor::patch "${dir}/k8s.io/kubernetes" "${root}"/patches/*.patch || return
  vendor::patch "${dir}/github.com/google/nftables" "${root}"/patches/github.com/google/nftables/*.patch
}

# vendor::patch DIR PATCH... applies patches to a module in DIR.
vendor::patch() {
  local dir=$1 patch
  shift
  for patch in "$@"; do
    if ! (cd "${dir}" && GIT_CEILING_DIRECTORIES=$(dirname "${dir}") git apply --whitespace=nowarn "${patch}"); then
      echo "$(basename "${patch}") does not apply to the vendored ${dir##*/vendor/}; see patches/README.md" >&2
      return 1
    fi
  done
}

# vendor::regenerate ROOT makes ROOT/vendor anew. Until all of the new one is there,
# the old one stays as it is, also if that fails.
vendor::regenerate() (
  local to=$1 beside
  beside=$(mktemp -d "${to}/.vendor-XXXXXX") || exit
  trap 'rm -rf "${beside}"' EXIT
  vendor::generate "${to}" "${beside}/new" || exit
  trap '' INT TERM # from here to the end there may be no vendor/
  if [[ -e ${to}/vendor ]]; then
    mv "${to}/vendor" "${beside}/old" || exit
  fi
  if ! mv "${beside}/new" "${to}/vendor"; then
    mv "${beside}/old" "${to}/vendor"
    exit 1
  fi
)
