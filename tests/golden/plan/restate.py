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


# ---- planner ----------------------------------------------------------------
class Plan:
    def __init__(self, feed, index):
        self.feed = feed
        self.sources = sorted(feed["sources"], key=lambda s: s["name"].encode())
        quotas = round_weights([s.get("weight", "1") for s in self.sources])
        self.quotas = quotas
        self.period = mixture(quotas)
        self.views = [windows(index, s["captures"], s["view"])
                      for s in self.sources]

    def slot(self, position):
        period, t = divmod(position, Q)
        s = self.period[t]
        return s, period * self.quotas[s] + self.period[:t].count(s)

    def sample(self, position):
        s, rank = self.slot(position)
        n = len(self.views[s])
        epoch, i = divmod(rank, n)
        if self.feed["order"] == "shuffle":
            key = make_key(self.feed["seed"], "plan.order",
                           self.sources[s]["name"], epoch)
            i = permute(n, key, i)
        return [s, epoch, i, *self.views[s][i]]

    def step(self, k):
        g = self.feed["global_batch"]
        return [self.sample(k * g + i) for i in range(g)]

    def total_steps(self):
        """Walks until a source is drawn once too often."""
        if not self.feed["epochs"]:
            return None
        left = [self.feed["epochs"] * len(v) for v in self.views]
        position = 0
        while True:
            s = self.period[position % Q]
            if left[s] == 0:
                return position // self.feed["global_batch"]
            left[s] -= 1
            position += 1


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

    return canonical({
        "plan_version": 1, "seed": feed["seed"], "epochs": feed["epochs"],
        "global_batch": feed["global_batch"], "order": feed["order"],
        "sources": [{"name": s["name"], "quota": q, "view": view(s["view"])}
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
]


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
        out.append({
            "yaml": case["yaml"], "order": order, "content": content,
            "order_digest": digest("penstock.order.v1", order),
            "content_digest": digest("penstock.content.v1", content),
            "captures": [s["captures"] for s in plan.sources],
            "sizes": [len(v) for v in plan.views],
            "total_steps": plan.total_steps(),
            "steps": [{"step": k, "samples": plan.step(k)}
                      for k in case["steps"]]})
    return out


def cut(batch, world):
    return [[i for i in range(batch) if i % world == r] for r in range(world)]


def main():
    vectors = {
        "random": random_vectors(),
        "weights": [{"weights": w, "quotas": round_weights(w)} for w in WEIGHTS],
        "mixture": mixture_vectors(),
        "index": INDEX,
        "views": [{"captures": c, "view": v, "windows": windows(INDEX, c, v)}
                  for c, v in VIEWS],
        "feeds": feed_vectors(),
        "cut": [{"batch": b, "world": w, "ranks": cut(b, w)}
                for b, w in ((12, 1), (12, 4), (12, 12), (6, 2))],
        "sample_id": {"source": "doom", "epoch": 0, "index": 1734,
                      "capture": "9f86d081884c7d65" + "00" * 24, "start": 960,
                      "frames": 16, "stride": 2,
                      "id": "doom:0:1734@9f86d081884c7d65[960+16*2]"},
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
