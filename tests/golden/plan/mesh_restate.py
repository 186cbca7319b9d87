#!/usr/bin/env python3
"""Restates meshes, context-parallel cuts and pieces from the design's words.

Written from the tables of what frameworks do (rank to coordinates, tensors of a
stage, context-parallel slices), not from the C++, and with other means: worlds
are enumerated, batches are painted cell by cell. Writes the vectors beside
itself:

    python3 mesh_restate.py            # rewrites mesh.json
    python3 mesh_restate.py --check    # exits 1 when mesh.json differs
"""
import fractions
import itertools

from vectors import compact, write_or_check

ORDERS = {
    "torchtitan": ["pp", "dp_replicate", "dp_shard", "cp", "tp"],
    "megatron_tp_pp_dp": ["dp_replicate", "dp_shard", "pp", "cp", "tp"],
    "plain": None,
}


# ---- ranks ------------------------------------------------------------------
def parse(text, order):
    """[[name, size]] slowest first, or None when refused."""
    axes = []
    for part in text.split(","):
        name, equals, size = (s.strip() for s in part.partition("="))
        if not equals or not (size.isascii() and size.isdigit()):
            return None
        if not 1 <= int(size) <= 2**20:
            return None
        if name == "dp":
            axes += [["dp_replicate", 1], ["dp_shard", int(size)]]
        else:
            axes.append([name, int(size)])
    names = [name for name, _ in axes]
    ranks = 1
    for _, size in axes:
        ranks *= size
    if (ranks > 2**20 or len(set(names)) != len(names) or
            any(name not in ORDERS["torchtitan"] for name in names)):
        return None
    by = ORDERS[order]
    return axes if by is None else [a for n in by for a in axes if a[0] == n]


def world(axes):
    """Coordinates of rank 0, 1, …: the slowest axis is the outermost loop."""
    names = [name for name, _ in axes]
    loops = itertools.product(*(range(size) for _, size in axes))
    return [dict(zip(names, at)) for at in loops]


def data_of(ranks):
    """Data rank of each rank: its place in the sorted (replicate, shard)."""
    pairs = [(c.get("dp_replicate", 0), c.get("dp_shard", 0)) for c in ranks]
    places = {pair: i for i, pair in enumerate(sorted(set(pairs)))}
    return [places[pair] for pair in pairs]


def leaders(ranks, data):
    """Of the ranks of one data rank, the one at the start of pp, cp and tp."""
    first = {}
    for r, c in enumerate(ranks):
        if not any(c.get(axis, 0) for axis in ("pp", "cp", "tp")):
            assert data[r] not in first
            first[data[r]] = r
    return [first[d] for d in data]


def roles(stage, stages):
    out = []
    if stage == 0:
        out.append("input")
    if stage == stages - 1:
        out.append("target")
    return out + ["metadata"]


