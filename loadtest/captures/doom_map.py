"""A walking grid over a Doom level, made from the sector lines that ViZDoom gives."""

import collections
import math

CELL = 16
CLEARANCE = 17   # player radius 16
STEP = 24        # the highest step that a player climbs


class WalkGrid:
    def __init__(self, sectors):
        sides = collections.defaultdict(list)
        for sector in sectors:
            for line in sector.lines:
                ends = tuple(sorted([(line.x1, line.y1), (line.x2, line.y2)]))
                sides[ends].append((sector.floor_height, line.is_blocking))
        xs = [x for ends in sides for x, _ in ends]
        ys = [y for ends in sides for _, y in ends]
        self.x0, self.y0 = min(xs) - 64, min(ys) - 64
        self.w = int((max(xs) - self.x0 + 64) / CELL) + 1
        self.h = int((max(ys) - self.y0 + 64) / CELL) + 1
        self.blocked = bytearray(self.w * self.h)
        for ends, found in sides.items():
            floors = [floor for floor, _ in found]
            two_sided = len(found) > 1
            if not two_sided or any(b for _, b in found) or max(floors) - min(floors) > STEP:
                self._wall(*ends[0], *ends[1])

    def _wall(self, x1, y1, x2, y2):
        steps = max(1, int(math.hypot(x2 - x1, y2 - y1) / 6))
        for k in range(steps + 1):
            self.block(x1 + (x2 - x1) * k / steps, y1 + (y2 - y1) * k / steps, CLEARANCE)

    def block(self, x, y, radius):
        reach = int(radius / CELL) + 1
        cx, cy = self.cell(x, y)
        for gy in range(cy - reach, cy + reach + 1):
            for gx in range(cx - reach, cx + reach + 1):
                px, py = self.centre((gx, gy))
                if math.hypot(px - x, py - y) < radius and 0 <= gx < self.w and 0 <= gy < self.h:
                    self.blocked[gy * self.w + gx] = 1

    def cell(self, x, y):
        return int((x - self.x0) / CELL), int((y - self.y0) / CELL)

    def centre(self, cell):
        return self.x0 + (cell[0] + 0.5) * CELL, self.y0 + (cell[1] + 0.5) * CELL

    def free(self, cell):
        gx, gy = cell
        return 0 <= gx < self.w and 0 <= gy < self.h and not self.blocked[gy * self.w + gx]

    def flood(self, start):
        """Breadth first from the free cell nearest `start`; returns (distance, parent)."""
        if not self.free(start):
            near = [(dx * dx + dy * dy, (start[0] + dx, start[1] + dy))
                    for dx in range(-3, 4) for dy in range(-3, 4)]
            near = [c for _, c in sorted(near) if self.free(c)]
            if not near:
                return {}, {}
            start = near[0]
        dist, parent, queue = {start: 0}, {start: None}, collections.deque([start])
        while queue:
            at = queue.popleft()
            for dx, dy in ((1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)):
                to = (at[0] + dx, at[1] + dy)
                if to in dist or not self.free(to):
                    continue
                if dx and dy and not (self.free((at[0] + dx, at[1]))
                                      and self.free((at[0], at[1] + dy))):
                    continue
                dist[to] = dist[at] + 1
                parent[to] = at
                queue.append(to)
        return dist, parent

    def clear_line(self, a, b):
        steps = max(abs(a[0] - b[0]), abs(a[1] - b[1]), 1) * 2
        return all(self.free((round(a[0] + (b[0] - a[0]) * k / steps),
                              round(a[1] + (b[1] - a[1]) * k / steps)))
                   for k in range(1, steps + 1))


def path_to(parent, goal):
    path = []
    while goal is not None:
        path.append(goal)
        goal = parent[goal]
    return path[::-1]
