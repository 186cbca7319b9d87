#!/usr/bin/python3
"""Buckets and packs as trainers see them, against a real daemon.

    units_client_test.py BIN_DIR PYTHON_DIR SOURCE_DIR

Behaviours: B-5 (packs do not change the meaning of the cursor), B-6 (any world has
the same global batch), B-25 (padding to the bucket's shape), B-26 (packs).
"""
import sys
import unittest
from concurrent.futures import ThreadPoolExecutor

try:
    import numpy
except ImportError:
    print("skipped: numpy is not installed")
    sys.exit(77)

BIN, PYTHON, SOURCE = sys.argv[1:4] if len(sys.argv) > 3 else (None,) * 3
if PYTHON:
    sys.path.insert(0, PYTHON)
import penstock  # noqa: E402
from daemon_site import DaemonSite  # noqa: E402

HEAD = """
name: units
seed: 3
global_batch: %(batch)d
sources:
  - {name: all, dataset: dataset, view: {frames: 8, %(short)s hop: 5}}
outputs:
  - {name: video, video: {%(size)s}}
  - {name: keys, keys: {track: input, keys: [KeyW, ArrowUp, KeyA]}}
  - {name: t, times: {}}
"""
BUCKETED = HEAD % {"batch": 4, "short": "min_frames: 2,", "size": ""} + """
length: 10*frames + events
buckets:
  - {name: fast, frames: 8, width: 64, height: 48, fps: "40", samples: 2}
  - {name: slow, frames: 8, width: 80, height: 60, fps: "35", samples: 3}
  - {name: slow-short, frames: 6, width: 80, height: 60, fps: "35", samples: 1}
"""
ROLES = """
name: roles
seed: 3
global_batch: 4
sources:
  - {name: all, dataset: dataset, view: {frames: 8, min_frames: 2, hop: 5}}
outputs:
  - {name: video, video: {width: 64, height: 48}}
  - {name: keys, role: target, keys: {track: input, keys: [KeyW, ArrowUp, KeyA]}}
  - {name: t, role: metadata, times: {}}
length: 10*frames + events
packing: {tokens: 320, window: 64, segments: 12, length_multiple: 8}
"""
PLAIN_ROLES = """
name: roles
seed: 3
global_batch: 4
sources: [{name: all, dataset: dataset, view: {frames: 8, hop: 5}}]
outputs: [{name: video, video: {width: 64, height: 48}}]
"""
PACKED = HEAD % {"batch": 4, "short": "min_frames: 2,",
                 "size": "width: 64, height: 48"} + """
length: 10*frames + events
uneven: mask
packing: {tokens: 320, window: 64, segments: 12, length_multiple: 8}
"""
PLAIN = HEAD % {"batch": 4, "short": "", "size": "width: 64, height: 48"}
LOCAL = HEAD % {"batch": 12, "short": "", "size": "width: 64, height: 48"} + """
cut: local
"""
SPEEDS = HEAD % {"batch": 14, "short": "", "size": "width: 64, height: 48"} + """
uneven: mask
microbatch: 2
"""
LANES = HEAD % {"batch": 4, "short": "", "size": "width: 64, height: 48"} + """
lanes: 2
skip: [{from: 6, to: 9}]
"""
ONE_PASS = "exhaustion: stop\nepochs: 1\n"


class UnitsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.site = DaemonSite(BIN, [SOURCE + "/tests/data/captures/" + name
                                    for name in ("solarwolf-l9",
                                                 "freedoom2-map02")])
        for name, text in (("bucketed", BUCKETED), ("packed", PACKED),
                           ("lanes", LANES), ("local", LOCAL), ("speeds", SPEEDS), ("roles", ROLES),
                           ("plain-roles", PLAIN_ROLES)):
            cls.site.write(name + ".yaml", text)
        cls.site.write("plain.yaml", PLAIN + ONE_PASS)
        cls.site.write("ending.yaml", PACKED + ONE_PASS)
        cls.site.start()

    @classmethod
    def tearDownClass(cls):
        cls.site.close()

    def attach(self, feed, job, world, resume="new", incarnation="a", per_node=0,
               speeds=None, groups=({},)):
        """A feed for each data rank and group of coordinates."""
        feeds = [penstock.attach(self.site.home + "/" + feed + ".yaml", resume,
                                 job=job, data=(rank, world), timeout=60,
                                 first_timeout=60, incarnation=incarnation,
                                 ranks_per_node=per_node, speeds=speeds,
                                 ack_leader=group is groups[0],
                                 address=self.site.home + "/run", **group)
                 for rank in range(world) for group in groups]
        with ThreadPoolExecutor(len(feeds)) as pool:  # production begins with the last
            list(pool.map(lambda f: f.info, feeds))
        return feeds

    def digests(self, steps):
        """Of the samples of one step's ranks."""
        return {i: d for s in steps for i, d in zip(s.sample_ids, s.item_digests)}

    def reference(self, feed, steps):
        lines = self.site.lines("feed", "--feed", self.site.home + "/" + feed + ".yaml",
                                "--local", "--steps", str(steps), "--digest")
        return [dict(zip(x["samples"], x["item_digests"])) for x in lines
                if "digest" in x]

    def shapes(self, feed, world):
        out = {}
        for x in self.site.lines("plan", "--feed",
                                 self.site.home + "/" + feed + ".yaml", "--shapes",
                                 "--world", str(world)):
            out.setdefault(x.get("bucket", ""), {})[x["tensor"]] = tuple(x["shape"])
        return out

    def test_microbatches_have_the_shapes_that_were_listed(self):
        shapes = self.shapes("bucketed", 2)
        self.assertEqual(set(shapes), {"fast", "slow", "slow-short"})
        feeds = self.attach("bucketed", "b-shapes", 2)
        met = set()
        for _ in range(40):
            for step in map(next, feeds):
                with self.assertRaises(penstock.InvalidArgument):
                    step.tensors
                self.assertEqual(step.units, 2)
                ids = []
                for mb in step.microbatches:
                    self.assertEqual({k: v.shape for k, v in mb.items()},
                                     shapes[mb.bucket])
                    met.add(mb.bucket)
                    frames = [int(i.split("+")[1].split("*")[0])
                              for i in mb.sample_ids]
                    self.assertEqual(list(mb["sample_frames"]), frames)
                    for row, n in enumerate(frames):
                        self.assertTrue(mb["video"][row, :n].any(axis=(1, 2, 3)).all())
                        self.assertFalse(mb["video"][row, n:].any())
                        self.assertFalse(mb["t"][row, n:].any())
                    ids += mb.sample_ids
                self.assertEqual(ids, step.sample_ids)
        self.assertEqual(met, set(shapes))
        for f in feeds:
            f.close()

    def test_any_world_has_the_same_samples(self):
        for feed in ("bucketed", "packed"):
            expected = self.reference(feed, 12)
            for world in (1, 2, 3 if feed == "packed" else 4):
                feeds = self.attach(feed, "%s-%d" % (feed, world), world)
                for k in range(12):
                    steps = [next(f) for f in feeds]
                    self.assertEqual(self.digests(steps), expected[k])
                    self.assertAlmostEqual(sum(s.loss_scale for s in steps), world)
                    self.assertEqual(sum(s.tokens for s in steps),
                                     steps[0].global_tokens)
                    self.assertEqual(len({s.units for s in steps}), 1)
                for f in feeds:
                    f.close()

    def test_packs(self):
        feed, = self.attach("packed", "p-tensors", 1)
        for _ in range(30):
            step = next(feed)
            tensors = step.tensors
            at = 0
            for u in range(step.units):
                cu, frames = tensors["cu_seqlens"][u], tensors["cu_frames"][u]
                n = int(tensors["segment_ids"][u].max())
                self.assertLessEqual(n, 12)
                self.assertEqual(cu[0], 0)
                self.assertEqual(cu[-1], cu[n])
                self.assertLessEqual(cu[-1], 320)
                for s in range(n):
                    length = cu[s + 1] - cu[s]
                    self.assertEqual(length % 8, 0)
                    own = slice(cu[s], cu[s + 1])
                    self.assertTrue((tensors["segment_ids"][u, own] == s + 1).all())
                    self.assertTrue((tensors["position_ids"][u, own] ==
                                     numpy.arange(length)).all())
                    sample = step.sample_ids[at]
                    self.assertEqual(frames[s + 1] - frames[s],
                                     int(sample.split("+")[1].split("*")[0]))
                    at += 1
                self.assertFalse(tensors["segment_ids"][u, cu[-1]:].any())
                self.assertFalse(tensors["position_ids"][u, cu[-1]:].any())
                self.assertTrue(tensors["video"][u, :frames[-1]].any())
                self.assertFalse(tensors["video"][u, frames[-1]:].any())
            self.assertEqual(at, step.samples)
        feed.close()

    def test_local_cut(self):
        expected = self.reference("local", 6)
        feeds = self.attach("local", "local", 4, per_node=2)
        for k in range(6):
            steps = [next(f) for f in feeds]
            self.assertEqual(self.digests(steps), expected[k])
            planned = self.site.lines(
                "plan", "--feed", self.site.home + "/local.yaml", "--step", str(k),
                "--world", "4", "--ranks-per-node", "2")
            ranks = [[s["id"] for s in x["samples"]] for x in planned
                     if x["type"] == "rank"]
            self.assertEqual([s.sample_ids for s in steps], ranks)
            homes, = [x for x in planned if x["type"] == "homes"]
            self.assertEqual(homes["nodes"], 2)
            self.assertGreater(homes["expected_home_share"],
                               homes["strided_home_share"])
        with self.assertRaises(penstock.AttachRefused) as refused:
            self.attach("local", "local", 4, per_node=4)
        self.assertIn("data ranks on a node", str(refused.exception))
        for f in feeds:
            f.close()

    def test_speeds(self):
        expected = self.reference("speeds", 6)
        feeds = self.attach("speeds", "speeds", 3, speeds=[1, 0.25, 2])
        for k in range(6):
            steps = [next(f) for f in feeds]
            self.assertEqual(self.digests(steps), expected[k])
            self.assertEqual([s.samples for s in steps], [4, 2, 8])  # of 14
            self.assertEqual([s.units for s in steps], [8, 8, 8])
            self.assertAlmostEqual(sum(s.loss_scale for s in steps), 3)
            planned = self.site.lines(
                "plan", "--feed", self.site.home + "/speeds.yaml", "--step", str(k),
                "--world", "3", "--speeds", "1,0.25,2")
            self.assertEqual([s.sample_ids for s in steps],
                             [[s["id"] for s in x["samples"]] for x in planned
                              if x["type"] == "rank"])
        with self.assertRaises(penstock.AttachRefused) as refused:
            self.attach("speeds", "speeds", 3)
        self.assertIn("speeds of the data ranks", str(refused.exception))
        for speeds, text in (([1, 1], "2 speeds"), ([1, 0, 1], "data rank 1"),
                             (["1", "x", "1"], "data rank 1"), (3, "found     3")):
            with self.assertRaises(penstock.InvalidArgument) as refused:
                self.attach("speeds", "speeds-2", 3, speeds=speeds)
            self.assertIn(text, str(refused.exception))
        with self.assertRaises(penstock.InvalidArgument) as refused:
            self.attach("plain", "speeds-3", 2, speeds=[1, 3])
        self.assertIn("uneven: mask", str(refused.exception))
        del steps  # a step that is held keeps its rank connected
        for f in feeds:
            f.close()
        # A later run with other speeds goes on with the same data.
        feeds = self.attach("speeds", "speeds", 2, speeds=["3", "4"],
                            resume={"step": 3}, incarnation="b")
        for k in range(3, 6):
            steps = [next(f) for f in feeds]
            self.assertEqual(self.digests(steps), expected[k])
            self.assertEqual([s.samples for s in steps], [6, 8])
        for f in feeds:
            f.close()

    def slices(self, cut, size, tokens, ends):
        """By context-parallel rank the places of a sequence that it holds."""
        if cut == "contiguous":
            return [list(range(c * tokens // size, (c + 1) * tokens // size))
                    for c in range(size)]
        if cut == "striped":
            return [list(range(c, tokens, size)) for c in range(size)]
        out = [[] for _ in range(size)]
        bounds = [0] + list(ends) + [tokens] if cut == "per_document" else [0, tokens]
        for begin, end in zip(bounds, bounds[1:]):
            half = (end - begin) // (2 * size)
            for c in range(size):
                for chunk in (c, 2 * size - 1 - c):
                    out[c] += range(begin + chunk * half, begin + (chunk + 1) * half)
        return out

    def test_context_parallel_ranks_are_given_slices_of_token_tensors(self):
        wholes = self.attach("packed", "cp-whole", 2)
        whole = [[next(f) for f in wholes] for _ in range(4)]
        for cut, size in (("contiguous", 4), ("striped", 5), ("head_tail", 2),
                          ("per_document", 4)):
            groups = [{"cp": (c, size), "cp_cut": cut} for c in range(size)]
            feeds = self.attach("packed", "cp-" + cut, 2, groups=groups)
            for k in range(4):
                for rank in range(2):
                    full = whole[k][rank]
                    steps = [next(f) for f in feeds[rank * size:(rank + 1) * size]]
                    self.assertEqual(sum(s.tokens for s in steps), full.tokens)
                    self.assertAlmostEqual(
                        sum(s.loss_scale for s in steps) / size, full.loss_scale)
                    for c, step in enumerate(steps):
                        self.assertEqual(step.sample_ids, full.sample_ids)
                        self.assertEqual(step.global_tokens, full.global_tokens)
                        self.assertEqual(
                            step.tokens, (step.tensors["segment_ids"] > 0).sum())
                        for name, got in step.tensors.items():
                            expected = full.tensors[name]
                            if name in ("segment_ids", "position_ids"):
                                expected = numpy.stack([
                                    row[self.slices(cut, size, 320, sorted(set(
                                        full.tensors["cu_seqlens"][u])))[c]]
                                    for u, row in enumerate(expected)])
                            numpy.testing.assert_array_equal(got, expected)
            shapes = {x["tensor"]: x["shape"] for x in self.site.lines(
                "plan", "--feed", self.site.home + "/packed.yaml", "--shapes",
                "--mesh", "dp=2,cp=%d" % size, "--cp", cut)}
            self.assertEqual({k: list(v.shape) for k, v in step.tensors.items()},
                             shapes)
            del step, steps, got
            for f in feeds:
                f.close()
        del full, whole
        for f in wholes:
            f.close()

    def test_context_parallel_cuts_that_cannot_be(self):
        for feed, group, text in (
                ("plain", {"cp": (0, 2), "cp_cut": "striped"}, "no tensor of tokens"),
                ("packed", {"cp": (0, 3), "cp_cut": "contiguous"}, "multiple of 3"),
                ("packed", {"cp": (0, 8), "cp_cut": "per_document"}, "multiple of 16"),
                ("packed", {"cp": (0, 2), "cp_cut": "zigzag"}, "no such mode")):
            with self.assertRaises(penstock.InvalidArgument) as refused:
                self.attach(feed, "cp-refused", 1, groups=[group])
            self.assertIn(text, str(refused.exception))
            code, message = self.site.refusal(
                "plan", "--feed", self.site.home + "/" + feed + ".yaml", "--step", "0",
                "--mesh", "dp=1,cp=%d" % group["cp"][1], "--cp", group["cp_cut"])
            self.assertEqual(code, 2)
            self.assertIn(str(refused.exception).strip(), message)
        for coordinates in ((2, 2), (0, 0), (-1, 2), 3, (0, 2, 1)):
            with self.assertRaises(penstock.InvalidArgument):
                self.attach("packed", "cp-refused", 1, groups=[{"cp": coordinates}])
            with self.assertRaises(penstock.InvalidArgument):
                self.attach("packed", "cp-refused", 1, groups=[{"pp": coordinates}])
        feeds = self.attach("packed", "cp-agree", 1,
                            groups=[{"cp": (0, 2), "cp_cut": "striped"}])
        with self.assertRaises(penstock.AttachRefused) as refused:
            self.attach("packed", "cp-agree", 1,
                        groups=[{"cp": (1, 2), "cp_cut": "head_tail"}])
        self.assertIn("striped/2", str(refused.exception))
        feeds[0].close()

    def test_pipeline_stages_are_given_their_tensors(self):
        made = {"segment_ids", "position_ids", "cu_seqlens", "cu_frames"}
        feeds = self.attach("roles", "pp", 1,
                            groups=[{"pp": (stage, 3)} for stage in range(3)])
        alone = self.attach("roles", "pp-alone", 1)
        for _ in range(3):
            full = next(alone[0])
            steps = [next(f) for f in feeds]
            for step, names in zip(steps, ({"video", "t"}, {"t"}, {"keys", "t"})):
                self.assertEqual(set(step.tensors), names | made)
                for name, got in step.tensors.items():
                    numpy.testing.assert_array_equal(got, full.tensors[name])
        roles = {x["tensor"]: x["role"] for x in self.site.lines(
            "plan", "--feed", self.site.home + "/roles.yaml", "--shapes")}
        self.assertEqual(roles, dict({"video": "input", "keys": "target",
                                      "t": "metadata"},
                                     **{name: "metadata" for name in made}))
        for f in feeds + alone:
            f.close()
        # A stage between the others of a feed without metadata has no tensor.
        feeds = self.attach("plain-roles", "pp-none", 1,
                            groups=[{"pp": (stage, 3)} for stage in range(3)])
        for _ in range(3):
            steps = [next(f) for f in feeds]
            self.assertEqual([set(s.tensors) for s in steps], [{"video"}, set(), set()])
            self.assertEqual({s.units for s in steps}, {4})
            self.assertEqual(steps[0].sample_ids, steps[1].sample_ids)
        for f in feeds:
            f.close()

    def test_lanes(self):
        feeds = self.attach("lanes", "l-tensors", 2)
        last = [None, None]
        for k in range(40):
            for rank, step in enumerate(map(next, feeds)):  # a lane each
                for sample, reset in zip(step.sample_ids, step.tensors["reset"]):
                    capture, place = sample.split("@")[1].split("[")
                    start = int(place.split("+")[0])
                    goes_on = last[rank] == (capture, start - 5)  # the view's hop
                    self.assertEqual(reset, 0 if goes_on else 1)
                    self.assertTrue(goes_on or start == 0 or k == 6)
                    last[rank] = (capture, start)
        for f in feeds:
            f.close()

    def test_a_sample_is_the_same_packed_and_alone(self):
        alone = {}
        for step in self.reference("plain", 0):
            alone.update({i.split("@")[1]: d for i, d in step.items()})
        packed = {}
        for step in self.reference("packed", 20):
            packed.update({i.split("@")[1]: d for i, d in step.items()})
        both = set(alone) & set(packed)
        self.assertGreater(len(both), 100)
        for where in both:
            self.assertEqual(alone[where], packed[where])

    def test_the_end_and_a_kill(self):
        expected = self.reference("ending", 0)
        self.assertGreater(len(expected), 8)
        feeds = self.attach("ending", "p-end", 2)
        self.assertEqual(feeds[0].info["total_steps"], 0)  # not known yet
        got = []
        for k in range(len(expected)):
            if k == 5:
                self.site.kill()
                self.site.start()
            got.append(self.digests([next(f) for f in feeds]))
        for f in feeds:
            with self.assertRaises(StopIteration):
                next(f)
        self.assertEqual(got, expected)
        saved = feeds[0].state_dict()
        for f in feeds:
            f.close()
        # Another size from the middle.
        saved["next_step"] = 6
        feeds = self.attach("ending", "p-end", 3, resume=saved, incarnation="b")
        for k in range(6, len(expected)):
            self.assertEqual(self.digests([next(f) for f in feeds]), expected[k])
        for f in feeds:
            f.close()


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
