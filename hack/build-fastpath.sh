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
go run -mod=mod github.com/cilium/ebpf/cmd/bpf2go -go-package fastpath -output-dir "${dir}" -target bpfel,bpfeb -no-global-types \
  -cc "${clang}" -strip "$(command -v "llvm-strip-${version}" llvm-strip | head -1)" \
  -cflags "-O2 -mcpu=v3 -Wall -Werror -I/usr/include/$(uname -m)-linux-gnu" "${types[@]/#/-type=}" programs "${root}/pkg/kernel/fastpath/bpf/fastpath.c"

# bpf2go writes the same Go code for each byte order, but for the programs that it embeds. It is in one file here, without what nobody uses.
cd "${dir}"
of_order='^//go:(build|embed) '
embedding='^// Do not access this directly\.$'
unused='^// (Names of all BPF objects|programs(|Program|Map|Variable)Specs contains|programsVariables contains)'
if ! cmp <(grep -vE "${of_order}" programs_bpfel.go) <(grep -vE "${of_order}" programs_bpfeb.go) ||
  [[ $(grep -cE "${of_order}|${embedding}|${unused}" programs_bpfel.go) != 9 ]]; then
  echo "bpf2go writes other Go code than before: adapt what $0 takes from it" >&2
  exit 1
fi
sed -E "/^\/\/go:build /d; /^\t_ \"embed\"$/d; /^\tprogramsVariables$/d; \#${unused}#,/^$/d; \#${embedding}#,\$d" programs_bpfel.go | gofmt >programs_linux.go
sed -i "/^import ($/,\#${embedding}#c import _ \"embed\"\n\n// Do not access this directly." programs_bpfe[bl].go
gofmt -w programs_bpfe[bl].go
