#!/usr/bin/env python3
"""The golden vectors of ranks with speeds, restated from common/plan/README.md.
--check as in restate.py.
"""
from fractions import Fraction

import rules
from vectors import compact, write_or_check


def counts(microbatches, speeds):
    due = [Fraction(microbatches) * s / sum(speeds) for s in speeds]
    least = 1 if microbatches >= len(speeds) else 0
    out = [max(int(d), least) for d in due]
    ranks = range(len(speeds))
    while sum(out) < microbatches:
        out[max(ranks, key=lambda r: (due[r] - out[r], -r))] += 1
    while sum(out) > microbatches:
        out[min((r for r in ranks if out[r] > least),
                key=lambda r: (due[r] - out[r], r))] -= 1
    return out


def cut(mode, batch, micro, there, speeds):
    """By rank its units, and the units that each runs."""
    size = micro or 1
    left = [size * c for c in counts(-(-batch // size), speeds)]
    units = max(left)
    piece = 1 if mode == "strided" else micro or units
    ranks = [[] for _ in speeds]
    at = 0
    while at < there:
        for rank in range(len(speeds)):
            for _ in range(min(piece, left[rank], there - at)):
                ranks[rank].append(at)
                left[rank] -= 1
                at += 1
    return units, ranks


def main():
    key = rules.make_key(5, "test.speeds")
    apportioned, cuts = [], []
    texts = [["1", "2"], ["1", "1", "0.5"], ["0.001", "1", "1000"],
             ["3", "1", "1", "1", "2"], ["0.3", "0.3", "0.4"],
             ["1", "999999999", "1", "0.000000001"]]
    for i in range(12):
        texts.append(["%d.%d" % (rules.draw_below(key, 100 * i + j, 4),
                                 1 + rules.draw_below(key, 100 * i + 50 + j, 9))
                      for j in range(2 + i % 7)])
    for text in texts:
        speeds = [Fraction(t) for t in text]
        for n in (0, 1, 2, 3, 5, 8, 17, 64, 1000, 2 ** 39 + 7):
            apportioned.append({"speeds": ",".join(text), "microbatches": n,
                                "counts": counts(n, speeds)})
    for text in texts[:5] + texts[8:12]:
        speeds = [Fraction(t) for t in text]
        for mode in ("strided", "megatron"):
            for batch, micro in ((8, 0), (12, 2), (13, 2), (24, 4), (30, 1)):
                for there in (batch, batch - 3):
                    units, ranks = cut(mode, batch, micro, there, speeds)
                    cuts.append({"speeds": ",".join(text), "mode": mode,
                                 "batch": batch, "microbatch": micro, "there": there,
                                 "units": units, "ranks": ranks})
    write_or_check("speeds.json", {"counts": compact(apportioned),
                                   "cuts": compact(cuts)})


if __name__ == "__main__":
    main()
