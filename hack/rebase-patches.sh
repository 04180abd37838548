#!/usr/bin/env bash
# usage: rebase-patches.sh [VERSION [MODULE]]
# Makes a git repository in _output/rebase/VERSION: a release of Kubernetes, by default the vendored one, as the branch
# "upstream", with the series in patches/ as commits on it. git rebases the series from the release that it was
# written for. With MODULE it is another module and its series, in _output/rebase/MODULE@VERSION.
# Changes nothing in patches/: patches/README.md says how to write the series back.
set -euo pipefail
shopt -s nullglob
cd "$(dirname "$0")/.."
# Neither the user's configuration of git nor a hook that runs this changes what git does.
unset "${!GIT_@}"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1

pinned() { awk -v word="$1" '$1 == word || $3 == word {print $2}' patches/branches; }
module=${2:-k8s.io/kubernetes}
series=()
if [[ ${module} == k8s.io/kubernetes ]]; then
  written_for=$(pinned vendored)
  version=${1:-${written_for}}
  branch=release-$(cut -d. -f1,2 <<<"${version#v}")
  dir=${PWD}/_output/rebase/${version}
  # In the place of a shared patch the branch may have one of its own, with the same number.
  for file in patches/*.patch "patches/${branch}"/*.patch; do
    name=${file##*/}
    series[10#${name%%-*}]=${PWD}/${file}
    if [[ ${file} == "patches/${branch}/"* ]]; then written_for=$(pinned "${branch}"); fi
  done
  mapfile -t folders < <(sed -n 's|^diff --git a/\(.*\)/[^/]* b/.*|\1|p' "${series[@]}" | sort -u)
  folders+=(cmd/kube-proxy pkg/proxy)
else
  for file in "patches/${module}"/*.patch; do series+=("${PWD}/${file}"); done
  if ((${#series[@]})); then # go.mod may name a newer release
    written_for=$(sed -n 's/^Versions checked: //p' "${series[0]}")
  else
    written_for=$(go list -m -f '{{.Version}}' "${module}")
  fi
  version=${1:-${written_for}}
  dir=${PWD}/_output/rebase/${module}@${version}
  folders=(.)
fi

# import VERSION TAG commits what the series is about, without history.
import() {
  local from folder
  # shellcheck disable=SC2001 # bash replaces nothing by itself with something in front
  from=$(go env GOMODCACHE)/$(echo "${module}" | sed 's/[A-Z]/!\l&/g')@$1 # the cache's way to write capitals
  [[ -d ${from} ]] || (cd / && go mod download "${module}@$1")
  git checkout -q --orphan "$2"
  git rm -rqf --ignore-unmatch .
  for folder in "${folders[@]}"; do
    [[ ! -d ${from}/${folder} ]] || (cd "${from}" && cp -r --parents --no-preserve=mode "${folder}" "${making}")
  done
  git add --all --force
  git commit -qm "${module} $1"
}

checksum=$(cat /dev/null "${series[@]}" | sha256sum)
if [[ -d ${dir} && "$(cat "${dir}/.git/written-from" 2>/dev/null)" != "${checksum}" ]]; then
  echo "${dir} was made from another series than the one in patches/; remove it to begin with this one" >&2
  exit 1
fi
if [[ ! -d ${dir} ]]; then
  mkdir -p "${dir%/*}"
  making=$(mktemp -d "${dir%/*}/unfinished-XXXXXX")
  trap 'rm -rf "${making}"' EXIT
  cd "${making}"
  git init -q -b main
  git config user.name "origin-node maintainers"
  git config user.email maintainers@origin-node.invalid
  git config merge.conflictStyle diff3
  import "${written_for}" old
  git checkout -q -b series
  if ((${#series[@]})); then git am -q --keep-cr --whitespace=nowarn "${series[@]}"; fi
  git branch -q old-series
  import "${version}" upstream
  echo "${checksum}" >.git/written-from
  mv "${making}" "${dir}"
  cd "${dir}"
  git rebase -q --onto upstream old series || true # git waits for a person at a conflict, which is told below
fi
cd "${dir}"
if [[ -d .git/rebase-merge ]]; then
  git status
  echo "git cannot merge the series: go on in ${dir}, as git says above, then run this again" >&2
  exit 1
fi
if ! git merge-base --is-ancestor upstream series; then
  echo "git has not rebased the series: do so in ${dir} with 'git rebase --onto upstream old series', or remove it to start again" >&2
  exit 1
fi
if ((${#series[@]} == 0)); then
  printf '%s has the release as the branch upstream, for the first patch of %s\n' "${dir}" "${module}"
  exit
fi
printf '\nWhat upstream changed from %s in the files of the series of %s:\n' "${written_for}" "${module}"
mapfile -t files < <(git diff --name-only old old-series)
git diff --stat old upstream -- "${files[@]}"
printf '\nThe series on both releases; "=" marks a patch that is the same:\n'
git range-diff --no-color old..old-series upstream..series
printf '\n%s has the series as commits on the branch upstream. Remove it to start again.\n' "${dir}"
