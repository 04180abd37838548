#!/usr/bin/env bash
# usage: build-fastpath.sh [DIR]
# Compiles the programs of pkg/kernel/fastpath for the kernel, and makes the Go code that loads them, there or in DIR. What it makes
# depends on clang's version: the one of Debian 12 has made what is committed.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
dir=${1:-${root}/pkg/kernel/fastpath}
version=14
for clang in "clang-${version}" clang; do
  if "${clang}" --version 2>/dev/null | grep -q "clang version ${version}\."; then
    break
  fi
  clang=
done
if [[ -z ${clang} ]]; then
  echo "clang ${version} is missing: on Debian 12, apt-get install clang llvm libbpf-dev" >&2
  exit 1
fi
cd "${root}/hack/tools"
types=(settings pod holder network sender hardware address counter)
go run -mod=mod github.com/cilium/ebpf/cmd/bpf2go -go-package fastpath -output-dir "${dir}" -target bpfel,bpfeb \
  -cc "${clang}" -strip "$(command -v "llvm-strip-${version}" llvm-strip | head -1)" \
  -cflags "-O2 -mcpu=v3 -Wall -Werror -I/usr/include/$(uname -m)-linux-gnu" "${types[@]/#/-type=}" programs "${root}/pkg/kernel/fastpath/bpf/fastpath.c"
