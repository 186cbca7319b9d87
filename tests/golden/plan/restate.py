#!/usr/bin/env python3
"""The golden vectors of the plan, by the rules of rules.py.

Written from common/random/README.md and common/plan/README.md, not from the C++,
and with other means. Writes the vectors beside itself:

    python3 restate.py            # rewrites plan.json
    python3 restate.py --check    # exits 1 when plan.json differs

A changed vector is a new plan version and needs a decision entry.
"""
import fractions
import hashlib
import json
import struct

from rules import (M64, Plan, draw, draw_below, make_key, mixture, permute,
                   round_weights, tempered, windows)
from vectors import compact, write_or_check


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"),
                      ensure_ascii=False)


def canonical_order(feed):
    sources = sorted(feed["sources"], key=lambda s: s["name"].encode())
    quotas = round_weights([s.get("weight", "1") for s in sources])

    def view(v):
        fps = v.get("fps")
        stride = None if fps else v.get("stride", 1)
        hop = v.get("hop") or (None if fps else v["frames"] * stride)
        return {"track": v.get("track", ""), "frames": v["frames"],
                "min_frames": v.get("min_frames") or v["frames"],
                "stride": stride, "hop": hop, "align": v.get("align", "none"),
                "fps": rate(fps)}

    def rate(fps):
        f = fractions.Fraction(fps) if fps else None
        return f"{f.numerator}/{f.denominator}" if fps else None

    def decimal(text):
        whole, _, rest = str(text).partition(".")
        rest = rest.rstrip("0")
        return (str(int(whole)) + ("." + rest if rest else ""))

    def strata(s):
        if not s:
            return None
        mode = s.get("mode", "proportional")
        return {"by": s["by"], "mode": mode,
                "temperature": decimal(s["temperature"])
                if mode == "temperature" else None,
                "weights": {k: decimal(v)
                            for k, v in s.get("weights", {}).items()}}

    limited = feed["epochs"] or any(s.get("epochs") for s in sources)
    exhaustion = feed.get("exhaustion") or ("stop" if limited else "repeat")
    per = feed.get("per", "samples")
    exact = feed.get("stages") or exhaustion == "renormalise" or per == "tokens"
    packing = feed.get("packing")
    return canonical({
        "plan_version": 3, "seed": feed["seed"], "per": per,
        "length": feed["length"] if packing or per == "tokens" else None,
        "buckets": [{"name": b["name"], "frames": b["frames"],
                     "width": b["width"], "height": b["height"],
                     "samples": b.get("samples", 1), "fps": rate(b.get("fps"))}
                    for b in feed.get("buckets", [])],
        "packing": packing and {
            "tokens": packing["tokens"], "window": packing.get("window", 4096),
            "segments": packing.get("segments", 64),
            "frames": packing.get("frames", 0),
            "length_multiple": packing.get("length_multiple", 1),
            "too_long": packing.get("too_long", "error")},
        "lanes": feed.get("lanes", 0),
        "mode": feed.get("mode", "training"), "exhaustion": exhaustion,
        "global_batch": feed["global_batch"], "order": feed["order"],
        "skip": feed.get("skip", []),
        "stages": [{"step": s["step"], "global_batch": s.get("global_batch", 0),
                    "sources": [{"name": c["name"],
                                 "weight": decimal(c["weight"])
                                 if "weight" in c else None,
                                 "view": view(c["view"]) if "view" in c else None}
                                for c in s.get("sources", [])]}
                   for s in feed.get("stages", [])],
        "sources": [{"name": s["name"], "quota": q,
                     "limit": (s.get("epochs") or feed["epochs"])
                     if exhaustion != "repeat" else 0,
                     "weight": decimal(s.get("weight", "1")) if exact else None,
                     "strata": strata(s.get("strata")), "view": view(s["view"])}
                    for s, q in zip(sources, quotas)]})


def canonical_content(feed):
    sources = sorted(feed["sources"], key=lambda s: s["name"].encode())
    return canonical({
        "transform_version": 1, "outputs": feed["outputs"],
        "sources": [{"name": s["name"],
                     "pairing": s["view"].get("pairing", "frame_t_action_t")}
                    for s in sources]})


def digest(domain, text):
    return hashlib.sha256(domain.encode() + b"\n" + text.encode()).hexdigest()


