#!/usr/bin/env bash
# Installs what deploy/packages.txt lists and is missing; needs root or sudo.
# --long adds deploy/packages-long.txt, for `tests/run.sh --long`.
set -euo pipefail
cd "$(dirname "$0")"
lists=(packages.txt)
for argument in "$@"; do
  case "$argument" in
    --long) lists+=(packages-long.txt) ;;
    *) echo "install-packages.sh: unknown argument $argument; expected --long" >&2; exit 2 ;;
  esac
done
missing=()
while read -r package; do
  case "$package" in ''|'#'*) continue ;; esac
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
    missing+=("$package")
done < <(cat "${lists[@]}")
[ "${#missing[@]}" -eq 0 ] && exit 0
echo "installing ${#missing[@]} packages: ${missing[*]}" >&2
run=()
[ "$(id -u)" -eq 0 ] || run=(sudo)
"${run[@]}" apt-get -o DPkg::Lock::Timeout=600 update -qq >&2
"${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 \
  install -y -qq --no-install-recommends "${missing[@]}" >&2
