#!/usr/bin/env bash
# The golden vectors under gcc and clang, at -O0 and -O3, and at -O3 for processors
# with fused multiply-add, where a compiler may contract unless it is told not to.
#
#     tests/vectors.sh BUILD_FOLDER
#
# Builds the pure tests alone, each kind in a folder of its own; says which vector
# differs where. Exit status 1: one does, or does not build.
set -euo pipefail
source_dir="$(cd "$(dirname "$0")/.." && pwd)"
folder="${1:?usage: tests/vectors.sh BUILD_FOLDER}"
golden=(plan_vectors format_test layout_test)
whole=(hash_test random_test)  # what the others stand on

kinds=('gcc -O0' 'gcc -O3' 'clang -O0' 'clang -O3')
if [ "$(uname -m)" = x86_64 ] && grep -qw fma /proc/cpuinfo; then
  kinds+=('gcc -O3 -march=x86-64-v3' 'clang -O3 -march=x86-64-v3')
else
  echo 'skipped: -march=x86-64-v3 (this processor has no fused multiply-add)'
fi

build() {  # compiler, flags, folder
  local cxx=g++
  [ "$1" = clang ] && cxx=clang++
  if ! command -v "$cxx" > /dev/null; then
    echo "tests/vectors.sh: no $cxx; install what deploy/install-packages.sh --long" \
         "lists" >&2
    return 1
  fi
  cmake -S "$source_dir" -B "$3" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_C_COMPILER="$1" -DCMAKE_CXX_COMPILER="$cxx" \
    -DCMAKE_CXX_FLAGS_RELEASE="$2" -DCMAKE_C_FLAGS_RELEASE="$2" \
    -DPENSTOCK_KERNEL_OPTIONS= -DCMAKE_CUDA_COMPILER= \
    -DPYTHON_EXECUTABLE=/usr/bin/python3 > "$3.log" 2>&1 &&
  cmake --build "$3" --parallel "$(nproc)" --target "${golden[@]}" "${whole[@]}" \
    >> "$3.log" 2>&1
}

run() {  # folder; every program, also after one that fails
  local failed=0
  for test in "${golden[@]}"; do
    "$1/tests/$test" --use-colour no -w NoTests '[golden]' || failed=1
  done
  for test in "${whole[@]}"; do
    "$1/tests/$test" --use-colour no || failed=1
  done
  return "$failed"
}

# A file with vectors that plan_vectors lacks would go unseen.
for file in "$source_dir"/tests/unit/plan/*.cc; do
  if grep -q '\[golden\]' "$file" &&
      ! grep -A 2 '^set(golden' "$source_dir/tests/unit/plan/CMakeLists.txt" |
        grep -qw "$(basename "$file")"; then
    echo "tests/vectors.sh: $file has vectors; put it into \`golden\` beside it" >&2
    exit 1
  fi
done

mkdir -p "$folder"
wrong=0
for kind in "${kinds[@]}"; do
  begin=$SECONDS
  into="$folder/${kind// /}"
  echo "== $kind"
  if ! build "${kind%% *}" "${kind#* }" "$into"; then
    tail -n 40 "$into.log" >&2 || true
    echo "== $kind: does not build"
    wrong=1
  elif ! run "$into"; then
    echo "== $kind: a vector differs"
    wrong=1
  else
    echo "== $kind: the same vectors, $((SECONDS - begin)) s"
  fi
done
exit "$wrong"
