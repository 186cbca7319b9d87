#!/usr/bin/python3
"""Every refusal says where, what, found, expected, do, with the right exit code.

    refusals_test.py BIN_DIR

DESIGN §9: 1 the answer is "no" (bad data), 2 usage or configuration, 3 environment.
"""
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CAPTURE = ROOT / "tests/data/captures/freedoom2-map01"
BIN = pathlib.Path(".")

FEED = """name: f
seed: 7
global_batch: 4
sources:
  - name: all
    dataset: ds
    view: {frames: 8}
outputs:
  - {name: video, video: {width: 64, height: 48}}
"""


class Refusals(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="penstock-refusals."))
        subprocess.run([BIN / "penstock", "import", CAPTURE, "--out",
                        cls.dir / "ds"], check=True, capture_output=True)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir)

    def refused(self, code, *arguments, program="penstock", names=(), before=None):
        """Runs a program that must refuse; its message."""
        r = subprocess.run([str(BIN / program), *map(str, arguments)], cwd=self.dir,
                           capture_output=True, text=True, timeout=60,
                           preexec_fn=before)
        with self.subTest(arguments=[str(a) for a in arguments]):
            self.assertEqual(r.returncode, code, r.stderr)
            for part in ("  found     ", "  expected  ", "  do        "):
                self.assertIn(part, r.stderr)
                text = r.stderr.split(part)[1].split("\n")[0].strip()
                self.assertTrue(text, r.stderr)
            for name in names:
                self.assertIn(name, r.stderr)
        return r.stderr

    def feed(self, *changes, name="feed.yaml"):
        text = FEED
        for old, new in changes:
            self.assertIn(old, text)
            text = text.replace(old, new)
        (self.dir / name).write_text(text)
        return name

    def plan(self, *changes, code=2, names=(), more=()):
        self.refused(code, "plan", "--feed", self.feed(*changes), "--step", "0",
                     *more, names=names)

    def test_feed_fields(self):
        self.plan(("seed: 7", "sed: 7"), names=["feed.yaml:2", "seed"])
        self.plan(("seed: 7", "seed: 7\nseed: 8"), names=["feed.yaml:3", "feed.yaml:2"])
        self.plan(("seed: 7", "seed: x"), names=["feed.yaml:2"])
        self.plan(("global_batch: 4", "global_batch: 0"))
        self.plan(("global_batch: 4", "global_batch: -4"))
        for weight in ("0", "-1", "1e3", "x"):
            self.plan(("dataset: ds", "dataset: ds\n    weight: %s" % weight))
        self.plan(("name: all", "name: ''"))
        self.plan(("frames: 8", "frames: 100000"))
        self.plan(("frames: 8", "frames: 60000"), names=["60000"])
        self.plan(("frames: 8", "frames: 8, fps: 13"))
        self.plan(("frames: 8", "frames: 8, align: gob"), names=["gop"])
        self.plan(("width: 64", "width: 0"))
        self.plan(("frames: 8", "frames: 8, track: audio9"))
        self.plan(("dataset: ds", "dataset: ds\n    filter: titel = 'x'"))
        self.plan(("dataset: ds", "dataset: ds\n    filter: \"title = 'none'\""))
        self.plan(("dataset: ds", "dataset: ds\n    filter: random() > 0"))
        self.plan(("outputs:", "outputs: []\nnone:"))

    def test_datasets(self):
        self.plan(("dataset: ds", "dataset: nods"), names=["nods"])
        self.plan(("dataset: ds", "dataset: feed.yaml"), names=["a file"])
        self.plan(("dataset: ds", "dataset: ."), names=["manifest.json"])
        self.plan(("dataset: ds", "dataset: ds\n    dataset_id: " + "0" * 64),
                  names=["0000", "dataset_id"])
        self.refused(2, "inspect", "nods")
        self.refused(2, "verify", "nods")
        self.refused(2, "inspect", "ds:9")
        self.refused(2, "inspect", "ds:0:100000+64")
        self.refused(2, "inspect", "ds:0:abc")

    def test_coordinates_and_options(self):
        self.plan(more=["--world", "2", "--rank", "2"])
        self.plan(more=["--world", "3"], names=["3 or 6"])
        feed = self.feed()
        self.refused(2, "plan", "--feed", feed, "--step", "-1")
        self.refused(2, "plan", "--feed", "nofeed.yaml", "--step", "0")
        self.refused(2, "plan", "--feed", "ds", "--step", "0")
        self.refused(2, "feed", "--local", "--feed", feed, "--world", "2",
                     "--rank", "2")
        self.refused(2, "feed", "--local", "--feed", feed, "--world", "3")
        self.refused(2, "feed", "--local", "--feed", feed, "--resume", "latest")
        self.refused(2, "feed", "--local", "--feed", feed, "--arena-bytes", "1000",
                     "--steps", "1")

    def test_stages_strata_and_modes(self):
        def top(*lines, names=()):
            self.plan(("global_batch: 4", "global_batch: 4\n" + "\n".join(lines)),
                      names=names)
        def stage(text):
            return "stages: [" + text + "]"
        top(stage("{step: 0}"), names=["stages[0].step"])
        top(stage("{step: 9}, {step: 4}"), names=["stages[1].step", "10 to"])
        top(stage("{step: 9, sources: [{name: none, weight: 1}]}"), names=["none"])
        top(stage("{step: 9, sources: [{name: all, weight: 0}]}"), names=["stages[0]"])
        top(stage("{step: 9, sources: [{name: all, view: {frames: 9}}]}"))
        top(stage("{step: 9, sources: [{name: all, view: {frames: 8, track: x}}]}"))
        top("microbatch: 4", stage("{step: 9, global_batch: 6}"), names=["microbatch"])
        top("skip: [{from: 5, to: 5}]", names=["skip[0]"])
        top("skip: [{from: 5, to: 9}, {from: 8, to: 10}]", names=["skip[1]"])
        top("epochs: 2", "exhaustion: repeat", names=["exhaustion"])
        top("exhaustion: renormalise", names=["exhaustion"])
        top("mode: evaluation", "epochs: 2", names=["mode"])
        top("mode: evaluating", names=["evaluation"])
        top("epochs: 1", "global_batch: 4")
        top("cost: decode + wheels", names=["cost", "wheels", "pixels"])
        top("cost: (decode", names=["cost"])
        top("cut: even", names=["balanced"])
        def strata(text, names=()):
            self.plan(("dataset: ds", "dataset: ds\n    strata: {" + text + "}"),
                      names=names)
        strata("by: [titel]", names=["titel"])
        strata("mode: uniform", names=["strata.by"])
        strata("by: [title], mode: explicit", names=["strata.weights"])
        strata("by: [title], weights: [{label: x}]", names=["strata.weights"])
        strata("by: [title], mode: explicit, weights: [{label: x}]",
               names=["freedoom2"])
        strata("by: [title], mode: temperature, temperature: 0",
               names=["temperature"])

    def test_meshes(self):
        for mesh in ("dp=0", "dp=2,dp=2", "ep=2", "x", "dp=3"):
            self.plan(more=["--mesh", mesh])
        self.plan(more=["--mesh", "dp=2", "--mesh-order", "jax"])
        self.plan(more=["--to", "0"])
        self.refused(2, "explain", "--feed", self.feed(), "--step", "0",
                     "--world", "2", "--rank", "2")

    def test_daemons_that_are_not_there(self):
        feed = self.feed()
        def attach(code, address, names=()):
            self.refused(code, "feed", "--feed", feed, "--connect", address,
                         "--timeout-ms", "200", names=names)
        attach(3, self.dir / "run", names=["no daemon answers"])
        attach(2, "tcp:", names=["HOST:PORT"])
        attach(2, self.dir / ("x" * 120), names=["too long"])
        self.refused(2, "feed", "--feed", "none.yaml", "--connect", "run")
        self.refused(2, "feed", "--feed", self.dir, "--connect", "run")
        self.refused(2, "feed", "--feed", feed, "--connect", "run", "--world", "2",
                     names=["incarnation"])

    def test_outputs(self):
        keys = ("outputs:", "outputs:\n  - {name: keys, keys: {keys: [KeyX]}}")
        feed = self.feed(keys)
        self.refused(2, "feed", "--local", "--feed", feed, "--steps", "1",
                     names=["KeyX"])

    def test_damage(self):
        for how in ("gone", "cut"):
            copy = self.dir / how
            shutil.copytree(self.dir / "ds", copy)
            shard = next((copy / "shards").iterdir())
            if how == "gone":
                shard.unlink()
            else:
                shard.write_bytes(shard.read_bytes()[:-100])
            feed = self.feed(("dataset: ds", "dataset: " + how), name=how + ".yaml")
            self.refused(1, "feed", "--local", "--feed", feed, "--steps", "1",
                         names=["00000.pshard"])

    def test_memory_that_is_not_given(self):
        def small():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        self.refused(3, "feed", "--local", "--feed", self.feed(), "--steps", "1",
                     before=small)

    def test_daemon_configuration(self):
        def config(text, code=2, names=()):
            (self.dir / "d.yaml").write_text(
                "socket_dir: %s/r\nstate_dir: %s/s\n" % (self.dir, self.dir) + text)
            self.refused(code, "--config", "d.yaml", program="penstockd", names=names)
        config("input_bytes: 1", names=["d.yaml:3"])
        config("workers: 100000", names=["d.yaml:3"])
        config("prefetch_steps: 5000", names=["d.yaml:3"])
        config("io: fast", names=["d.yaml:3"])
        config("prefetch: 4", names=["d.yaml:3", "prefetch_steps"])
        config("listen: 0.0.0.0:1")
        config("listen: 127.0.0.1:0", names=["--insecure-loopback"])
        config("log_level: loud")
        self.refused(2, "--config", "none.yaml", program="penstockd")

    def test_imports(self):
        empty = self.dir / "empty"
        empty.mkdir()
        out = self.dir / "out"
        self.refused(2, "import", empty, "--out", out)
        self.refused(2, "import", self.dir / "none", "--out", out)
        self.refused(2, "import", CAPTURE)
        text = self.dir / "text.mp4"
        text.write_text("no video\n")
        self.refused(2, "import", text, "--out", out)
        self.refused(2, "import", CAPTURE, "--out", self.dir / "no/such/parent")

        def small():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, 1 << 18))
        self.refused(3, "import", CAPTURE, "--out", out, before=small)
        for broken in ('{"penstock_capture": 1, "titel": "x"}', "[]", "{",
                       '{"penstock_capture": 1, "title": "x", "tracks": [{"name": '
                       '"t", "kind": "ticks", "file": "t.jsonl", "tick_rate": "x", '
                       '"tick_field": "t", "columns": [{"name": "h", "type": '
                       '"i64"}]}]}'):
            folder = self.dir / "broken"
            folder.mkdir(exist_ok=True)
            shutil.copy(CAPTURE / "video.mp4", folder)
            (folder / "t.jsonl").write_text('{"t": 0, "h": 1}\n')
            (folder / "capture.json").write_text(broken)
            self.refused(2, "import", folder, "--out", out)
        self.assertFalse(out.exists())


if __name__ == "__main__":
    BIN = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=2)
