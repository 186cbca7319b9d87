#!/bin/sh
# Instructions of the plan's hot loops, counted by callgrind: the same on every
# run, also on a busy machine. Needs valgrind (apt-get install valgrind).
#
#   loadtest/instructions.sh [build/release/bin]
#
# Fails when a step far on costs more than 1.05 of an early one.
set -eu
bin=${1:-build/release/bin}
command -v valgrind >/dev/null || {
  echo "instructions.sh: valgrind is not installed; apt-get install valgrind" >&2
  exit 2
}

# Instructions of one run: loop, argument, count.
count() {
  valgrind --tool=callgrind --callgrind-out-file=/dev/null \
    "$bin/penstock-plan-loops" "$1" "$2" "$3" 2>&1 >/dev/null |
    sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}

# Of one turn of a loop: what more turns cost more, so that the start is not in it.
each() {
  few=$(count "$1" "$2" "$3")
  many=$(count "$1" "$2" $(($3 + $4)))
  echo $(((many - few) / $4))
}

echo "| loop | instructions |"
echo "|---|---|"
# 2^62 + 1: the widest numbers; 3: of all n the most walks, 4/3 an index.
for n in 1000000000 4611686018427387905 3; do
  echo "| an index of n = $n | $(each index "$n" 1000 1000000) |"
done
early=$(each step 10 1 20)
late=$(each step 1000000 1 20)
echo "| a sample of step 10 | $((early / 1000)) |"
echo "| a sample of step 10^6 | $((late / 1000)) |"
awk -v a="$early" -v b="$late" 'BEGIN {
  printf "| step 10^6 / step 10 | %.4f (<= 1.05) |\n", b / a
  exit b / a > 1.05
}'
