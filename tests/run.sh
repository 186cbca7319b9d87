#!/usr/bin/env bash
# Builds the release preset and passes the tests. Installs what it needs.
# --long adds the tests labelled slow: campaigns, and the golden vectors under gcc and
# clang at -O0 and -O3.
set -euo pipefail
cd "$(dirname "$0")/.."
long=0
for argument in "$@"; do
  case "$argument" in
    --long) long=1 ;;
    *) echo "tests/run.sh: unknown argument $argument; expected --long" >&2; exit 2 ;;
  esac
done
install=()
[ "$long" -eq 1 ] && install=(--long)
deploy/install-packages.sh "${install[@]}"
cmake --preset release > /dev/null
cmake --build --preset release --parallel "$(nproc)"
labels=(-LE 'slow|gpu')
[ "$long" -eq 1 ] && labels=(-LE gpu)
ctest --test-dir build/release --output-on-failure --parallel "$(nproc)" "${labels[@]}"
if ! command -v nvidia-smi > /dev/null || ! nvidia-smi -L > /dev/null 2>&1; then
  echo "skipped: tests labelled gpu (no GPU on this machine)"
fi
[ "$long" -eq 1 ] || echo "skipped: tests labelled slow (run with --long)"
