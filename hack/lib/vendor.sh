# shellcheck shell=bash
# What vendor/ is: `go mod vendor` and then each series in patches/ applied to
# its vendored module, in order, without fuzz.

# vendor::generate ROOT DIR makes in DIR, which is not there, what ROOT/vendor is
# to be by ROOT/go.mod and ROOT/patches. DIR must be inside no git work tree but
# ROOT's: git apply skips files outside of the tree that it runs in.
vendor::generate() {
  local root=$1 dir=$2 all module folder
  (cd "${root}" && GOFLAGS=-mod=mod go mod vendor -o "${dir}") || return
  all=$(vendor::series "${root}") || return
  while read -r module folder; do
    vendor::patch "${dir}" "${module}" "${folder}"/*.patch || return
  done <<<"${all}"
}

# vendor::series ROOT prints a line "MODULE FOLDER" for each module with patches. Those of Kubernetes lie right in
# patches/; its branches' own are for none that is vendored. Those of another module lie in the folder of its path.
vendor::series() {
  local modules module
  if [[ -e $1/patches/k8s.io/kubernetes ]]; then
    echo "patches of k8s.io/kubernetes lie right in patches/; see patches/README.md" >&2
    return 1
  fi
  modules=$(cd "$1/patches" && find . -mindepth 2 -name '*.patch' -not -path './release-*' -printf '%h\n') || return
  echo "k8s.io/kubernetes $1/patches"
  sort -u <<<"${modules}" | while read -r module; do
    if [[ -n ${module} ]]; then echo "${module#./} $1/patches/${module#./}"; fi
  done
}

# vendor::patch DIR MODULE PATCH... applies patches to a module below DIR.
vendor::patch() {
  local dir=$1/$2 module=$2 patch
  shift 2
  for patch in "$@"; do
    if ! (cd "${dir}" && GIT_CEILING_DIRECTORIES=$(dirname "${dir}") git apply --whitespace=nowarn "${patch}"); then
      echo "$(basename "${patch}") does not apply to the vendored ${module}; see patches/README.md" >&2
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
