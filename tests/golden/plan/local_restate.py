#!/usr/bin/env python3
"""The golden vectors of the local cut, restated from common/plan/README.md. --check
as in restate.py.
"""
import rules
from vectors import compact, write_or_check

GOLDEN = 0x9E3779B97F4A7C15


def home(capture, extent, nodes):
    """capture: the first 8 bytes of its id as a little-endian number."""
    key = rules.make_key(0, "plan.local")
    at = (capture + GOLDEN * (extent + 1)) & rules.M64
    return max(range(nodes), key=lambda n: (rules.draw(key, at, n), -n))


def local_ranks(homes, world, per_node):
    node_of = [r // per_node if per_node else 0 for r in range(world)]
    room = [len(range(r, len(homes), world)) for r in range(world)]
    nodes = [None] * len(homes)

    def left(node):
        return sum(room[r] for r in range(world) if node_of[r] == node) - nodes.count(
            node)

    for i, h in enumerate(homes):
        if left(h) > 0:
            nodes[i] = h
    for i, node in enumerate(nodes):
        if node is None:
            nodes[i] = next(n for n in range(node_of[-1] + 1) if left(n) > 0)
    turns = {n: [r for r in range(world) if node_of[r] == n] for n in set(node_of)}
    out = []
    for node in nodes:
        while room[turns[node][0]] == 0:
            turns[node].append(turns[node].pop(0))
        rank = turns[node].pop(0)
        turns[node].append(rank)
        room[rank] -= 1
        out.append(rank)
    return out


def main():
    homes = [{"capture": c, "extent": e, "nodes": n, "home": home(c, e, n)}
             for c in (0, 1, 5) for e in (0, 1, 2, 9) for n in (1, 2, 3, 8)]
    key = rules.make_key(3, "test.local")
    cuts = []
    for case, (units, world, per_node) in enumerate(
            [(8, 4, 2), (12, 4, 2), (7, 4, 2), (9, 5, 2), (24, 8, 8), (24, 8, 3),
             (5, 8, 2), (16, 2, 1), (6, 3, 0), (64, 16, 4)]):
        count = -(-world // per_node) if per_node else 1
        h = [rules.draw_below(key, 1000 * case + i, count) for i in range(units)]
        cuts.append({"world": world, "ranks_per_node": per_node, "homes": h,
                     "ranks": local_ranks(h, world, per_node)})
    write_or_check("local.json", {"homes": compact(homes), "cuts": compact(cuts)})


if __name__ == "__main__":
    main()
