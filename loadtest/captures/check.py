#!/usr/bin/env python3
"""Checks recordings: check.py FOLDER...   Prints what ffprobe finds; exits 1 on a fault."""

import json
import pathlib
import subprocess
import sys
from collections import Counter
from fractions import Fraction


def probe(video, *extra):
    out = subprocess.run(["ffprobe", "-v", "error", "-of", "json", *extra, str(video)],
                         check=True, capture_output=True, text=True).stdout
    return json.loads(out)


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def check(folder):
    faults = []

    def need(ok, what):
        if not ok:
            faults.append(what)

    capture = json.loads((folder / "capture.json").read_text(encoding="utf-8"))
    video = folder / capture["video"]["file"]
    info = probe(video, "-count_frames", "-show_streams", "-show_format")
    picture = next(s for s in info["streams"] if s["codec_type"] == "video")
    sound = next(s for s in info["streams"] if s["codec_type"] == "audio")
    frames = probe(video, "-select_streams", "v", "-show_entries",
                   "frame=pict_type,key_frame,pts_time")["frames"]
    types = Counter(f["pict_type"] for f in frames)
    keys = [i for i, f in enumerate(frames) if f["key_frame"]]
    rate = Fraction(picture["r_frame_rate"])
    count = len(frames)
    seconds = float(count / rate)
    decoded = subprocess.run(["ffmpeg", "-v", "error", "-i", str(video), "-map", "0:a", "-f", "s16le",
                              "-ac", "1", "-ar", "48000", "-"], check=True, capture_output=True)
    sound_seconds = len(decoded.stdout) / 2 / 48000
    loud = max(abs(int.from_bytes(decoded.stdout[i:i + 2], "little", signed=True))
               for i in range(0, len(decoded.stdout), 2))
    need(int(picture["nb_read_frames"]) == count, "frame count")
    need(picture["has_b_frames"] > 0 and types["B"] > 0, "no B-frames")
    need(seconds >= 20, "shorter than 20 s")
    need(picture["width"] >= 640 and picture["height"] >= 480 and rate >= 35, "too small or slow")
    need(abs(sound_seconds - seconds) < 0.1, f"sound lasts {sound_seconds:.3f} s of {seconds:.3f}")
    need(loud > 1000, "silent")
    for i, frame in enumerate(frames):
        if abs(float(frame["pts_time"]) - float(frames[0]["pts_time"]) - float(i / rate)) > 0.0011:
            need(False, f"frame {i} is off its time")
            break

    by_kind = {t["kind"]: t for t in capture["tracks"]}
    ticks = rows(folder / by_kind["ticks"]["file"])
    actions = rows(folder / by_kind["frames"]["file"])
    events = rows(folder / by_kind["events"]["file"])
    need(Fraction(by_kind["ticks"]["tick_rate"]) == rate, "tick rate")
    need([t["tick"] for t in ticks] == list(range(count)), "ticks do not match the frames")
    need([a["frame"] for a in actions] == list(range(count)), "actions do not match the frames")
    for track, data in ((by_kind["ticks"], ticks), (by_kind["frames"], actions)):
        names = {c["name"] for c in track["columns"]}
        need(all(names < set(row) for row in data), f"columns of {track['name']}")

    held = set(events[0]["held_at_start"])
    start_held, taps, pressed_at, last = len(held), 0, {}, -1
    for event in events[1:]:
        need(0 <= event["t_ns"] < seconds * 1e9 and event["t_ns"] >= last, "event time or order")
        last = event["t_ns"]
        if event["kind"] in ("key", "button"):
            usage = event["usage"]
            need((usage in held) != bool(event["value"]), f"press and release at {last}")
            if event["value"]:
                held.add(usage)
                pressed_at[usage] = last
            else:
                held.discard(usage)
                at = pressed_at.get(usage)
                taps += at is not None and int(at * rate / 10**9) == int(last * rate / 10**9)
    need(not held, f"never released: {held}")
    size = sum(p.stat().st_size for p in folder.iterdir())
    need(size <= 2_000_000, f"{size} bytes")
    gaps = sorted({b - a for a, b in zip(keys, keys[1:])})
    print(f"{folder.name}: {picture['codec_name']} {picture['width']}x{picture['height']} "
          f"{picture['r_frame_rate']} {video.name}, {count} frames ({types['I']} I {types['P']} P "
          f"{types['B']} B), has_b_frames {picture['has_b_frames']}, {len(keys)} key frames, "
          f"gaps {gaps}, {picture.get('color_space')}/{picture.get('color_range')}, "
          f"{seconds:.3f} s; {sound['codec_name']} {sound['sample_rate']} Hz {sound_seconds:.3f} s "
          f"peak {loud}; {len(ticks)} ticks, {len(actions)} actions, "
          f"{dict(Counter(e['kind'] for e in events[1:]))}, {taps} taps inside one frame, "
          f"{start_held} held at start; {size} bytes")
    for fault in faults:
        print(f"  FAULT: {fault}")
    return not faults


if __name__ == "__main__":
    good = [check(pathlib.Path(name)) for name in sys.argv[1:] if pathlib.Path(name).is_dir()]
    sys.exit(0 if good and all(good) else 1)
