#!/usr/bin/env python3
"""Restates the plan from common/random/README.md and common/plan/README.md.

Written from the documents, not from the C++, and with other means (naive
searches, plain lists). Writes the vectors beside itself:

    python3 restate.py            # rewrites plan.json
    python3 restate.py --check    # exits 1 when plan.json differs

A changed vector is a new plan version and needs a decision entry.
"""
import fractions
import hashlib
import json
import math
import pathlib
import struct
import sys

M64 = (1 << 64) - 1
Q = 65536


# ---- random -----------------------------------------------------------------
def u64(x):
    return struct.pack("<Q", x)


def make_key(seed, domain, name="", index=0):
    d, n = domain.encode(), name.encode()
    h = hashlib.sha256(b"penstock.random.v1\n" + u64(seed) + u64(len(d)) + d +
                       u64(len(n)) + n + u64(index)).digest()
    return struct.unpack("<QQ", h[:16])


def mix(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & M64
    x = (x ^ x >> 27) * 0x94D049BB133111EB & M64
    return x ^ x >> 31


def draw(key, position, attempt=0):
    k0, k1 = key
    return mix(mix((position + k0) & M64) ^
               ((k1 + attempt * 0x9E3779B97F4A7C15) & M64))


def draw_below(key, position, n):
    attempt = 0
    while True:
        product = draw(key, position, attempt) * n
        if product & M64 >= (1 << 64) % n:
            return product >> 64
        attempt += 1


def permute(n, key, i):
    a = math.isqrt(n - 1) + 1 if n > 1 else 1
    b = -(-n // a)
    keys = [draw(key, r) for r in range(8)]

    def f(r, x, m):
        y = (x + keys[r]) * 0xBF58476D1CE4E5B9 & M64
        y = (y ^ y >> 32) * 0x94D049BB133111EB & M64
        return y * m >> 64

    while True:
        left, right = divmod(i, b)
        for r in (0, 2, 4, 6):
            left = (left + f(r, right, a)) % a
            right = (right + f(r + 1, left, b)) % b
        i = left * b + right
        if i < n:
            return i


# ---- weights and mixture ----------------------------------------------------
def round_weights(texts):
    """Quotas, or None when refused."""
    w = [fractions.Fraction(t) for t in texts]
    if sum(w) == 0:
        return None
    shares = [x * Q / sum(w) for x in w]
    quotas = [math.floor(s) for s in shares]
    by_rest = sorted(range(len(w)), key=lambda i: (-(shares[i] - quotas[i]), i))
    for i in by_rest[:Q - sum(quotas)]:
        quotas[i] += 1
    if any(x > 0 and q == 0 for x, q in zip(w, quotas)):
        return None
    return quotas


def mixture(quotas):
    """The source at each position of a period."""
    done = [0] * len(quotas)
    order = []
    for t in range(Q):
        best = None
        for s, q in enumerate(quotas):
            j = done[s]
            if j >= q or j * Q // q > t:
                continue
            deadline = -(-(j + 1) * Q // q)
            if best is None or deadline < best[0]:
                best = (deadline, s)
        assert best is not None and t < best[0]
        order.append(best[1])
        done[best[1]] += 1
    return order


# ---- views ------------------------------------------------------------------
def windows(index, captures, view):
    """[(capture, start, stride)], or None when refused."""
    out = []
    for c in captures:
        track = index[c]
        if view.get("fps"):
            if not track["constant"]:
                return None
            ratio = fractions.Fraction(*track["rate"]) / fractions.Fraction(
                view["fps"])
            if ratio.denominator != 1:
                return None
            stride = int(ratio)
        else:
            stride = view.get("stride", 1)
        span = (view["frames"] - 1) * stride + 1
        hop = view.get("hop") or view["frames"] * stride
        if view.get("align") == "gop":
            starts, first = [], 0
            for count, lead in track["gops"]:
                if lead < count:
                    starts.append(first + lead)
                first += count
        for b, e in track["runs"]:
            last = None
            candidates = range(b, e, hop) if view.get("align") != "gop" else [
                s for s in starts if b <= s < e]
            for s in candidates:
                if s + span > e:
                    continue
                if last is not None and s < last + hop:
                    continue
                out.append((c, s, stride))
                last = s
    return out or None


# ---- strata -----------------------------------------------------------------
def tempered(value, largest, temperature):
    """2^59 * (value / largest)^(1/temperature), with 48-bit logarithms."""
    def log2(v):
        whole = v.bit_length() - 1
        m, bits = (v << 62) >> whole, 0
        for _ in range(48):
            m = m * m >> 62
            bits <<= 1
            if m >= 2 << 62:
                m, bits = m >> 1, bits | 1
        return whole << 48 | bits

    below = (log2(largest) - log2(value)) * 10**9
    exponent = below // int(fractions.Fraction(temperature) * 10**9)
    if exponent >> 48 > 59:
        return 0
    share, half = 1 << 59, 1 << 61
    for bit in range(47, -1, -1):
        half = math.isqrt(half << 62)
        if exponent >> bit & 1:
            share = share * half >> 62
    return share >> (exponent >> 48)


def strata_quotas(strata, sizes):
    """sizes: {label: samples}; quotas in the order of the labels."""
    labels = sorted(sizes)
    mode = strata.get("mode", "proportional")
    if mode == "uniform":
        return round_weights(["1"] * len(labels))
    if mode == "explicit":
        return round_weights([strata["weights"][x] for x in labels])
    if mode == "temperature":
        top = max(sizes.values())
        return round_weights([str(tempered(sizes[x], top, strata["temperature"]))
                              for x in labels])
    return round_weights([str(sizes[x]) for x in labels])


# ---- planner ----------------------------------------------------------------
class Source:
    """A source under one view: groups of windows, each with its own passes."""

    def __init__(self, index, spec, view):
        labels = spec.get("labels") or [""] * len(spec["captures"])
        self.labels = sorted(set(labels))
        self.windows = [
            windows(index, [c for c, x in zip(spec["captures"], labels)
                            if x == label], view)
            for label in self.labels]
        self.order = None
        if spec.get("strata"):
            sizes = {x: len(w) for x, w in zip(self.labels, self.windows)}
            self.order = mixture(strata_quotas(spec["strata"], sizes))
        self.drawn = [0] * len(self.labels)
        self.total = 0

    def next(self):
        g = self.order[self.total % Q] if self.order else 0
        draw = self.drawn[g]
        self.total += 1
        self.drawn[g] += 1
        return g, *divmod(draw, len(self.windows[g]))

    def passes(self):
        return max(-(-d // len(w)) for d, w in zip(self.drawn, self.windows))

    def copy(self):
        other = object.__new__(Source)
        other.__dict__ = dict(self.__dict__, drawn=list(self.drawn))
        return other


class Plan:
    """Walks over every data step from 0; nothing is computed ahead."""

    def __init__(self, feed, index):
        self.feed, self.index = feed, index
        self.specs = sorted(feed["sources"], key=lambda s: s["name"].encode())
        n = len(self.specs)
        self.weights = [s.get("weight", "1") for s in self.specs]
        self.views = [s["view"] for s in self.specs]
        self.sources, self.epochs = [None] * n, [0] * n
        self.out = [False] * n
        self.batch = feed["global_batch"]
        self.counts = [0] * n
        self.sizes = [0] * n
        self.begin()

    def begin(self):
        weights = ["0" if o else w for o, w in zip(self.out, self.weights)]
        self.at = 0
        self.quotas = round_weights(weights)
        self.order = mixture(self.quotas) if self.quotas else None
        for i, q in enumerate(self.quotas or []):
            if q and self.sources[i] is None:
                self.sources[i] = Source(self.index, self.specs[i], self.views[i])
                size = sum(map(len, self.sources[i].windows))
                self.sizes[i] = self.sizes[i] or size

    def enter(self, stage):
        self.batch = stage.get("global_batch") or self.batch
        for change in stage.get("sources", []):
            i = [s["name"] for s in self.specs].index(change["name"])
            self.weights[i] = change.get("weight", self.weights[i])
            if "view" in change and change["view"] != self.views[i]:
                self.views[i] = change["view"]
                if self.sources[i] is not None:
                    self.epochs[i] += self.sources[i].passes()
                    self.sources[i] = None
        self.begin()

    def limit(self, i):
        return self.specs[i].get("epochs") or self.feed["epochs"]

    def try_step(self):
        """The samples of a step, and the first source drawn beyond its limit."""
        sources = [s and s.copy() for s in self.sources]
        samples, beyond = [], set()
        for j in range(self.batch):
            i = self.order[(self.at + j) % Q]
            g, passes, place = sources[i].next()
            epoch = self.epochs[i] + passes
            if self.limit(i) and epoch >= self.limit(i):
                beyond.add(i)
            samples.append((i, g, epoch, place))
        return sources, samples, min(beyond) if beyond else None

    def data_step(self, k):
        """Samples, or None when the data has ended. Called for 0, 1, 2, …"""
        for stage in self.feed.get("stages", []):
            if stage["step"] == k:
                self.enter(stage)
        while True:
            if self.quotas is None:
                return None
            sources, samples, beyond = self.try_step()
            if beyond is None:
                break
            if self.feed.get("exhaustion") != "renormalise":
                return None
            self.out[beyond] = True
            self.begin()
        self.sources, self.at = sources, self.at + self.batch
        return [self.named(*s) for s in samples]

    def named(self, i, g, epoch, place):
        source = self.sources[i]
        label, of_group = source.labels[g], source.windows[g]
        if self.feed["order"] == "shuffle":
            name = self.specs[i]["name"] + ("/" + label if label else "")
            key = make_key(self.feed["seed"], "plan.order", name, epoch)
            place = permute(len(of_group), key, place)
        return [i, label, epoch, place, *of_group[place]]

    def evaluated(self):
        out = []
        for i, spec in enumerate(self.specs):
            if self.weights[i] == "0":
                continue
            w = windows(self.index, spec["captures"], spec["view"])
            self.sizes[i] = len(w)
            key = make_key(self.feed["seed"], "plan.order", spec["name"], 0)
            for j in range(len(w)):
                at = permute(len(w), key, j) if self.feed["order"] == "shuffle" else j
                out.append([i, "", 0, at, *w[at]])
        return out

    def run(self, wanted, bound):
        """({step: (data step, units, counts before, samples)}, total steps)."""
        if self.feed.get("mode") == "evaluation":
            every, g = self.evaluated(), self.batch
            steps = [every[i:i + g] for i in range(0, len(every), g)]
            counts = lambda k: [sum(1 for s in every[:k * g] if s[0] == i)
                                for i in range(len(self.specs))]
            return ({k: (k, g, counts(k), steps[k]) for k in wanted}, len(steps))
        skip = [(s["from"], s["to"]) for s in self.feed.get("skip", [])]
        out, k = {}, 0
        for data_step in range(bound):
            samples = self.data_step(data_step)
            if samples is None:
                return out, k
            if any(a <= data_step < b for a, b in skip):
                continue
            if k in wanted:
                out[k] = (data_step, self.batch, list(self.counts), samples)
            for s in samples:
                self.counts[s[0]] += 1
            k += 1
        return out, None


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
        f = fractions.Fraction(fps) if fps else None
        return {"track": v.get("track", ""), "frames": v["frames"],
                "stride": stride, "hop": hop, "align": v.get("align", "none"),
                "fps": f"{f.numerator}/{f.denominator}" if fps else None}

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
    exact = feed.get("stages") or exhaustion == "renormalise"
    return canonical({
        "plan_version": 2, "seed": feed["seed"],
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
    text = "{\n" + ",\n".join(
        f"{json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}"
        for k, v in vectors.items()) + "\n}\n"
    path = pathlib.Path(__file__).with_name("plan.json")
    if "--check" in sys.argv:
        sys.exit(0 if path.read_text() == text else f"{path} differs")
    path.write_text(text)


if __name__ == "__main__":
    main()
