#!/usr/bin/env bash
# Installs what deploy/packages.txt lists and is missing; needs root or sudo.
set -euo pipefail
list="$(dirname "$0")/packages.txt"
missing=()
while read -r package; do
  case "$package" in ''|'#'*) continue ;; esac
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
    missing+=("$package")
done < "$list"
[ "${#missing[@]}" -eq 0 ] && exit 0
echo "installing ${#missing[@]} packages: ${missing[*]}" >&2
run=()
[ "$(id -u)" -eq 0 ] || run=(sudo)
"${run[@]}" apt-get -o DPkg::Lock::Timeout=600 update -qq >&2
"${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 \
  install -y -qq --no-install-recommends "${missing[@]}" >&2
