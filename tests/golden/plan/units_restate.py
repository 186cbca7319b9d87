#!/usr/bin/env python3
"""The golden vectors of buckets and packing, by unit_rules.py; --check as in
restate.py.
"""
import json

from unit_rules import bucket_steps, buckets_of, packs
from vectors import compact, write_or_check


def track(rate, size, rotation, runs, gops, events=()):
    return {"rate": rate, "constant": True, "size": size, "rotation": rotation,
            "rows": sum(n for n, _ in gops), "runs": runs, "gops": gops,
            "events": list(events) or [0] * len(gops)}


INDEX = [
    track([60, 1], [640, 360], 0, [[0, 100], [110, 215]], [[10, 0]] * 22,
          [i * i for i in range(22)]),
    track([30, 1], [360, 640], 90, [[0, 75]], [[25, 0]] * 3, [0, 40, 41]),
    track([30, 1], [320, 240], 0, [[2, 61], [70, 90]], [[30, 0]] * 3, [0, 5, 90]),
    track([60, 1], [1920, 1080], 0, [[0, 33]], [[33, 0]]),
    track([30, 1], [240, 320], 270, [[0, 9], [9, 29]], [[29, 1]], [7]),
]
BUCKETS = [
    {"name": "wide", "frames": 16, "width": 320, "height": 180, "samples": 3},
    {"name": "wide-short", "frames": 7, "width": 320, "height": 180, "samples": 4},
    {"name": "large", "frames": 16, "width": 1280, "height": 720, "samples": 1},
    {"name": "tall", "frames": 16, "width": 160, "height": 120, "samples": 2},
]
RATES = [
    {"name": "slow", "frames": 16, "width": 64, "height": 64, "samples": 2,
     "fps": "24"},
    {"name": "fast", "frames": 16, "width": 64, "height": 64, "samples": 2,
     "fps": "50"},
]


def yaml(feed):
    """The feed as people write it; JSON is YAML."""
    message = {k: v for k, v in feed.items()
               if k not in ("per_frame", "per_event", "sources", "order", "epochs")}
    message["name"] = "units"
    if feed["epochs"]:
        message["epochs"] = feed["epochs"]
    if "per_frame" in feed:
        message["length"] = "%s*frames + %s*events" % (feed["per_frame"],
                                                       feed["per_event"])
    message["sources"] = [
        {k: v for k, v in s.items() if k != "captures"} | {"dataset": "a"}
        for s in feed["sources"]]
    message["outputs"] = [{"name": "time", "times": {}}]
    return json.dumps(message, indent=1)


def feed(**fields):
    return {"seed": 9, "order": "shuffle", "epochs": 0} | fields


TWO = [{"name": "a", "captures": [0, 1, 2, 3], "weight": "1",
        "view": {"frames": 16, "min_frames": 3, "hop": 9}},
       {"name": "b", "captures": [2, 4], "weight": "0.5",
        "view": {"frames": 16, "min_frames": 5}}]
WHOLE = [{"name": "a", "captures": [0, 1], "view": {"frames": 16}},
         {"name": "b", "captures": [2, 4], "view": {"frames": 16, "hop": 4}}]
BUCKETED = [feed(global_batch=5, buckets=BUCKETS, sources=TWO),
            feed(global_batch=3, buckets=RATES, sources=WHOLE)]
PACKED = [
    feed(global_batch=4, per_frame=10, per_event=1, sources=TWO,
         packing={"tokens": 300, "window": 16}),
    feed(global_batch=3, per_frame=10, per_event=1, sources=TWO,
         packing={"tokens": 96, "window": 20, "segments": 5, "frames": 11,
                  "length_multiple": 8, "too_long": "split"}),
    feed(global_batch=3, per_frame=12, per_event=0.5, sources=TWO,
         stages=[{"step": 7, "sources": [{"name": "b", "weight": "3"}]},
                 {"step": 11, "global_batch": 5,
                  "sources": [{"name": "a", "weight": "0.25"}]}],
         packing={"tokens": 120, "window": 10, "too_long": "truncate"}),
    feed(global_batch=4, per_frame=10, per_event=0, epochs=2, sources=WHOLE,
         packing={"tokens": 400, "window": 32, "segments": 2}),
    feed(global_batch=7, per_frame=10, per_event=1, mode="evaluation",
         sources=[dict(s, weight="1") for s in TWO],
         packing={"tokens": 320, "window": 24}),
]
PACKS = 120


def main():
    vectors = {
        "index": compact(INDEX),
        "buckets_of": compact([[buckets_of(b, t) for t in INDEX]
                               for b in (BUCKETS, RATES)]),
        "bucket_lists": compact([BUCKETS, RATES]),
        "bucketed": compact([
            {"yaml": yaml(f), "captures": [s["captures"] for s in f["sources"]],
             "steps": bucket_steps(f, INDEX, 9)[:24]} for f in BUCKETED]),
    }
    made = []
    for f in PACKED:
        out, counts, ended = packs(f, INDEX, PACKS)
        made.append({"yaml": yaml(f),
                     "captures": [s["captures"] for s in f["sources"]],
                     "packs": out, "counts": counts, "ended": ended})
    vectors["packed"] = compact(made)
    write_or_check("units.json", vectors)


if __name__ == "__main__":
    main()