# ---- cases ------------------------------------------------------------------
INDEX = [
    {"rate": [60, 1], "constant": True, "rows": 1000,
     "runs": [[0, 400], [410, 1000]], "gops": [[30, 0]] * 33 + [[10, 0]]},
    {"rate": [30000, 1001], "constant": True, "rows": 300, "runs": [[0, 300]],
     "gops": [[7, 0], [50, 3], [2, 2], [41, 0], [100, 4], [100, 0]]},
    {"rate": [0, 0], "constant": False, "rows": 97, "runs": [[0, 20], [21, 97]],
     "gops": [[97, 0]]},
    {"rate": [120, 1], "constant": True, "rows": 5000, "runs": [[3, 4997]],
     "gops": [[5, 1]] * 1000},
]
VIEWS = [
    ([0, 1, 2, 3], {"frames": 16}),
    ([0, 1, 2, 3], {"frames": 1}),
    ([2, 0], {"frames": 10, "stride": 3, "hop": 7}),
    ([0, 3], {"frames": 20, "fps": "30"}),
    ([0, 3], {"frames": 20, "fps": "60", "hop": 11}),
    ([1], {"frames": 4, "fps": "30000/1001"}),
    ([1], {"frames": 4, "fps": "29.97"}),
    ([2], {"frames": 4, "fps": "30"}),
    ([0, 1, 2, 3], {"frames": 16, "align": "gop"}),
    ([0, 1, 2, 3], {"frames": 16, "align": "gop", "hop": 1}),
    ([1, 3], {"frames": 8, "stride": 2, "align": "gop", "hop": 13}),
    ([2], {"frames": 77}),
    ([2], {"frames": 76}),
]
WEIGHTS = [
    ["1"], ["1", "1", "1"], ["0.30", "0.7"], ["2", "2"], ["0", "1"], ["0", "0"],
    ["1", "65535"], ["1", "999999"], ["0.000000001", "0.000000001"],
    ["0.1", "0.2", "0.3", "0.15", "0.25"], ["5", "0", "3", "0.5", "0.125"],
    ["999999999.999999999", "500000000", "7"], ["3"] * 7,
]
FEEDS = [
    {"yaml": """\
name: two
seed: 42
global_batch: 12
epochs: 2
sources:
  - name: zeta
    dataset: a
    weight: 0.30
    view: {frames: 16, stride: 2, hop: 8, track: "cam \\"1\\"\\n\\u0001é"}
  - name: Alpha
    dataset: b
    weight: 0.70
    view: {frames: 16, align: gop, pairing: frame_t_action_t_minus_1}
outputs:
  - name: pixels
    video: {width: 128, height: 72, layout: thwc, colour: gray, resize: letterbox}
  - name: keys
    keys: {track: pad, keys: [KeyW, MouseLeft]}
  - name: time
    times:
""",
     "feed": {"seed": 42, "global_batch": 12, "epochs": 2, "order": "shuffle",
              "sources": [
                  {"name": "zeta", "weight": "0.30", "captures": [0, 3],
                   "view": {"frames": 16, "stride": 2, "hop": 8,
                            "track": 'cam "1"\n\x01é'}},
                  {"name": "Alpha", "weight": "0.70", "captures": [1, 3],
                   "view": {"frames": 16, "align": "gop",
                            "pairing": "frame_t_action_t_minus_1"}}],
              "outputs": [
                  {"name": "pixels", "kind": "video", "width": 128,
                   "height": 72, "layout": "thwc", "colour": "gray",
                   "resize": "letterbox"},
                  {"name": "keys", "kind": "keys", "track": "pad",
                   "keys": ["KeyW", "MouseLeft"]},
                  {"name": "time", "kind": "times"}]},
     "steps": [0, 1, 2, 7]},
    {"yaml": """\
name: one
global_batch: 5
order: sequential
sources:
  - {name: only, dataset: a, view: {frames: 20, fps: 60}}
outputs:
  - {name: mouse, mouse: {}}
  - {name: hp, columns: {columns: [health]}}
  - {name: x, video: {width: 8, height: 8}}
""",
     "feed": {"seed": 0, "global_batch": 5, "epochs": 0, "order": "sequential",
              "sources": [{"name": "only", "captures": [0, 3],
                           "view": {"frames": 20, "fps": "60"}}],
              "outputs": [
                  {"name": "mouse", "kind": "mouse", "track": ""},
                  {"name": "hp", "kind": "columns", "track": "",
                   "columns": ["health"]},
                  {"name": "x", "kind": "video", "width": 8, "height": 8,
                   "layout": "tchw", "colour": "rgb", "resize": "bilinear"}]},
     "steps": [0, 30, 31, 1000]},
    {"yaml": """\
name: three
seed: 18446744073709551615
global_batch: 64
epochs: 40
sources:
  - {name: c, dataset: a, weight: 0, view: {frames: 2}}
  - {name: b, dataset: a, weight: 3, view: {frames: 2}}
  - {name: a, dataset: a, weight: 0.5, view: {frames: 2, hop: 1}}
  - {name: d, dataset: a, view: {frames: 2, hop: 50}}
outputs:
  - {name: x, video: {width: 8, height: 8}}
""",
     "feed": {"seed": M64, "global_batch": 64, "epochs": 40, "order": "shuffle",
              "sources": [
                  {"name": "c", "weight": "0", "captures": [0],
                   "view": {"frames": 2}},
                  {"name": "b", "weight": "3", "captures": [0, 1, 2, 3],
                   "view": {"frames": 2}},
                  {"name": "a", "weight": "0.5", "captures": [2, 3],
                   "view": {"frames": 2, "hop": 1}},
                  {"name": "d", "captures": [3, 0],
                   "view": {"frames": 2, "hop": 50}}],
              "outputs": [
                  {"name": "x", "kind": "video", "width": 8, "height": 8,
                   "layout": "tchw", "colour": "rgb", "resize": "bilinear"}]},
     "steps": [0, 9, 100]},
    {"yaml": """\
name: staged
seed: 5
global_batch: 16
exhaustion: renormalise
skip:
  - {from: 3, to: 5}
  - {from: 9, to: 10}
sources:
  - {name: a, dataset: a, weight: 1, epochs: 1, view: {frames: 16}}
  - name: b
    dataset: a
    weight: 2
    view: {frames: 16, hop: 5}
    strata: {by: [title], mode: temperature, temperature: 2.5}
  - name: c
    dataset: a
    weight: 0
    epochs: 2
    view: {frames: 16}
    strata: {by: [title, condition.map], mode: explicit, weights: [{label: "x|1", weight: 3}, {label: "y|", weight: 0.5}]}
stages:
  - step: 4
    global_batch: 24
    sources:
      - {name: c, weight: 1.50}
  - step: 12
    sources:
      - {name: b, view: {frames: 16, hop: 16}}
      - {name: c, weight: 0.25}
outputs:
  - {name: time, times: {}}
""",
     "feed": {"seed": 5, "global_batch": 16, "epochs": 0, "order": "shuffle",
              "exhaustion": "renormalise",
              "skip": [{"from": 3, "to": 5}, {"from": 9, "to": 10}],
              "sources": [
                  {"name": "a", "weight": "1", "epochs": 1, "captures": [0],
                   "view": {"frames": 16}},
                  {"name": "b", "weight": "2", "captures": [0, 1, 3],
                   "labels": ["doom", "wolf", "doom"],
                   "view": {"frames": 16, "hop": 5},
                   "strata": {"by": ["title"], "mode": "temperature",
                              "temperature": "2.5"}},
                  {"name": "c", "weight": "0", "epochs": 2,
                   "captures": [1, 2], "labels": ["x|1", "y|"],
                   "view": {"frames": 16},
                   "strata": {"by": ["title", "condition.map"],
                              "mode": "explicit",
                              "weights": {"x|1": "3", "y|": "0.5"}}}],
              "stages": [
                  {"step": 4, "global_batch": 24,
                   "sources": [{"name": "c", "weight": "1.50"}]},
                  {"step": 12, "sources": [
                      {"name": "b", "view": {"frames": 16, "hop": 16}},
                      {"name": "c", "weight": "0.25"}]}],
              "outputs": [{"name": "time", "kind": "times"}]},
     "steps": [0, 2, 3, 4, 6, 7, 8, 9, 20, 40]},
    {"yaml": """\
name: evaluated
seed: 6
global_batch: 32
mode: evaluation
sources:
  - {name: b, dataset: a, view: {frames: 16}}
  - {name: a, dataset: a, view: {frames: 16, hop: 40}}
  - {name: none, dataset: a, weight: 0, view: {frames: 16}}
outputs:
  - {name: time, times: {}}
""",
     "feed": {"seed": 6, "global_batch": 32, "epochs": 0, "order": "shuffle",
              "mode": "evaluation",
              "sources": [
                  {"name": "b", "captures": [1], "view": {"frames": 16}},
                  {"name": "a", "captures": [0, 2],
                   "view": {"frames": 16, "hop": 40}},
                  {"name": "none", "weight": "0", "captures": [3],
                   "view": {"frames": 16}}],
              "outputs": [{"name": "time", "kind": "times"}]},
     "steps": [0, 1]},
]
BOUND = 1200  # data steps walked; a feed that has not ended then never does


