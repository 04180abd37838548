#!/bin/sh
# usage: entrypoint.sh COMMAND...
# Runs COMMAND with the machine's flavour of iptables, legacy or nft. The kernel would take rules of both, and apply both: the
# kubelet and the network plugin write theirs with one, which a container cannot look up on the machine's disk.
set -eu

# A kubelet makes one of these chains with its own iptables when it starts.
hint='^:KUBE-(IPTABLES-HINT|KUBELET-CANARY) '

# mangle prints the tables mangle of a flavour. Naming a table that does not exist would have iptables-legacy make it.
mangle() {
  case $1 in
    nft)
      iptables-nft-save -t mangle
      ip6tables-nft-save -t mangle
      ;;
    legacy)
      if grep -qx mangle /proc/net/ip_tables_names; then iptables-legacy-save -t mangle; fi
      if grep -qx mangle /proc/net/ip6_tables_names; then ip6tables-legacy-save -t mangle; fi
      ;;
  esac 2>/dev/null
}

# rules prints how many rules a flavour has.
rules() {
  { "iptables-$1-save"; "ip6tables-$1-save"; } 2>/dev/null | grep -c '^-' || true
}

if mangle nft | grep -Eq "${hint}"; then
  flavour=nft
elif mangle legacy | grep -Eq "${hint}"; then
  flavour=legacy
elif [ "$(rules legacy)" -gt "$(rules nft)" ] || ! iptables-nft-save >/dev/null 2>&1; then # the kernel may have no nftables
  flavour=legacy
else
  flavour=nft
fi
PATH=/usr/lib/iptables/${flavour}:${PATH}
export PATH
exec "$@"
