#!/usr/bin/python3
"""`penstock plan` and `penstock explain` against a real dataset without its shards.

    plan_command_test.py BIN_DIR

Behaviours: B-6 (any world has the same global batch), B-23 (realised counts), B-27
(each sample once), B-29 (costs over ranks), B-43 (explain reads no data).
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CAPTURES = ROOT / "tests/data/captures"
BIN = pathlib.Path(".")

FEED = """name: f
seed: 7
global_batch: 10
microbatch: 2
uneven: mask
cut: %s
sources:
  - name: doom
    dataset: ds
    filter: title LIKE 'freedoom%%'
    view: {frames: 8, hop: 3}
    strata: {by: [title], mode: uniform}
  - name: wolf
    dataset: ds
    filter: title = 'solarwolf'
    weight: 0.5
    view: {frames: 8}
stages:
  - {step: 50, global_batch: 13, sources: [{name: wolf, weight: 3}]}
outputs:
  - {name: video, video: {width: 64, height: 48}}
  - {name: keys, keys: {keys: [KeyW, Space]}}
"""


class PlanCommand(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="penstock-plan."))
        subprocess.run([BIN / "penstock", "import", CAPTURES, "--out",
                        cls.dir / "ds"], check=True, capture_output=True)
        cls.sizes = {str(p): p.stat().st_size
                     for p in (cls.dir / "ds/shards").iterdir()}
        for p in cls.sizes:  # neither command may open one
            pathlib.Path(p).unlink()
        for cut in ("strided", "megatron", "balanced"):
            (cls.dir / (cut + ".yaml")).write_text(FEED % cut)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir)

    def lines(self, *arguments, type=None):
        r = subprocess.run([str(BIN / "penstock"), *map(str, arguments), "--json"],
                           cwd=self.dir, capture_output=True, text=True, timeout=60)
        self.assertEqual(r.returncode, 0, r.stderr)
        out = [json.loads(line) for line in r.stdout.splitlines()]
        return [x for x in out if type is None or x["type"] == type]

    def ranks(self, cut, step, world):
        return self.lines("plan", "--feed", cut + ".yaml", "--step", step,
                          "--world", world, type="rank")

    def test_any_world_and_cut_has_the_same_batch(self):
        for step, batch in ((0, 10), (49, 10), (50, 13), (10**6, 13)):
            one = [s["id"] for s in self.ranks("strided", step, 1)[0]["samples"]]
            self.assertEqual(len(one), batch)
            for cut in ("strided", "megatron", "balanced"):
                for world in (1, 2, 3, 5, 16):
                    ranks = self.ranks(cut, step, world)
                    got = {s["item"]: s["id"] for r in ranks for s in r["samples"]}
                    self.assertEqual([got[i] for i in range(batch)], one)
                    self.assertEqual(sum(len(r["samples"]) for r in ranks), batch)
                    self.assertEqual(len({r["units"] for r in ranks}), 1)
                    self.assertEqual(ranks[0]["units"] % 2, 0)
                    self.assertAlmostEqual(sum(r["loss_scale"] for r in ranks), world)

    def test_balance(self):
        def ratio(cut):
            return self.lines("plan", "--feed", cut + ".yaml", "--step", 60,
                              "--world", 2, type="balance")[0]
        even, as_it_comes = ratio("balanced"), ratio("strided")
        self.assertEqual(even["cost"], "decode")
        self.assertLessEqual(even["max_over_mean"], as_it_comes["max_over_mean"])
        self.assertGreaterEqual(even["max_over_mean"], 1)

    def test_counts_over_a_range(self):
        for begin, end in ((0, 7), (40, 60), (0, 100000)):
            lines = self.lines("plan", "--feed", "strided.yaml", "--step", begin,
                               "--to", end, type="range")
            self.assertEqual([x["source"] for x in lines], ["doom", "wolf"])
            before, after = min(begin, 50), min(end, 50)
            samples = (after - before) * 10 + (end - begin - after + before) * 13
            self.assertEqual(sum(x["realised"] for x in lines), samples)
            for x in lines:  # two mixtures: within 2 of each where one ends
                self.assertLess(abs(x["asked"] - x["realised"]), 4)

    def test_packs_have_the_mixture_of_their_stage(self):
        (self.dir / "packed.yaml").write_text(
            (FEED % "strided").replace("microbatch: 2\n", "")
            .replace("{by: [title], mode: uniform}", "{by: [title]}")
            + "length: 10*frames\npacking: {tokens: 320, window: 32}\n")
        env = dict(os.environ, XDG_CACHE_HOME=str(self.dir / "cache"))
        quotas = []
        for step in (0, 49, 60):
            out = subprocess.run(
                [str(BIN / "penstock"), "plan", "--feed", "packed.yaml", "--step",
                 str(step), "--json"], cwd=self.dir, check=True, env=env,
                capture_output=True, text=True).stdout
            head = json.loads(out.splitlines()[0])
            quotas.append([x["quota"] for x in head["sources"]])
        self.assertEqual(quotas, [[43691, 21845], [43691, 21845], [16384, 49152]])

    def test_mesh(self):
        lines = self.lines("plan", "--feed", "strided.yaml", "--step", 0, "--mesh",
                           "dp=3,tp=2,pp=2")
        ranks = [x for x in lines if x["type"] == "mesh_rank"]
        self.assertEqual(len(ranks), 12)
        self.assertEqual(len([x for x in lines if x["type"] == "rank"]), 3)
        self.assertEqual({x["data_rank"] for x in ranks}, {0, 1, 2})
        self.assertEqual(sum(x["is_leader"] for x in ranks), 3)

    def test_explain(self):
        for step in (0, 77, 10**9):
            planned = self.ranks("megatron", step, 3)[1]["samples"]
            explained = self.lines("explain", "--feed", "megatron.yaml", "--step",
                                   step, "--world", 3, "--rank", 1)
            self.assertEqual([x["id"] for x in explained], [s["id"] for s in planned])
            for x in explained:
                self.assertGreater(x["decode_cost"], 0)
                frames = x["ranges"]
                self.assertLessEqual(frames[0]["first_frame"], x["start_frame"])
                last = x["start_frame"] + (x["frames"] - 1) * x["stride"]
                self.assertGreater(frames[-1]["first_frame"] + frames[-1]["frames"],
                                   last)
                for a, b in zip(frames, frames[1:]):
                    self.assertEqual(a["first_frame"] + a["frames"], b["first_frame"])
                for g in frames:
                    size = self.sizes[str((self.dir / g["shard"]).resolve())]
                    self.assertLessEqual(g["offset"] + g["bytes"], size)

    def test_shapes(self):
        lines = self.lines("plan", "--feed", "strided.yaml", "--shapes", "--world", 3)
        self.assertEqual({x["tensor"]: (x["dtype"], x["shape"]) for x in lines},
                         {"video": ("u8", [2, 8, 3, 48, 64]), "keys": ("u8", [2, 8, 2])})
        self.assertEqual(len(lines), 2)  # one microbatch: one shape


if __name__ == "__main__":
    BIN = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=2)
