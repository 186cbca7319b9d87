#!/usr/bin/python3
"""The Python client beside grpcio and protobuf, against a real daemon.

    python_client_test.py BIN_DIR PYTHON_DIR SOURCE_DIR
"""
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import unittest

try:
    import numpy
except ImportError:
    print("skipped: numpy is not installed")
    sys.exit(77)
try:  # another gRPC and another Protobuf in the same process
    import grpc  # noqa: F401
    import google.protobuf.descriptor_pb2  # noqa: F401
except ImportError:
    grpc = None

BIN, PYTHON, SOURCE = sys.argv[1:4] if len(sys.argv) > 3 else (None,) * 3
if PYTHON:
    sys.path.insert(0, PYTHON)
import penstock  # noqa: E402
from daemon_site import DaemonSite  # noqa: E402

FEED = """
name: py
seed: 5
global_batch: 8
microbatch: 2
sources:
  - name: all
    dataset: dataset
    view: {frames: 4, stride: 2, hop: 8}
outputs:
  - name: video
    video: {width: 64, height: 48, layout: thwc}
  - name: keys
    keys: {track: input, keys: [KeyW, KeyA]}
  - name: t
    times: {}
"""


def take(home, incarnation, out):
    feed = penstock.attach(home + "/feed.yaml", "new", job="child-" + incarnation,
                           incarnation=incarnation, address=home + "/run",
                           timeout=60)
    out.put(next(feed).batch_digest)
    feed.close()


class ClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.site = DaemonSite(
            BIN, [SOURCE + "/tests/data/captures/freedoom2-map02"])
        cls.home = cls.site.home
        cls.site.write("feed.yaml", FEED)
        cls.site.start()
        cls.daemon = cls.site.daemon

    @classmethod
    def tearDownClass(cls):
        cls.site.close()

    def attach(self, job, resume="new", **more):
        more.setdefault("incarnation", job + "-run")
        return penstock.attach(self.home + "/feed.yaml", resume, job=job,
                               address=self.home + "/run", timeout=60,
                               first_timeout=60, **more)

    def reference(self, steps):
        text = subprocess.run(
            [BIN + "/penstock", "feed", "--feed", self.home + "/feed.yaml",
             "--local", "--steps", str(steps), "--digest", "--json"],
            check=True, capture_output=True, text=True).stdout
        return [json.loads(line) for line in text.splitlines() if "digest" in line]

    def test_masked_units(self):
        with open(self.home + "/feed.yaml") as f:
            text = f.read()
        with open(self.home + "/uneven.yaml", "w") as f:
            f.write(text.replace("seed: 5", "seed: 5\nuneven: mask"))
        feeds = [penstock.attach(self.home + "/uneven.yaml", "new", job="uneven",
                                 data=(r, 3), address=self.home + "/run",
                                 incarnation="u", timeout=60) for r in range(3)]
        threads = [threading.Thread(target=lambda f=f: f.info) for f in feeds]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        steps = [next(f) for f in feeds]
        self.assertEqual([s.samples for s in steps], [3, 3, 2])
        self.assertEqual([s.units for s in steps], [4, 4, 4])
        self.assertEqual([len(s.microbatches) for s in steps], [2, 2, 2])
        shapes = subprocess.run(
            [BIN + "/penstock", "plan", "--feed", self.home + "/uneven.yaml",
             "--shapes", "--world", "3", "--json"], check=True, capture_output=True,
            text=True).stdout
        for line in map(json.loads, shapes.splitlines()):  # as said beforehand
            self.assertEqual(steps[0].microbatches[0][line["tensor"]].shape,
                             tuple(line["shape"]))
        self.assertAlmostEqual(sum(s.loss_scale for s in steps), 3)
        self.assertAlmostEqual(steps[2].loss_scale, 3 * 2 / 8)
        self.assertTrue(steps[2]["video"][:2].any())
        self.assertFalse(steps[2]["video"][2:].any())
        for f in feeds:
            f.close()

    def test_steps_are_read_only_views(self):
        with self.attach("views") as feed:
            step = next(feed)
            self.assertEqual(step.number, 0)
            self.assertEqual(len(step.microbatches), 4)
            mb = step.microbatches[0]
            self.assertEqual(mb["video"].shape, (2, 4, 48, 64, 3))
            self.assertEqual(mb["video"].dtype, numpy.uint8)
            self.assertEqual(mb["keys"].shape, (2, 4, 2))
            self.assertEqual(mb["t"].dtype, numpy.int64)
            self.assertTrue((mb["t"][:, 1:] > mb["t"][:, :-1]).all())
            with self.assertRaises(ValueError):
                mb["video"][0] = 1
            whole = step["video"]
            parts = numpy.concatenate([m["video"] for m in step.microbatches])
            self.assertTrue((whole == parts).all())
            self.assertTrue((mb["keys"] & 128 == 128).all())  # valid

    def test_same_bytes_as_without_a_daemon(self):
        expected = self.reference(4)
        with self.attach("same") as feed:
            for want in expected:
                step = next(feed)
                self.assertEqual(step.sample_ids, want["samples"])
                self.assertEqual(step.item_digests, want["item_digests"])
                self.assertEqual(step.global_digest, want["global_digest"])

    def test_arrays_keep_their_slot(self):
        feed = self.attach("keep")
        kept = next(feed)["video"]
        before = kept.copy()
        for _ in range(12):  # more than the arena has slots
            next(feed)
        self.assertTrue((kept == before).all())
        feed.close()
        self.assertTrue((kept == before).all())

    def test_state_dict_and_resume(self):
        expected = self.reference(6)
        feed = self.attach("state")
        fresh = feed.state_dict()
        self.assertEqual(fresh["next_step"], 0)
        for _ in range(3):
            next(feed)
        saved = feed.state_dict()
        self.assertEqual(set(saved), set(fresh))
        self.assertEqual(saved["next_step"], 3)
        self.assertLessEqual(len(json.dumps(saved)), 256)
        feed.close()
        again = self.attach("state", saved, incarnation="second")
        self.assertEqual(again.state_dict(), saved)
        self.assertEqual(next(again).item_digests, expected[3]["item_digests"])
        again.close()
        third = self.attach("state", again_state := saved, incarnation="third")
        self.assertEqual(next(third).number, again_state["next_step"])
        third.close()

    def test_errors_have_classes(self):
        with self.assertRaises(penstock.AttachRefused) as caught:
            next(self.attach("other", {"datasets": "0" * 32, "feed": "0" * 32,
                                       "job": "other", "next_step": 1,
                                       "version": 1}))
        self.assertIn("expected", str(caught.exception))
        with self.assertRaises(penstock.InvalidArgument):
            next(self.attach("x", resume="nonsense"))
        with self.assertRaises(penstock.InvalidArgument):
            penstock.attach("feed.yaml", 7)
        with self.assertRaises(penstock.Unavailable):
            next(penstock.attach(self.home + "/feed.yaml", "new", job="gone",
                                 address=self.home + "/nowhere", timeout=1,
                                 first_timeout=0.3))

    def test_explicit_acknowledgement(self):
        feed = self.attach("explicit", ack="explicit")
        first = next(feed)
        digest = first.batch_digest
        next(feed)
        feed.close()
        # Nothing was acknowledged: a restart finds the first step again.
        feed = self.attach("explicit", ack="explicit")
        step = next(feed)
        self.assertEqual((step.number, step.batch_digest), (0, digest))
        feed.ack(step)
        feed.close()
        feed = self.attach("explicit", ack="explicit")
        self.assertEqual(next(feed).number, 1)
        feed.close()

    def test_abort_ends_a_wait(self):
        # A world of two with one rank: the first step is never made.
        feed = self.attach("abort", data=(0, 2))
        feed.info  # attach
        ended = []

        def wait():
            try:
                next(feed)
            except penstock.Error as e:
                ended.append(type(e))

        thread = threading.Thread(target=wait)
        thread.start()
        feed.abort()
        thread.join(5)
        self.assertEqual(ended, [penstock.Aborted])
        feed.close()

    def test_wait_names_who_is_waited_for(self):
        feed = penstock.attach(self.home + "/feed.yaml", "new", job="lonely",
                               data=(0, 2), incarnation="a",
                               address=self.home + "/run", timeout=1,
                               first_timeout=1)
        with self.assertRaises(penstock.DataWaitTimeout) as caught:
            next(feed)
        self.assertIn("data ranks to attach: 1", str(caught.exception))
        feed.close()

    def test_fork_and_spawn(self):
        parent = self.attach("parent")
        next(parent)
        pid = os.fork()
        if pid == 0:
            try:
                next(parent)
            except penstock.Forked:
                os._exit(0)
            os._exit(1)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        for method in ("fork", "spawn"):
            context = multiprocessing.get_context(method)
            out = context.Queue()
            child = context.Process(target=take, args=(self.home, method, out))
            child.start()
            self.assertEqual(out.get(timeout=60),
                             self.reference(1)[0]["digest"])
            child.join(30)
            self.assertEqual(child.exitcode, 0)
        next(parent)  # the parent goes on
        parent.close()

    def interrupted(self, attach):
        """Ctrl-C ends a child that waits soon."""
        child = subprocess.Popen(
            [sys.executable, "-c",
             "import sys; sys.path.insert(0, sys.argv[1]); import penstock\n"
             "home = sys.argv[2]\n"
             "f = penstock.attach(home + '/feed.yaml', 'new', job='int',"
             f" incarnation='a', {attach}\n"
             "print('waits', flush=True); next(f)", PYTHON, self.home],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        child.stdout.readline()
        begin = time.monotonic()
        child.send_signal(signal.SIGINT)
        child.wait(10)
        child.stdout.close()
        self.assertLess(time.monotonic() - begin, 5)  # 1 s, on a shared machine

    def test_interrupt_ends_the_wait_for_a_daemon(self):  # B-12
        self.interrupted("address=home + '/nobody')")

    def test_interrupt_ends_a_wait(self):  # B-12
        # A world of two with one rank: it waits for ever.
        self.interrupted("address=home + '/run', data=(0, 2)); f.info")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[4:]])
