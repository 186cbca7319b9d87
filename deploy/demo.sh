#!/usr/bin/env bash
# The main job, end to end, on the real captures that the repository carries:
# import -> daemon -> two ranks -> the daemon killed with -9 in the middle -> the
# ranks go on with exactly the same bytes. Installs and builds what it needs.
#
#   deploy/demo.sh [--keep DIR]
#
# --keep DIR leaves dataset, feed.yaml and penstockd.yaml in DIR, as a start for
# your own. Exit: 0 the bytes are the same; 1 they differ; 3 something failed.
set -euo pipefail
cd "$(dirname "$0")/.."

steps=40
kill_after=12
keep=""
while [ $# -gt 0 ]; do
  case "$1" in
    --keep) [ $# -ge 2 ] || { echo "demo.sh: --keep needs a folder" >&2; exit 2; }
            keep="$2"; shift 2 ;;
    *) echo "demo.sh: unknown argument $1; expected --keep DIR" >&2; exit 2 ;;
  esac
done

say() { printf '\n== %s\n' "$*"; }

say "packages and build (release)"
deploy/install-packages.sh
cmake --preset release > /dev/null
cmake --build --preset release --parallel "$(nproc)" \
  --target penstock penstockd penstock-decoder | tail -n 1
bin="$PWD/build/release/bin"

scratch="$(mktemp -d /tmp/penstock-demo.XXXXXX)"
if [ -n "$keep" ]; then
  mkdir -p "$keep"
  home="$(cd "$keep" && pwd)"
  [ ! -e "$home/dataset" ] || { echo "demo.sh: $home/dataset is there already" >&2; exit 2; }
else
  home="$scratch"
fi
daemon=""
ranks=()
cleanup() {
  for pid in "${ranks[@]}" $daemon; do kill -9 "$pid" 2> /dev/null || true; done
  wait 2> /dev/null || true
  rm -rf "$scratch"
}
trap cleanup EXIT
shm_before="$(ls -A /dev/shm 2> /dev/null | sort)"
running() { pgrep -f "^$bin/penstock" | sort || true; }
running_before="$(running)"

say "import: captures become a dataset version"
"$bin/penstock" import tests/data/captures --out "$home/dataset"
"$bin/penstock" verify "$home/dataset"

cat > "$home/feed.yaml" <<'YAML'
# What the ranks get. Every field: proto/penstock/v1/feed.proto.
name: demo
seed: 7
global_batch: 8        # samples of all ranks in a step
microbatch: 2          # samples in one forward pass
sources:
  - name: doom
    dataset: dataset   # relative to this file
    filter: title LIKE 'freedoom%'
    weight: 0.75
    view: {frames: 8, stride: 2, hop: 8}
  - name: wolf
    dataset: dataset
    filter: title = 'solarwolf'
    weight: 0.25
    view: {frames: 8, stride: 2, hop: 8}
outputs:
  - name: video
    video: {width: 256, height: 144, layout: tchw, colour: rgb}
  - name: keys
    keys: {track: input, keys: [KeyW, KeyA, KeyS, KeyD, ArrowLeft, ArrowRight, Space]}
  - name: mouse
    mouse: {track: input}
  - name: frame_ns
    times: {}
YAML
cat > "$home/penstockd.yaml" <<YAML
# Every field: proto/penstock/v1/daemon.proto.
socket_dir: $home/run
state_dir: $home/state
arena_bytes: 536870912
YAML

# Runs `penstock feed` for one rank; JSON lines with digests go to a file.
feed() { # rank output extra...
  local rank="$1" output="$2"; shift 2
  "$bin/penstock" feed --feed "$home/feed.yaml" --rank "$rank" --world 2 \
    --steps "$steps" --digest --json "$@" > "$output" 2>> "$scratch/feed.err"
}
digests() { sed -n 's/.*"digest":"\([0-9a-f]*\)".*"step":\([0-9]*\).*/\2 \1/p' "$1"; }

say "reference: the same steps without a daemon and without interruption"
for rank in 0 1; do feed "$rank" "$scratch/reference.$rank" --local; done
echo "2 ranks x $steps steps, last digest $(digests "$scratch/reference.0" | tail -n 1)"

start_daemon() {
  "$bin/penstockd" --config "$home/penstockd.yaml" 2>> "$scratch/daemon.err" &
  daemon=$!
}
say "daemon and two ranks"
start_daemon
for rank in 0 1; do
  feed "$rank" "$scratch/rank.$rank" --connect "$home/run" --incarnation demo-1 &
  ranks+=($!)
done

# Waits for a line of a rank's output, for at most a minute.
for ((i = 0; i < 1200; ++i)); do
  if [ "$(grep -c '"step":' "$scratch/rank.0" 2> /dev/null || true)" -ge "$kill_after" ]; then
    break
  fi
  kill -0 "${ranks[0]}" 2> /dev/null || break
  read -r -t 0.05 < <(:) || true
done
at="$(grep -c '"step":' "$scratch/rank.0" || true)"
say "kill -9 of the daemon (pid $daemon) after $at steps of rank 0"
[ "$at" -ge "$kill_after" ] && [ "$at" -lt "$steps" ] || {
  echo "demo.sh: the ranks did not get to step $kill_after" >&2
  cat "$scratch/feed.err" "$scratch/daemon.err" >&2
  exit 3
}
kill -9 "$daemon"
wait "$daemon" 2> /dev/null || true
start_daemon
echo "started again (pid $daemon); the ranks wait for it by themselves"
for pid in "${ranks[@]}"; do
  wait "$pid" || { echo "demo.sh: a rank failed" >&2; cat "$scratch/feed.err" "$scratch/daemon.err" >&2; exit 3; }
done
ranks=()
kill -TERM "$daemon"
wait "$daemon" || true
daemon=""

say "throughput and waits"
for rank in 0 1; do
  sed -n 's/.*"batches_per_s":\([0-9.]*\).*"frames_per_s":\([0-9.]*\).*"mb_per_s":\([0-9.]*\).*"wait_p50_ms":\([0-9.]*\),"wait_p99_ms":\([0-9.]*\).*/\1 \2 \3 \4 \5/p' \
    "$scratch/rank.$rank" |
    awk -v r="$rank" '{printf "rank %d: %.1f batches/s, %.0f frames/s, %.1f MB/s, wait p50 %.1f ms, p99 %.0f ms (the kill is in it)\n", r, $1, $2, $3, $4, $5}'
done

say "bytes against the uninterrupted run"
same=1
for rank in 0 1; do
  if diff <(digests "$scratch/reference.$rank") <(digests "$scratch/rank.$rank") > "$scratch/diff"; then
    echo "rank $rank: $(digests "$scratch/rank.$rank" | wc -l) steps, every digest equal"
  else
    same=0
    echo "rank $rank: DIFFERENT"
    head -n 5 "$scratch/diff"
  fi
done

# Nothing may be left: no process, no shared memory, no socket.
left="$(comm -13 <(echo "$running_before") <(running))"
[ -z "$left" ] || { echo "demo.sh: processes are left: $left" >&2; same=0; }
[ "$shm_before" = "$(ls -A /dev/shm 2> /dev/null | sort)" ] || {
  echo "demo.sh: something is left in /dev/shm" >&2; same=0; }
[ -z "$(find "$home/run" -type s 2> /dev/null)" ] || {
  echo "demo.sh: a socket is left in $home/run" >&2; same=0; }
[ "$same" -eq 1 ] || exit 1
say "same bytes, nothing left behind${keep:+; kept in $home}"
