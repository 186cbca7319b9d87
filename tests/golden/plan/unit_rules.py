"""The rules of units, restated from common/plan/README.md: buckets and packs, made
by sorting whole epochs and by looking at every pack.
"""
import fractions

import rules

F = fractions.Fraction


def frames_of(index, view, window):
    capture, start, stride = window
    end = next(e for b, e in index[capture]["runs"] if b <= start < e)
    return min(view["frames"], 1 + (end - 1 - start) // stride)


# ---- buckets ----------------------------------------------------------------
def apart(a, b):
    return max(F(a) / F(b), F(b) / F(a))


def buckets_of(buckets, track):
    """Their numbers, by rising frames."""
    ids = range(len(buckets))

    def keep(ids, wanted, ratio):
        best = min(apart(wanted, ratio(buckets[i])) for i in ids)
        return [i for i in ids if apart(wanted, ratio(buckets[i])) == best]

    if "fps" in buckets[0]:
        ids = keep(ids, F(*track["rate"]), lambda b: b["fps"])
    w, h = track["size"]
    if track["rotation"] % 180 == 90:
        w, h = h, w
    ids = keep(ids, F(w, h), lambda b: F(b["width"], b["height"]))
    ids = keep(ids, w * h, lambda b: b["width"] * b["height"])
    shape = [(buckets[i]["width"], buckets[i]["height"], buckets[i].get("fps"))
             for i in ids]
    ids = [i for i, s in zip(ids, shape) if s == shape[0]]
    return sorted(ids, key=lambda i: buckets[i]["frames"])


def bucket_windows(index, captures, view, buckets):
    """{bucket: [(window, frames)]}, in the order of the windows."""
    out = {}
    for window in rules.windows(index, captures, view):
        frames = frames_of(index, view, window)
        of = [i for i in buckets_of(buckets, index[window[0]])
              if buckets[i]["frames"] >= frames]
        out.setdefault(of[0], []).append((window, frames))
    return dict(sorted(out.items()))


def bucket_units(buckets, members, epochs):
    """Units of the first epochs: (bucket, draws), each epoch sorted as a whole."""
    units = []
    for e in range(epochs):
        merged = []
        for b, windows in members.items():
            n, m = len(windows), buckets[b]["samples"]
            first, last = e * n // m, (e + 1) * n // m
            for i in range(last - first):
                merged.append((F(2 * i + 1, 2 * (last - first)), b, first + i))
        for _, b, k in sorted(merged):
            m = buckets[b]["samples"]
            units.append((b, range(k * m, (k + 1) * m)))
    return units


def bucket_steps(feed, index, epochs):
    """Units of every step: [bucket, [[source, epoch, place, capture, start, frames]]].
    """
    sources = sorted(feed["sources"], key=lambda s: s["name"].encode())
    order = rules.mixture(rules.round_weights([s.get("weight", "1")
                                               for s in sources]))
    members = [bucket_windows(index, s["captures"], s["view"], feed["buckets"])
               for s in sources]
    streams = [iter(bucket_units(feed["buckets"], m, epochs)) for m in members]

    def samples(i, b, draws):
        windows = members[i][b]
        for r in draws:
            epoch, place = divmod(r, len(windows))
            key = rules.make_key(feed["seed"], "plan.order",
                                 sources[i]["name"] + "#" + feed["buckets"][b]["name"],
                                 epoch)
            at = rules.permute(len(windows), key, place)
            (c, start, _), frames = windows[at]
            yield [i, epoch, at, c, start, frames]

    g, position, steps = feed["global_batch"], 0, []
    while True:
        step = []
        for _ in range(g):
            i = order[position % rules.Q]
            position += 1
            unit = next(streams[i], None)
            if unit is None:
                return steps
            step.append([unit[0], list(samples(i, *unit))])
        steps.append(step)


# ---- packing ----------------------------------------------------------------
def tokens_of(feed, index, sample):
    """length = per_frame * frames + per_event * events of the GOPs, rounded up."""
    capture, start, stride, frames = sample
    last, first, held = start + (frames - 1) * stride, 0, []
    for (count, _), events in zip(index[capture]["gops"], index[capture]["events"]):
        if first <= last and first + count > start:
            held.append(events)
        first += count
    length = (feed["per_frame"] * frames + feed["per_event"] * (held[-1] - held[0]))
    multiple = feed["packing"].get("length_multiple", 1)
    return -(-max(int(length), 1) // multiple) * multiple


def most_frames(feed):
    p = feed["packing"]
    return p.get("frames") or p["tokens"] // feed["per_frame"]


def fitting(feed, index, sample):
    """The pieces that are packed of a sample."""
    budget, most = feed["packing"]["tokens"], most_frames(feed)
    capture, start, stride, frames = sample
    pieces = []
    while frames:
        n = next(n for n in range(min(frames, most), 0, -1)
                 if tokens_of(feed, index, (capture, start, stride, n)) <= budget)
        pieces.append((capture, start, stride, n))
        if n == frames or feed["packing"].get("too_long") != "split":
            break
        start, frames = start + n * stride, frames - n
    return pieces


def best_fit(feed, items):
    """items: (tokens, frames); packs of their numbers."""
    p = feed["packing"]
    order = sorted(range(len(items)), key=lambda i: (-items[i][0], -items[i][1], i))
    packs = []
    for i in order:
        tokens, frames = items[i]

        def left(pack):
            return p["tokens"] - sum(items[j][0] for j in pack)

        fits = [n for n, pack in enumerate(packs)
                if left(pack) >= tokens and len(pack) < p.get("segments", 64)
                and sum(items[j][1] for j in pack) + frames <= most_frames(feed)]
        if fits:
            packs[min(fits, key=lambda n: (left(packs[n]), n))].append(i)
        else:
            packs.append([i])
    return [sorted(pack) for pack in packs]


def packs(feed, index, wanted):
    """(packs as lists of [source, label, epoch, place, capture, start, frames,
    tokens], packs of each window), until there are `wanted` or the data ends."""
    plan = rules.Plan(dict(feed, global_batch=1, stages=[]), index)
    stages = list(feed.get("stages", []))
    every = iter(plan.evaluated()) if feed.get("mode") == "evaluation" else None
    views = {s["name"]: s["view"] for s in plan.specs}

    def position_of(step):
        batch, at, out = feed["global_batch"], 0, 0
        for s in feed.get("stages", []):
            out += batch * (min(s["step"], step) - at)
            at = min(s["step"], step)
            batch = s.get("global_batch") or batch
        return out + batch * (step - at)

    out, counts, ended, position = [], [], False, 0
    while not ended and len(out) < wanted:
        while stages and len(out) >= position_of(stages[0]["step"]):
            stage = stages.pop(0)
            plan.enter({k: v for k, v in stage.items() if k != "global_batch"})
            plan.batch = 1
        drawn = []
        while len(drawn) < feed["packing"].get("window", 4096):
            if every is not None:
                sample = next(every, None)
            else:
                batch = plan.data_step(position)
                position += 1
                sample = batch and batch[0]
            if sample is None:
                ended = True
                break
            drawn.append(sample)
        if not drawn:
            break
        pieces = []
        for i, label, epoch, place, c, start, stride in drawn:
            view = views[plan.specs[i]["name"]]
            frames = frames_of(index, view, (c, start, stride))
            for piece in fitting(feed, index, (c, start, stride, frames)):
                pieces.append([i, label, epoch, place, c, piece[1], piece[3],
                               tokens_of(feed, index, piece)])
        made = best_fit(feed, [(x[7], x[6]) for x in pieces])
        key = rules.make_key(feed["seed"], "plan.packs", "", len(counts))
        for i in range(len(made)):
            pack = made[rules.permute(len(made), key, i)]
            out.append([pieces[j] for j in pack])
        counts.append(len(made))
    return out, counts, ended
