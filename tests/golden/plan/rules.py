"""The rules of the plan, restated from common/random/README.md and
common/plan/README.md: naive searches, plain lists, every step walked.
"""
import fractions
import hashlib
import math
import struct

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
        span = ((view.get("min_frames") or view["frames"]) - 1) * stride + 1
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
