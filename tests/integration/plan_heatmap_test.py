#!/usr/bin/python3
"""`penstock plan --heatmap` against what `plan --to`, `plan` and `explain` say.

    plan_heatmap_test.py BIN_DIR

Behaviours: B-23 (realised counts), B-29 (costs over ranks).
"""
import json
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
CAPTURES = [ROOT / "tests/data/captures" / name
            for name in ("solarwolf-l9", "freedoom2-map02")]
BIN = pathlib.Path(".")
SVG = "{http://www.w3.org/2000/svg}"

SOURCES = """seed: 7
sources:
  - name: doom
    dataset: ds
    filter: title LIKE 'freedoom%'
    view: {frames: 8, min_frames: 2, hop: 3}
  - name: wolf
    dataset: ds
    filter: title = 'solarwolf'
    weight: 0.5
    view: {frames: 8, min_frames: 2, hop: 3}
"""
VIDEO = "outputs:\n  - {name: video, video: {%s}}\n"
SIZE = VIDEO % "width: 64, height: 48"
LENGTH = "length: 10*frames\n"
FEEDS = {
    "plain": SOURCES.replace("min_frames: 2, ", "") + SIZE + """
global_batch: 10
microbatch: 2
uneven: mask
cut: balanced
stages:
  - {step: 5, global_batch: 13, sources: [{name: wolf, weight: 3}]}
skip: [{from: 7, to: 9}]
""",
    "packs": SOURCES + SIZE + LENGTH + """
global_batch: 5
uneven: mask
packing: {tokens: 320, window: 64, segments: 12}
""",
    "buckets": SOURCES + VIDEO % "" + LENGTH + """
global_batch: 5
uneven: mask
buckets:
  - {name: fast, frames: 8, width: 64, height: 48, fps: "40", samples: 2}
  - {name: slow, frames: 8, width: 80, height: 60, fps: "35", samples: 3}
""",
}
FEEDS["once"] = FEEDS["plain"].split("stages:")[0] + "exhaustion: stop\nepochs: 1\n"
FEEDS["evaluation"] = (FEEDS["plain"].split("stages:")[0]
                       .replace("uneven: mask\n", "").replace("    weight: 0.5\n", "")
                       + "mode: evaluation\n")


class Picture:
    """What an SVG of a heat map holds."""

    def __init__(self, path):
        self.bytes = path.read_bytes()
        self.root = ElementTree.fromstring(self.bytes)
        self.texts = ["".join(t.itertext()) for t in self.root.iter(SVG + "text")]
        self.cells = self.group("cells")
        self.masked = [self.step_and_rank(m) for m in self.group("masked")]
        self.lines = {(p.get("data-source"), p.get("class")): p
                      for p in self.root.iter(SVG + "polyline")}

    def group(self, name):
        found = self.root.findall(".//%sg[@id='%s']" % (SVG, name))
        return list(found[0])

    @staticmethod
    def step_and_rank(cell):
        tip = cell.find(SVG + "title").text
        return tuple(map(int, re.match(r"step (\d+), rank (\d+)[:-]", tip).groups()))

    @staticmethod
    def of_mean(cell):
        return float(cell.find(SVG + "title").text.split(": ")[1].split(" ")[0])