def amplification(data, ranks_per_node):
    nodes = {}
    for r, d in enumerate(data):
        nodes.setdefault(d, set()).add(r // ranks_per_node)
    counts = [len(n) for n in nodes.values()]
    mean = fractions.Fraction(sum(counts), len(counts))
    return {"ranks_per_node": ranks_per_node, "max": max(counts),
            "mean": [mean.numerator, mean.denominator],
            "nodes": len(set().union(*nodes.values()))}


# ---- context-parallel slices ------------------------------------------------
def source_positions(mode, length, size, c):
    """src(t) for t = 0, 1, …; None when the length does not fit."""
    if mode == "off":
        return list(range(length))
    if length % (2 * size if mode == "head_tail" else size):
        return None
    share = length // size
    if mode == "contiguous":
        return [c * length // size + t for t in range(share)]
    if mode == "striped":
        return [t * size + c for t in range(share)]
    h = length // (2 * size)
    return [c * h + t if t < h else (2 * size - 1 - c) * h + (t - h)
            for t in range(share)]


def cp_slice(mode, length, size, c, boundaries):
    if mode != "per_document":
        return source_positions(mode, length, size, c)
    out = []
    for begin, end in zip(boundaries, boundaries[1:]):
        part = source_positions("head_tail", end - begin, size, c)
        if part is None:
            return None
        out += [begin + p for p in part]
    return out


def nearest(length, unit):
    """Walks down and up to the lengths that work."""
    low = next((n for n in range(length, 0, -1) if n % unit == 0), None)
    high = next(n for n in itertools.count(length) if n % unit == 0)
    return [n for n in (low, high) if n is not None]


# ---- pieces -----------------------------------------------------------------
def pieces_of(axes, items, sequence):
    """[[item begin, end, position begin, end]] of each rank, or None."""
    ranks = world(axes)
    data = data_of(ranks)
    sizes = dict(axes)
    shares, parts = max(data) + 1, sizes.get("cp", 1)
    if items % shares or sequence % parts:
        return None
    rows = [list(range(items))[i:i + items // shares]
            for i in range(0, items, items // shares)]
    runs = [list(range(sequence))[i:i + sequence // parts]
            for i in range(0, sequence, sequence // parts)]
    out = []
    for c, d in zip(ranks, data):
        run = runs[c.get("cp", 0)]
        out.append([rows[d][0], rows[d][-1] + 1, run[0], run[-1] + 1])
    return out


def verdict(pieces, items, sequence):
    """'tiles', 'overlap', 'gap', 'empty' or 'outside'."""
    for a, b, x, y in pieces:
        if a >= b or x >= y:
            return "empty"
        if b > items or y > sequence:
            return "outside"
    painted = [[0] * sequence for _ in range(items)]
    for a, b, x, y in pieces:
        for i in range(a, b):
            for t in range(x, y):
                painted[i][t] += 1
    # Rows are judged in order; in a row an overlap comes before a gap.
    for row in painted:
        if max(row) > 1:
            return "overlap"
        if min(row) == 0:
            return "gap"
    return "tiles"


# ---- cases ------------------------------------------------------------------
MESHES = [
    "dp=4,cp=2,tp=2", "tp=2,cp=2,dp=4", "dp=1", "tp=8", "pp=2,dp=2,tp=2",
    "dp_replicate=2,dp_shard=2,cp=2", "tp=2,dp_shard=3,pp=4,dp_replicate=2",
    "cp=3,pp=2", " tp = 2 , dp=3", "pp=4,dp_replicate=2,dp_shard=2,cp=2,tp=2",
    "dp_shard=2,pp=2,dp_replicate=3", "cp=5,dp=7", "pp=3,tp=2,dp_replicate=3",
]
REFUSED = [
    "", ",", "dp=4,", "dp", "dp=", "dp=0", "dp=-1", "dp=1.5", "dp=1048577",
    "dp=1024,tp=1025", "dp=2,dp=2", "dp=2,dp_shard=2", "dp_replicate=2,dp=4",
    "ep=2,dp=4", "sp=2", "DP=2", "dp=2;tp=2", "data=4", "tp=2,,dp=2",
    "dp=99999999999999999999", "dp=2=2", "dp=0x2",
]
SLICES = [
    ("off", 7, 3, []), ("contiguous", 12, 4, []), ("contiguous", 12, 5, []),
    ("contiguous", 3, 4, []), ("striped", 12, 4, []), ("striped", 10, 4, []),
    ("head_tail", 16, 4, []), ("head_tail", 8, 1, []), ("head_tail", 24, 3, []),
    ("head_tail", 12, 4, []), ("head_tail", 5, 3, []), ("head_tail", 16, 8, []),
    ("per_document", 24, 2, [0, 4, 16, 24]),
    ("per_document", 24, 2, [0, 8, 8, 24, 24, 24]),
    ("per_document", 24, 3, [0, 24]), ("per_document", 24, 3, [0, 12, 24]),
    ("per_document", 24, 2, [0, 6, 24]), ("per_document", 24, 2, [0, 2, 24]),
    # Boundaries are no business of the other modes.
    ("head_tail", 16, 2, [0, 3, 16]),
]
PIECES = [("dp=4", 8, 5), ("dp=4,cp=2,tp=2", 8, 6), ("cp=3,dp=2", 2, 9),
          ("pp=2,dp_replicate=2,dp_shard=3,cp=2", 12, 4), ("dp=3", 8, 4),
          ("cp=2", 1, 3)]
TILINGS = [
    [[0, 3, 0, 4]], [[0, 3, 0, 2], [0, 3, 2, 4]], [[0, 1, 0, 4], [1, 3, 0, 4]],
    # A pinwheel, which no straight cut parts.
    [[0, 1, 0, 3], [0, 2, 3, 4], [2, 3, 1, 4], [1, 3, 0, 1], [1, 2, 1, 3]],
    [[2, 3, 1, 4], [1, 2, 1, 3], [0, 1, 0, 3], [1, 3, 0, 1], [0, 2, 3, 4]],
    [[0, 3, 0, 2], [0, 3, 1, 4]], [[0, 3, 0, 4], [0, 3, 0, 4]],
    [[0, 2, 0, 4]], [[1, 3, 0, 4]], [[0, 3, 0, 3]], [[0, 3, 1, 4]],
    [[0, 3, 0, 1], [0, 3, 2, 4]], [[0, 2, 0, 4], [1, 3, 0, 4]],
    # The same area as the batch, with a gap and an overlap.
    [[0, 3, 0, 2], [0, 2, 2, 4], [0, 1, 2, 4]], [[0, 4, 0, 4]],
    [[0, 3, 0, 5]], [[0, 3, 2, 2]], [[2, 1, 0, 4]], [],
    [[0, 1, 0, 4], [2, 3, 0, 4]],
]


def mesh_vectors():
    out = []
    for text, order in itertools.product(MESHES, ORDERS):
        axes = parse(text, order)
        ranks = world(axes)
        data = data_of(ranks)
        stages = dict(axes).get("pp", 1)
        out.append({
            "text": text, "order": order, "axes": axes,
            "coordinates": [list(c.values()) for c in ranks], "data": data,
            "leaders": leaders(ranks, data),
            "roles": [roles(c.get("pp", 0), stages) for c in ranks],
            "nodes": [amplification(data, n) for n in (1, 2, 3, 4, 8, 1000)]})
    return out


def slice_vectors():
    out = []
    for mode, length, size, boundaries in SLICES:
        slices = [cp_slice(mode, length, size, c, boundaries)
                  for c in range(size)]
        case = {"mode": mode, "sequence": length, "cp": size,
                "boundaries": boundaries,
                "slices": None if None in slices else slices}
        if None in slices:
            unit = size if mode in ("contiguous", "striped") else 2 * size
            lengths = [b - a for a, b in zip(boundaries, boundaries[1:])]
            wrong = next(n for n in lengths or [length] if n % unit)
            case["nearest"] = nearest(wrong, unit)
        out.append(case)
    return out


def main():
    for text, order in itertools.product(REFUSED, ORDERS):
        assert parse(text, order) is None
    vectors = {
        "meshes": mesh_vectors(),
        "refused": REFUSED,
        "slices": slice_vectors(),
        "pieces": [{"mesh": m, "items": g, "sequence": s,
                    "ranks": pieces_of(parse(m, "torchtitan"), g, s)}
                   for m, g, s in PIECES],
        "tilings": [{"items": 3, "sequence": 4, "pieces": p,
                     "verdict": verdict(p, 3, 4)} for p in TILINGS],
    }
    write_or_check("mesh.json",
                   {k: "[\n" + ",\n".join(map(compact, rows)) + "\n]"
                    for k, rows in vectors.items()})


if __name__ == "__main__":
    main()
