#!/usr/bin/env bash
# usage: SOURCE_DATE_EPOCH=SECONDS build-packages.sh VERSION ARCH...
# Writes a deb and an rpm for each architecture to _output/packages, of the programs that 'make build ARCH=ARCH' has built. They
# are the same, byte for byte, wherever and whenever they are made: SOURCE_DATE_EPOCH is the time of everything in them.
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022
version=$1
shift

# v1.2.3-4-g0123456, the fourth commit after a tag, is 1.2.3+4+g0123456. Without a tag commits are in the order of their times.
case "${version}" in
  v[0-9]*) PACKAGE_VERSION=${version#v} ;;
  *) PACKAGE_VERSION=0~$(date --utc --date="@${SOURCE_DATE_EPOCH}" +%Y%m%d%H%M%S).${version} ;;
esac
PACKAGE_VERSION=${PACKAGE_VERSION//-/+}
DOCUMENTS=_output/documents
export SOURCE_DATE_EPOCH PACKAGE_VERSION DOCUMENTS

# Built as `make build` builds, so that nothing is compiled twice.
export CGO_ENABLED=0
GOFLAGS="$(go env GOFLAGS) -trimpath"
export GOFLAGS
go -C hack/tools/nfpm build -o "${PWD}/_output/tools/nfpm" github.com/goreleaser/nfpm/v2/cmd/nfpm
rm -rf "${DOCUMENTS}" _output/packages
mkdir -p _output/packages
go run ./hack/packages/documents "${PACKAGE_VERSION}" "${SOURCE_DATE_EPOCH}" "${DOCUMENTS}"
for ARCH in "$@"; do
  export ARCH PROGRAMS=_output/local/bin/linux/${ARCH}
  for format in deb rpm; do
    _output/tools/nfpm package --config=hack/packages/nfpm.yaml --packager="${format}" --target=_output/packages/
  done
done