def random_vectors():
    keys = [(1, "plan.order", "a", 0), (42, "plan.order", "zeta", 3),
            (M64, "é", "", M64), (0, "", "", 0)]
    out = {"keys": [], "below": [], "permutations": [], "large": []}
    for args in keys:
        key = make_key(*args)
        out["keys"].append({
            "seed": args[0], "domain": args[1], "name": args[2],
            "index": args[3], "k0": key[0], "k1": key[1],
            "draws": [[p, a, draw(key, p, a)] for p, a in
                      ((0, 0), (1, 0), (0, 1), (M64, 2), (1 << 40, 5))]})
    key = make_key(7, "golden")
    for n in (1, 2, 3, 10, 65536, (1 << 63) + 1, (1 << 64) - 1,
              12297829382473034411):
        out["below"].append({"n": n, "values": [draw_below(key, p, n)
                                                for p in range(12)]})
    for n in (1, 2, 3, 4, 5, 7, 16, 17, 100, 257):
        out["permutations"].append(
            {"n": n, "values": [permute(n, key, i) for i in range(n)]})
    for n in (10**6, 10**9, 2**32, 2**32 + 1, 10**15 + 37, 2**63):
        at = [0, 1, 2, n // 2, n - 2, n - 1]
        out["large"].append({"n": n, "at": at,
                             "values": [permute(n, key, i) for i in at]})
    return out


def mixture_vectors():
    out = []
    for quotas in ([65536], [32768, 32768], [19661, 45875], [1, 65535],
                   [6554, 13107, 19661, 9830, 16384], [9362] * 6 + [9364],
                   [0, 40000, 25536]):
        order = mixture(quotas)
        out.append({"quotas": quotas, "first": order[:64],
                    "sha256": hashlib.sha256(
                        b"".join(struct.pack("<H", s) for s in order)
                    ).hexdigest()})
    return out


def feed_vectors():
    out = []
    for case in FEEDS:
        feed, plan = case["feed"], Plan(case["feed"], INDEX)
        order, content = canonical_order(feed), canonical_content(feed)
        steps, total = plan.run(case["steps"], BOUND)
        out.append({
            "yaml": case["yaml"], "order": order, "content": content,
            "order_digest": digest("penstock.order.v1", order),
            "content_digest": digest("penstock.content.v1", content),
            "captures": [s["captures"] for s in plan.specs],
            "labels": [s.get("labels", []) for s in plan.specs],
            "sizes": plan.sizes, "total_steps": total,
            "steps": [{"step": k, "data_step": d, "units": u, "counts": c,
                       "samples": x}
                      for k, (d, u, c, x) in sorted(steps.items())]})
    return out


def cut(mode, batch, samples, micro, world):
    """Every rank as many units: whole microbatches, the last ones masked."""
    units = -(-batch // world)
    units = -(-units // (micro or 1)) * (micro or 1)
    size = micro or units
    ranks = [[] for _ in range(world)]
    for i in range(samples):
        ranks[i % world if mode == "strided" else i // size % world].append(i)
    return {"mode": mode, "batch": batch, "samples": samples, "micro": micro,
            "world": world, "units": units, "ranks": ranks}


def main():
    vectors = {
        "random": random_vectors(),
        "weights": [{"weights": w, "quotas": round_weights(w)} for w in WEIGHTS],
        "mixture": mixture_vectors(),
        "index": INDEX,
        "views": [{"captures": c, "view": v, "windows": windows(INDEX, c, v)}
                  for c, v in VIEWS],
        "feeds": feed_vectors(),
        "cut": [cut(m, *c) for m in ("strided", "megatron")
                for c in ((12, 12, 0, 1), (12, 12, 0, 4), (12, 12, 3, 2),
                          (12, 12, 1, 12), (6, 6, 0, 2), (13, 13, 2, 3),
                          (16, 5, 2, 4), (3, 3, 0, 5), (8, 0, 1, 2))],
        "tempered": [{"value": v, "largest": n, "temperature": t,
                      "share": tempered(v, n, t)}
                     for v, n in ((1, 1), (1, 2), (3, 1000), (999, 1000),
                                  (1, 10**12), (7 * 10**8, 10**9))
                     for t in ("1", "2.5", "0.25", "100", "0.000000001")],
        "sample_id": {"source": "doom", "stratum": "e1|dark", "epoch": 0, "index": 1734,
                      "capture": "9f86d081884c7d65" + "00" * 24, "start": 960,
                      "frames": 16, "stride": 2,
                      "id": "doom/e1|dark:0:1734@9f86d081884c7d65[960+16*2]"},
    }
    write_or_check("plan.json", {k: compact(v) for k, v in vectors.items()})


if __name__ == "__main__":
    main()
