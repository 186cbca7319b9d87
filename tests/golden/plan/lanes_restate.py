#!/usr/bin/env python3
"""The golden vectors of lanes, restated from common/plan/README.md: every lane's
chunks written out as one list. --check as in restate.py.
"""
import fractions
import json
import math

import rules
from vectors import compact, write_or_check

F = fractions.Fraction
PASSES = 40


def track(rows, runs=None, gops=None):
    return {"rate": [30, 1], "constant": True, "rows": rows,
            "runs": runs or [[0, rows]], "gops": gops or [[rows, 0]]}


INDEX = [track(40), track(75, [[0, 31], [33, 75]]), track(9), track(120),
         track(64, gops=[[10, 0], [13, 2], [21, 0], [20, 1]]), track(30, [[3, 30]]),
         track(55), track(7)]


def lanes_of(feed, weights):
    """Lanes of each source; largest remainder."""
    quotas = rules.round_weights(weights)
    shares = [F(q * feed["lanes"], rules.Q) for q in quotas]
    lanes = [math.floor(s) for s in shares]
    rest = sorted(range(len(lanes)), key=lambda i: (-(shares[i] - lanes[i]), i))
    for i in rest[:feed["lanes"] - sum(lanes)]:
        lanes[i] += 1
    return lanes


def goes_on(index, view, window, before):
    """Whether a window begins one hop after the one before it, in its run."""
    if before is None or before[0] != window[0]:
        return False
    hop = view.get("hop") or view["frames"] * window[2]
    run = next(r for r in index[window[0]]["runs"] if r[0] <= window[1] < r[1])
    return window[1] == before[1] + hop and before[1] >= run[0]


def deal(feed, index, views, lanes, epochs):
    """[(source, [(pass, place, window, reset)])] of the lanes."""
    merged = sorted((F(2 * i + 1, 2 * n), s)
                    for s, n in enumerate(lanes) for i in range(n))
    out = [None] * feed["lanes"]
    for s, spec in enumerate(feed["sources"]):
        own = [at for at, (_, source) in enumerate(merged) if source == s]
        if not own:
            continue
        windows = rules.windows(index, spec["captures"], views[s])
        of = {}  # capture -> its windows with their places
        for place, w in enumerate(windows):
            of.setdefault(w[0], []).append((place, w))
        captures = [c for c in spec["captures"] if c in of]
        dealt = captures
        if feed["order"] == "shuffle":
            key = rules.make_key(feed["seed"], "plan.lanes.deal", spec["name"],
                                 epochs[s])
            dealt = [captures[rules.permute(len(captures), key, i)]
                     for i in range(len(captures))]
        hands = [[] for _ in own]
        for c in sorted(dealt, key=lambda c: -len(of[c])):
            least = min(hands, key=lambda h: sum(len(of[x]) for x in h))
            least.append(c)
        for number, (at, hand) in enumerate(zip(own, hands)):
            hand = [c for c in captures if c in hand]
            chunks = []
            for p in range(PASSES):
                turn = hand
                if feed["order"] == "shuffle":
                    key = rules.make_key(feed["seed"], "plan.lanes",
                                         "%s#%d" % (spec["name"], number),
                                         epochs[s] + p)
                    turn = [hand[rules.permute(len(hand), key, i)]
                            for i in range(len(hand))]
                for c in turn:
                    before = None
                    for place, w in of[c]:
                        on = goes_on(index, views[s], w, before)
                        chunks.append((epochs[s] + p, place, w, 0 if on else 1))
                        before = w
            out[at] = (s, chunks)
    return out


def walk(feed, index, steps):
    """[[source, epoch, place, capture, start, reset]] of every delivered step."""
    sources = feed["sources"]
    weights = [s.get("weight", "1") for s in sources]
    views = [dict(s["view"]) for s in sources]
    epochs = [0] * len(sources)
    batch = feed["global_batch"]
    skipped = {k for s in feed.get("skip", []) for k in range(s["from"], s["to"])}
    stages = {s["step"]: s for s in feed.get("stages", [])}
    state = dealt = None
    taken, out, data_step, broken = 0, [], 0, False
    while len(out) < steps:
        for change in stages.get(data_step, {}).get("sources", []):
            i = [s["name"] for s in sources].index(change["name"])
            weights[i] = change.get("weight", weights[i])
            views[i] = dict(change.get("view", views[i]))
        batch = stages.get(data_step, {}).get("global_batch") or batch
        now = (lanes_of(feed, weights), views)
        if state is None or now != state:
            if dealt:
                for s in range(len(sources)):
                    begun = [chunks[taken - 1][0] + 1 for source, chunks in dealt
                             if source == s and taken]
                    epochs[s] = max(begun, default=epochs[s])
            state = (now[0], [dict(v) for v in views])
            dealt, taken = deal(feed, index, views, now[0], epochs), 0
        step = []
        for i in range(batch):
            s, chunks = dealt[i % feed["lanes"]]
            if feed.get("exhaustion") == "stop":
                limit = feed["epochs"]
                if any(c[taken + batch // feed["lanes"] - 1][0] >= limit
                       for _, c in dealt):
                    return out
            epoch, place, w, reset = chunks[taken + i // feed["lanes"]]
            if broken and i < feed["lanes"]:
                reset = 1
            step.append([s, epoch, place, w[0], w[1], reset])
        taken += batch // feed["lanes"]
        if data_step in skipped:
            broken = True
        else:
            out.append(step)
            broken = False
        data_step += 1
    return out


def feed(**fields):
    return {"seed": 11, "order": "shuffle"} | fields


TWO = [{"name": "a", "captures": [0, 1, 2, 3, 4, 6], "view": {"frames": 4}},
       {"name": "b", "captures": [1, 3, 5, 7], "weight": "0.5",
        "view": {"frames": 4, "hop": 3}}]
FEEDS = [
    feed(global_batch=4, lanes=4, sources=TWO),
    feed(global_batch=12, lanes=3, order="sequential", sources=TWO),
    feed(global_batch=6, lanes=6, sources=TWO, skip=[{"from": 3, "to": 5}],
         stages=[{"step": 8, "global_batch": 12},
                 {"step": 11, "sources": [{"name": "b", "weight": "2"}]},
                 {"step": 15, "sources": [{"name": "a",
                                           "view": {"frames": 4, "hop": 5}}]}]),
    feed(global_batch=10, lanes=2, epochs=2, exhaustion="stop", sources=TWO),
    feed(global_batch=3, lanes=3, sources=[
        {"name": "gop", "captures": [4, 0, 3],
         "view": {"frames": 4, "hop": 8, "align": "gop"}}]),
]


def yaml(f):
    message = dict(f, name="lanes", outputs=[{"name": "time", "times": {}}])
    message["sources"] = [{k: v for k, v in s.items() if k != "captures"} |
                          {"dataset": "a"} for s in f["sources"]]
    return json.dumps(message, indent=1)


def main():
    write_or_check("lanes.json", {
        "index": compact(INDEX),
        "feeds": compact([
            {"yaml": yaml(f), "captures": [s["captures"] for s in f["sources"]],
             "steps": walk(f, INDEX, 40)} for f in FEEDS])})


if __name__ == "__main__":
    main()