class PlanHeatmap(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="penstock-heatmap."))
        subprocess.run([BIN / "penstock", "import", *CAPTURES, "--out",
                        cls.dir / "ds"], check=True, capture_output=True)
        for name, text in FEEDS.items():
            (cls.dir / (name + ".yaml")).write_text("name: %s\n%s" % (name, text))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir)

    def run_command(self, command, *arguments, before=None):
        return subprocess.run([str(BIN / "penstock"), command, *map(str, arguments)],
                              cwd=self.dir, capture_output=True, text=True,
                              timeout=60, preexec_fn=before,
                              env={"HOME": str(self.dir)})

    def lines(self, command, *arguments, type=None):
        r = self.run_command(command, *arguments, "--json")
        self.assertEqual(r.returncode, 0, r.stderr)
        out = [json.loads(line) for line in r.stdout.splitlines()]
        return [x for x in out if type is None or x["type"] == type]

    def draw(self, feed, *arguments):
        (said,) = self.lines("plan", "--feed", feed + ".yaml", *arguments,
                             "--heatmap", "out.svg")
        self.assertEqual((said["type"], said["file"]), ("heatmap", "out.svg"))
        return said, Picture(self.dir / "out.svg")

    def refused(self, code, *arguments, names=(), before=None):
        r = self.run_command("plan", *arguments, before=before)
        self.assertEqual(r.returncode, code, r.stderr)
        self.assertTrue(r.stderr.startswith("penstock: "), r.stderr)
        for part in ("  found     ", "  expected  ", "  do        "):
            self.assertIn(part, r.stderr)
            self.assertTrue(r.stderr.split(part)[1].split("\n")[0].strip(), r.stderr)
        for name in names:
            self.assertIn(name, r.stderr)

    def check_cells(self, feed, picture, begin, end, world):
        """One cell a step and rank, masked as planned, as dear as explained."""
        self.assertEqual([Picture.step_and_rank(c) for c in picture.cells],
                         [(s, r) for s in range(begin, end) for r in range(world)])
        at = ["--feed", feed + ".yaml", "--world", world, "--step"]
        expected = []
        for step in range(begin, end):
            ranks = self.lines("plan", *at, step, type="rank")
            expected += [(step, r["rank"]) for r in ranks if r["masked"] > 0]
        self.assertTrue(expected)
        self.assertEqual(picture.masked, expected)
        for step in (begin, end - 1):
            costs = [sum(x["cost"] for x in self.lines("explain", *at, step,
                                                       "--rank", r))
                     for r in range(world)]
            cells = picture.cells[(step - begin) * world:][:world]
            for cell, cost in zip(cells, costs):
                self.assertAlmostEqual(Picture.of_mean(cell),
                                       cost * world / sum(costs), delta=0.0006)
                self.assertLess(Picture.of_mean(cell), 20)

    def check_mixture(self, feed, picture, begin, end):
        """The lines end at the counts and shares of `plan --to`."""
        ranges = self.lines("plan", "--feed", feed + ".yaml", "--step", begin, "--to",
                            end, type="range")
        self.assertEqual(set(picture.lines), {(x["source"], k) for x in ranges
                                              for k in ("realised", "asked")})
        total = sum(x["realised"] for x in ranges)
        axis = {t.text: float(t.get("y")) - 4 for t in picture.root.iter(SVG + "text")
                if t.text and re.fullmatch(r"\d+ %", t.text)}
        zero, top = axis["0 %"], min(axis.values())
        percent = max(int(t[:-2]) for t in axis)
        for x in ranges:
            realised = picture.lines[(x["source"], "realised")]
            asked = picture.lines[(x["source"], "asked")]
            self.assertEqual(int(realised.get("data-count")), x["realised"])
            self.assertAlmostEqual(float(asked.get("data-count")), x["asked"], delta=0.006)
            self.assertIsNone(realised.get("stroke-dasharray"))
            self.assertIsNotNone(asked.get("stroke-dasharray"))
            points = realised.get("points").split(" ")
            self.assertEqual(len(points), max(2, end - begin))
            y = float(points[-1].split(",")[1])
            share = (zero - y) / (zero - top) * percent / 100
            self.assertAlmostEqual(share, x["realised"] / total, delta=0.001)
            self.assertTrue([t for t in picture.texts if t.startswith(
                "%s: realised %d " % (x["source"], x["realised"]))])

    def test_cells_and_mixture(self):
        for feed, begin, end, world in (("plain", 0, 12, 3), ("plain", 4, 5, 7),
                                        ("packs", 3, 9, 3), ("buckets", 2, 8, 2)):
            with self.subTest(feed=feed, world=world):
                said, picture = self.draw(feed, "--step", begin, "--to", end,
                                          "--world", world)
                self.assertEqual((said["from"], said["to"], said["world"]),
                                 (begin, end, world))
                self.check_cells(feed, picture, begin, end, world)
                self.check_mixture(feed, picture, begin, end)

    def test_names_and_labels(self):
        _, picture = self.draw("packs", "--step", 1, "--world", 2)
        head = self.lines("plan", "--feed", "packs.yaml", "--step", 1, type="feed")[0]
        self.assertIn("plan of feed packs", picture.texts)
        self.assertIn("steps 1 to 201, 2 data ranks, order "
                      + head["order_digest"][:16], picture.texts)
        self.assertTrue({"step", "data rank", "share of samples", "has masked packs"}
                        <= set(picture.texts))
        self.assertEqual(picture.root.find(SVG + "title").text, "plan of feed packs")

    def test_one_file_that_needs_nothing_else(self):
        _, first = self.draw("plain", "--step", 0, "--world", 4)
        _, again = self.draw("plain", "--step", 0, "--world", 4)
        self.assertEqual(first.bytes, again.bytes)
        tags = {e.tag for e in first.root.iter()}
        self.assertEqual(tags, {SVG + t for t in ("svg", "g", "rect", "line", "text",
                                                  "polyline", "title", "desc")})
        self.assertNotIn(b"href", first.bytes)
        self.assertEqual(first.bytes.count(b"http"), 1)  # the namespace
        left = {p.name for p in self.dir.iterdir()}
        self.assertEqual({n for n in left if "svg" in n}, {"out.svg"})

    def test_steps_end_with_the_data(self):
        for feed in ("once", "evaluation"):
            with self.subTest(feed=feed):
                head = self.lines("plan", "--feed", feed + ".yaml", "--step", 0,
                                  type="feed")[0]
                total = head["total_steps"]
                begin = total - 3
                for to in ([], ["--to", 10**9]):
                    said, picture = self.draw(feed, "--step", begin, *to)
                    self.assertEqual((said["from"], said["to"]), (begin, total))
                    self.assertEqual(len(picture.cells), 3)
                self.refused(2, "--feed", feed + ".yaml", "--step", total,
                             "--heatmap", "no.svg", names=["--to"])
        # Nothing is asked for in evaluation, and its last batch has masked places.
        self.assertEqual({kind for _, kind in picture.lines}, {"realised"})

    def test_many_ranks_share_rows(self):
        for world, rows in ((64, 64), (65, 33), (1000, 63)):
            said, picture = self.draw("plain", "--step", 0, "--to", 2,
                                      "--world", world)
            self.assertEqual(said["rows"], rows)
            self.assertEqual(len(picture.cells), 2 * rows)
        self.assertIn("80", picture.texts)  # the sixth row
        self.assertIn("first data rank of the row", picture.texts)
        self.assertIn("rank 992-999: ", picture.cells[-1].find(SVG + "title").text)

    def test_refusals(self):
        at = ["--feed", "plain.yaml", "--step", 5]
        self.draw("plain", "--step", 5, "--to", 2005)
        before = (self.dir / "out.svg").read_bytes()
        self.refused(2, *at, "--to", 2006, "--heatmap", "out.svg",
                     names=["--to", "2001 steps", "2000", "--to 2005"])
        self.refused(2, *at, "--to", 10**17, "--heatmap", "out.svg", names=["--to"])
        self.refused(2, *at, "--to", 5, "--heatmap", "out.svg", names=["--to"])
        self.refused(2, *at, "--heatmap", "no/such/a.svg", names=["no/such/a.svg"])
        self.refused(2, *at, "--heatmap", "")
        self.refused(2, *at, "--heatmap", "plain.yaml/a.svg")
        self.refused(2, *at, "--heatmap", "ds", names=["a folder"])
        (self.dir / "link").symlink_to("out.svg")
        self.refused(2, *at, "--heatmap", "link", names=["link"])
        self.refused(2, *at, "--heatmap", "/dev/null", names=["/dev/null"])

        def full():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 14, 1 << 14))
        self.refused(3, *at, "--heatmap", "out.svg", names=["out.svg"], before=full)
        self.assertEqual((self.dir / "out.svg").read_bytes(), before)
        self.assertEqual({p.name for p in self.dir.iterdir() if "svg" in p.name},
                         {"out.svg"})


if __name__ == "__main__":
    BIN = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=2)
