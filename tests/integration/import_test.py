#!/usr/bin/python3
"""The real `penstock import`, `verify` and `inspect` against real files.

    import_test.py BIN_DIR [unittest arguments]

Behaviours: B-15 (damage is found and named), B-37 and B-38 (frames are those of a
linear decode; the index has what the file has), B-34 (a killed import leaves
nothing behind that the next one does not clear away), DESIGN §2 (the dataset id).
"""
import hashlib
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMITTED = ROOT / "tests/data/captures"
SHARED = ROOT.parent / "shared/captures"
BIN = pathlib.Path(".")

# Frames and keyframes of tests/data/captures/README.md and what ffprobe counts.
COMMITTED_FRAMES = {"freedoom1-e1m1/video.mkv": 770,
                    "freedoom2-map01/video.mp4": 735,
                    "freedoom2-map02/video.mp4": 710,
                    "solarwolf-l9/video.mp4": 920}
# INDEX.md: file -> (frames, key frames that are shown, frames lost, first and last
# time in seconds; None: the index does not say).
SHARED_FRAMES = {
    "dali_extra__cfr.mpeg": (180, 1, 0, 0.533333, None),
    "decord__corrupted.mp4": (49, 1, 1, 0, 4.9),
    "decord__unordered.mov": (4, 1, 0, 0, 0.09375),
    "decord__video_90.mov": (3, 1, 0, 0, 0.066667),
    "energon__sync_test.mp4": (1891, 8, 0, 0, 63.0),
    "media3__edit_list_positive_shift.mp4": (270, 2, 0, 1.0, 9.966667),
    "media3__sample_android_slow_motion.mp4": (7, 1, 0, 0, 0.492011),
    "media3__sample_partially_fragmented.mp4": (30, 1, 0, 0.066733, 1.034367),
    "media3__sample_with_increasing_timestamps_320w_240h_5s.mp4":
        (300, 2, 0, 0, 4.983333),
    "media3__silent-black-10s.mp4": (300, 2, 0, 0, 9.966667),
    "minestudio__build_pillar_0.mp4": (600, 9, 0, 0, 19.966667),
    "owa__0.4.2.mkv": (34, 2, 0, 0.02, 7.78),
    "torchcodec__bt601_limited_range.mp4": (60, 1, 0, 0, 1.966667),
    "torchcodec__discard_first_keyframe.mp4": (25, 2, 0, 0, 0.96),
    "torchcodec__test_non_zero_start.mp4": (12, 1, 0, 8.333008, 8.699674),
    "torchcodec__testsrc2_12bit_hdr.mp4": (60, 1, 0, 0, 1.966667),
    "torchcodec__testsrc2_odd_height_and_width_444_10bit.mp4": (25, 1, 0, 0, 0.96),
}


def penstock(*arguments, before=None):
    return subprocess.run([str(BIN / "penstock"), *map(str, arguments)],
                          capture_output=True, text=True, errors="replace",
                          timeout=300,
                          preexec_fn=before, check=False)


def lines(text):
    return [json.loads(line) for line in text.splitlines() if line]


def ffmpeg(*arguments):
    subprocess.run(["ffmpeg", "-hide_banner", "-loglevel", "error", "-y",
                    *map(str, arguments)], check=True, timeout=120)


def pixels_of(command):
    """SHA-256 and size of what a command writes to stdout."""
    sha, size = hashlib.sha256(), 0
    with subprocess.Popen(command, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as p:
        while chunk := p.stdout.read(1 << 20):
            sha.update(chunk)
            size += len(chunk)
    return sha.hexdigest(), size, p.returncode


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="penstock."))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def good_import(self, sources, out, *more, code=0):
        run = penstock("import", *sources, "--out", out, "--json", *more)
        self.assertEqual(run.returncode, code, run.stderr)
        return lines(run.stdout)

    def small_video(self, name, seconds=2, source="testsrc2"):
        path = self.dir / name
        ffmpeg("-f", "lavfi", "-i", f"{source}=s=64x48:r=25:d={seconds}", "-c:v",
               "libx264", "-g", "10", "-pix_fmt", "yuv420p", path)
        return path

    def refused(self, run, code, *parts):
        self.assertEqual(run.returncode, code, run.stderr)
        for part in parts:
            self.assertIn(str(part), run.stderr)


class WhatIsImported(Case):
    def test_committed_captures_have_their_frames_and_are_certified(self):
        out = self.dir / "set"
        *captures, total = self.good_import([COMMITTED], out)
        got = {"/".join(c["source"].split("/")[-2:]): c for c in captures}
        self.assertEqual({k: c["frames"] for k, c in got.items()},
                         COMMITTED_FRAMES)
        for c in captures:
            self.assertEqual((c["lost"], c["damaged"]), (0, 0), c)
        self.assertEqual(total["frames"], sum(COMMITTED_FRAMES.values()))
        self.assertFalse(total["loss"])
        self.assertEqual(penstock("verify", out).returncode, 0)
        tracks = [t for t in lines(penstock("inspect", out, "--json").stdout)
                  if t["schema"] == "penstock.inspect.v1"]
        names = {t["track"] for t in tracks}
        self.assertLessEqual({"video", "input", "telemetry", "actions"}, names)

    def test_shared_captures_have_the_frames_of_their_index(self):
        if not SHARED.is_dir():
            self.skipTest("../shared/captures is not there")
        for name, answer in SHARED_FRAMES.items():
            frames, keys, lost, first, last = answer
            with self.subTest(name):
                if not (SHARED / name).is_file():
                    self.skipTest(f"{name} is not there")
                out = self.dir / name
                capture, total = self.good_import([SHARED / name], out,
                                                  code=4 if lost else 0)
                self.assertEqual(capture["frames"], frames)
                self.assertEqual(capture["lost"], lost)
                self.assertEqual(total["loss"], lost > 0)
                if not lost:
                    self.assertEqual(capture["damaged"], 0)
                self.assertEqual(penstock("verify", out).returncode, 0)
                video = next(t for t in lines(
                    penstock("inspect", out, "--json").stdout)
                    if t.get("kind") == "video")
                self.assertEqual(video["keyframes"], keys)
                self.assertEqual(video["frames"], frames)
                self.assertAlmostEqual(video["first_pts_ns"] / 1e9, first, delta=2e-6)
                if last is not None:
                    self.assertAlmostEqual(video["last_pts_ns"] / 1e9, last,
                                           delta=2e-6)
                shutil.rmtree(out)

    def test_every_frame_is_that_of_a_linear_decode(self):
        out = self.dir / "set"
        *captures, _ = self.good_import([COMMITTED], out)
        for c in captures:
            with self.subTest(c["source"]):
                expected = pixels_of(
                    ["ffmpeg", "-hide_banner", "-loglevel", "error", "-i",
                     c["source"], "-map", "0:v:0", "-fps_mode", "passthrough",
                     "-f", "rawvideo", "-pix_fmt", "yuv420p", "-"])
                got = pixels_of([str(BIN / "penstock"), "inspect",
                                 f"{out}:{c['capture'][:16]}", "--raw", "-"])
                self.assertEqual(got, expected)
                self.assertEqual(got[2], 0)
                self.assertGreater(got[1], 0)
                # One frame alone, in the middle of a GOP, is that of the whole.
                at = c["frames"] // 2 + 7
                whole, one = self.dir / "whole", self.dir / "one"
                name = f"{out}:{c['capture'][:16]}"
                penstock("inspect", name, "--raw", whole)
                penstock("inspect", f"{name}:{at}+1", "--raw", one)
                size = one.stat().st_size
                self.assertEqual(size * c["frames"], whole.stat().st_size)
                with whole.open("rb") as f:
                    f.seek(at * size)
                    self.assertEqual(f.read(size), one.read_bytes())
        sheet = self.dir / "sheet.png"
        run = penstock("inspect", f"{out}:0:0+64", "--png", sheet)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(sheet.read_bytes()[1:4], b"PNG")


class TheSameId(Case):
    def test_order_jobs_and_place_never_change_the_id(self):
        a = self.small_video("a.mp4")
        b = self.small_video("b.mp4", source="testsrc")
        c = COMMITTED / "freedoom2-map02"
        ids = set()
        for i, (sources, jobs) in enumerate([((a, b, c), 1), ((c, b, a), 2),
                                             ((b, a, c), 3)]):
            out = self.dir / f"out{i}"
            ids.add(self.good_import(sources, out, "--jobs", jobs)[-1]["id"])
        moved = self.dir / "elsewhere"
        moved.mkdir()
        shutil.copy(a, moved / "renamed.mp4")
        shutil.copy(b, moved / "b.mp4")
        out = self.dir / "again"
        ids.add(self.good_import([moved, c], out)[-1]["id"])
        self.assertEqual(len(ids), 1)

    def test_another_byte_gives_another_id(self):
        folder = self.dir / "solarwolf"
        shutil.copytree(COMMITTED / "solarwolf-l9", folder)
        first = self.good_import([folder], self.dir / "one")[-1]["id"]
        text = (folder / "capture.json").read_text()
        (folder / "capture.json").write_text(
            text.replace('"level": "9"', '"level": "8"'))
        second = self.good_import([folder], self.dir / "two")[-1]["id"]
        self.assertNotEqual(first, second)

    def test_a_version_is_published_once(self):
        video = self.small_video("a.mp4")
        out = self.dir / "set"
        first = self.good_import([video], out)[-1]["id"]
        run = penstock("import", video, "--out", out)
        self.refused(run, 2, out, "there already", "found     a dataset version",
                     "expected", "do        give another --out")
        self.assertIn(first, penstock("verify", out).stdout)


class Interrupted(Case):
    def test_kill_in_the_middle_leaves_no_dataset_and_a_rerun_works(self):
        expected = self.good_import([COMMITTED], self.dir / "whole")[-1]["id"]
        out = self.dir / "set"
        command = [str(BIN / "penstock"), "import", str(COMMITTED), "--out",
                   str(out), "--jobs", "1", "--json"]
        for at in ("[1/4]", "[3/4]"):
            with self.subTest(at):
                with subprocess.Popen(command, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True) as p:
                    for line in p.stderr:
                        if line.startswith(at):
                            break
                    p.send_signal(signal.SIGKILL)
                    p.wait()
                self.assertEqual(p.returncode, -signal.SIGKILL)
                self.assertFalse(out.exists())
                self.assertEqual(penstock("verify", out).returncode, 2)
        self.assertEqual(self.good_import([COMMITTED], out)[-1]["id"], expected)
        # Nothing else is left (B-34).
        self.assertEqual(sorted(os.listdir(self.dir)), ["set", "whole"])

    def test_ctrl_c_leaves_nothing_at_all(self):
        out = self.dir / "set"
        with subprocess.Popen(
                [str(BIN / "penstock"), "import", str(COMMITTED), "--out",
                 str(out), "--jobs", "1"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
            for line in p.stderr:
                if line.startswith("[1/4]"):
                    break
            p.send_signal(signal.SIGINT)
            p.communicate(timeout=60)
        self.assertEqual(p.returncode, 130)
        self.assertEqual(os.listdir(self.dir), [])

    def test_a_full_disk_publishes_nothing_and_says_so(self):
        video = self.small_video("a.mp4")
        out = self.dir / "set"
        run = penstock("import", video, "--out", out, before=lambda:
                       resource.setrlimit(resource.RLIMIT_FSIZE, (100_000,) * 2))
        self.refused(run, 3, "00000.pshard", "disk is full", "do        free space")
        self.assertEqual(os.listdir(self.dir), ["a.mp4"])

    def test_a_full_file_system_publishes_nothing_and_says_so(self):
        video = self.small_video("a.mp4")
        small = self.dir / "small"
        small.mkdir()
        if os.geteuid() != 0 or subprocess.run(
                ["mount", "-t", "tmpfs", "-o", "size=200k", "none", small],
                capture_output=True, check=False).returncode != 0:
            self.skipTest("mounting a tmpfs is refused")
        try:
            run = penstock("import", video, "--out", small / "set")
            self.refused(run, 3, "disk is full", "do        free space")
            self.assertEqual(os.listdir(small), [])
        finally:
            subprocess.run(["umount", small], check=True)


class Damage(Case):
    def setUp(self):
        super().setUp()
        self.out = self.dir / "set"
        *self.captures, self.total = self.good_import(
            [self.small_video("a.mp4"),
             self.small_video("b.mp4", source="testsrc")], self.out)
        self.shard = self.out / "shards/00000.pshard"

    def faults_with(self, path, at, bit=0):
        data = bytearray(path.read_bytes())
        data[at] ^= 1 << bit
        good = path.read_bytes()
        path.write_bytes(data)
        run = penstock("verify", self.out, "--json")
        path.write_bytes(good)
        self.assertEqual(run.returncode, 1, f"{path.name} byte {at} bit {bit}")
        return [f for f in lines(run.stdout)
                if f["schema"] == "penstock.verify.fault.v1"] or \
            [{"file": run.stderr, "what": run.stderr}]

    def test_a_flip_in_a_block_names_file_block_and_capture(self):
        data = self.shard.read_bytes()
        at = data.index(b"PBLK")
        seen = set()
        while at >= 0:
            for place in (at + 4, at + 70):
                faults = self.faults_with(self.shard, place)
                named = [f for f in faults if f.get("capture")]
                self.assertTrue(named, faults)
                self.assertTrue(any("00000.pshard" in f["file"] for f in named))
                self.assertTrue(all(f["block"] for f in named))
                seen.update(f["capture"] for f in named)
            at = data.find(b"PBLK", at + 64)
        self.assertEqual(seen, {c["capture"] for c in self.captures})

    def test_a_flip_anywhere_is_found(self):
        rng = random.Random(int(os.environ.get("PENSTOCK_TEST_SEED", "1")))
        files = [p for p in self.out.rglob("*") if p.is_file()]
        self.assertEqual(len(files), 4)
        for path in files:
            size = path.stat().st_size
            places = {0, size - 1, size // 2, min(4095, size - 1)}
            places.update(rng.randrange(size) for _ in range(12))
            for at in sorted(places):
                faults = self.faults_with(path, at, rng.randrange(8))
                self.assertTrue(any(path.name in f["file"] for f in faults),
                                f"{path.name} byte {at}: {faults}")

    def test_a_cut_or_missing_file_is_found(self):
        for path in [p for p in self.out.rglob("*") if p.is_file()]:
            good = path.read_bytes()
            for data in (good[:-1], good[:len(good) // 2], b"", good + b"\0", None):
                path.unlink()
                if data is not None:
                    path.write_bytes(data)
                run = penstock("verify", self.out)
                self.assertIn(run.returncode, (1, 2), path.name)
                self.assertIn(path.name, run.stdout + run.stderr)
                path.write_bytes(good)
        self.assertEqual(penstock("verify", self.out).returncode, 0)

    def test_what_may_not_be_read_is_no_damage(self):
        if os.geteuid() != 0:
            self.skipTest("only root can become another user")
        self.dir.chmod(0o755)
        tool = shutil.copy(BIN / "penstock", self.dir / "penstock")
        for path in (self.shard, self.out):
            before = path.stat().st_mode
            path.chmod(0)
            run = subprocess.run([tool, "verify", self.out], capture_output=True,
                                 text=True, user=65534, group=65534,
                                 extra_groups=[], check=False)
            path.chmod(before)
            self.refused(run, 3, path.name, "Permission denied")

    def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(self):
        self.shard.unlink()
        os.mkfifo(self.shard)
        run = penstock("verify", self.out)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("00000.pshard", run.stdout + run.stderr)
        run = penstock("inspect", f"{self.out}:0:0+1", "--raw", self.dir / "raw")
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("00000.pshard", run.stderr)


class BadInputs(Case):
    def bad(self, source, code, *parts):
        out = self.dir / "set"
        self.refused(penstock("import", source, "--out", out), code, *parts)
        self.assertFalse(out.exists())
        self.assertFalse((self.dir / "set.importing").exists())

    def test_folders_without_captures(self):
        empty = self.dir / "empty"
        empty.mkdir()
        self.bad(empty, 2, empty, "no capture in this folder", "found", "expected",
                 "do        give the folder")
        self.bad(self.dir / "none", 2, self.dir / "none",
                 "no such file or folder", "do        correct the path")

    def test_files_that_are_no_videos(self):
        for name, data in (("text.mp4", b"hello, world\n"), ("empty.mkv", b""),
                           ("zeros.mov", bytes(5000))):
            path = self.dir / name
            path.write_bytes(data)
            self.bad(path, 2, path, "cannot be opened as a video", "found",
                     "expected  mp4", "do        check")

    def test_a_playlist_is_no_video(self):
        path = self.dir / "list.mp4"
        path.write_text("#EXTM3U\n#EXTINF:1,\n/etc/passwd\n#EXT-X-ENDLIST\n")
        self.bad(path, 2, path, "cannot be opened as a video")

    def test_a_pipe_is_not_waited_for(self):
        path = self.dir / "pipe.mp4"
        os.mkfifo(path)
        self.bad(path, 2, path, "not a regular file", "do")
        folder = self.dir / "folder"
        folder.mkdir()
        os.mkfifo(folder / "capture.json")
        self.bad(folder, 2, folder / "capture.json", "do")

    def test_an_mp4_without_its_index(self):
        video = self.small_video("a.mp4").read_bytes()
        path = self.dir / "cut.mp4"
        path.write_bytes(video[:len(video) // 2])
        self.bad(path, 2, path, "(moov)", "cut off", "found", "do        check")

    def test_an_mp4_cut_in_its_frames_is_certified_with_its_loss(self):
        whole = self.small_video("a.mp4")
        fast = self.dir / "fast.mp4"
        ffmpeg("-i", whole, "-c", "copy", "-movflags", "+faststart", fast)
        path = self.dir / "cut.mp4"
        path.write_bytes(fast.read_bytes()[:5000])
        fast.unlink()
        out = self.dir / "set"
        capture, total = self.good_import([path], out, code=4)
        self.assertTrue(total["loss"])
        self.assertEqual(capture["frames"] + capture["lost"], 50)
        self.assertTrue(any("cut off" in n for n in capture["notes"]), capture)
        self.assertEqual(penstock("verify", out).returncode, 0)

    def test_files_without_frames(self):
        audio = self.dir / "audio.mp4"
        ffmpeg("-f", "lavfi", "-i", "sine=d=1", "-c:a", "aac", audio)
        self.bad(audio, 2, audio, "needs a video track", "found     1 streams",
                 "do        remove")
        none = self.dir / "none.mp4"
        ffmpeg("-f", "lavfi", "-i", "testsrc2=s=64x48:r=25:d=1", "-c:v",
               "libx264", "-frames:v", "0", none)
        self.bad(none, 2, none, "needs a video track", "found     0 streams")

    def capture(self, **changed):
        folder = self.dir / "capture"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(COMMITTED / "solarwolf-l9", folder)
        for name, change in changed.items():
            path = folder / name.replace("_", ".")
            path.write_text(change(path.read_text()))
        return folder

    def test_a_sidecar_with_fewer_or_more_rows(self):
        folder = self.capture(actions_jsonl=lambda t: t[:t[:-1].rindex("\n") + 1])
        self.bad(folder, 2, folder / "actions.jsonl", "fewer rows",
                 "found     919 rows", "expected  920", "tail_max")
        more = '{"frame":920,"up":0,"down":0,"left":0,"right":0,"turbo":0}\n'
        folder = self.capture(actions_jsonl=lambda t: t + more)
        self.bad(folder, 2, folder / "actions.jsonl", "more rows",
                 "found     921 rows", "expected  920")
        folder = self.capture(actions_jsonl=lambda t: t + t.splitlines()[-1])
        self.bad(folder, 2, "actions.jsonl:921", "found     919",
                 "expected  920", "do")

    def test_a_sidecar_with_a_bad_line(self):
        folder = self.capture(
            events_jsonl=lambda t: t.replace("\n", '\n{"oops"\n', 1))
        self.bad(folder, 2, "events.jsonl:2", "not a JSON object",
                 'found     {"oops"', "expected", "do")

    def test_a_sidecar_that_is_not_there(self):
        folder = self.capture()
        (folder / "ticks.jsonl").unlink()
        self.bad(folder, 2, folder / "ticks.jsonl", "No such file", "do")

    def test_an_unknown_field_names_the_near_one(self):
        folder = self.capture(
            capture_json=lambda t: t.replace('"title"', '"titel"', 1))
        self.bad(folder, 2, folder / "capture.json", "titel", "unknown field",
                 'expected  "title"?', "do")

    def test_a_mapping_that_is_no_json_or_says_a_field_twice(self):
        folder = self.capture(capture_json=lambda t: t.replace('"title"', ',"title"'))
        self.bad(folder, 2, folder / "capture.json", ":3: is not JSON", "found", "do")
        folder = self.capture(capture_json=lambda t: t.replace(
            '"session"', '"title": "again", "session"', 1))
        self.bad(folder, 2, folder / "capture.json", "given twice",
                 "found     title", "do")

    def test_a_mapping_of_other_types(self):
        for part in ("tracks", "text"):
            for value in ('"x"', "5", "true", "null", '{"a": 1}'):
                folder = self.capture()
                mapping = json.loads((folder / "capture.json").read_text())
                mapping[part] = json.loads(value)
                (folder / "capture.json").write_text(json.dumps(mapping))
                self.bad(folder, 2, f"capture.json.{part}", "must be a list", "do")
        folder = self.capture(capture_json=lambda t: t.replace(
            '"unit": "ns"', '"unit": 5', 1))
        self.bad(folder, 2, "clock.unit", "must be a text", "do")
        folder = self.capture(capture_json=lambda t: t.replace(
            '"first_tick": 0', '"first_tick": 18446744073709551615', 1))
        self.bad(folder, 2, "first_tick", "out of range", "do")
        folder = self.capture(capture_json=lambda t: t.replace(
            '"name": "telemetry"', '"name": "input"', 1))
        self.bad(folder, 2, "two tracks of one name", "do")

    def test_times_and_columns_that_cannot_be(self):
        folder = self.capture(events_jsonl=lambda t: t + json.dumps(
            {"t_ns": 2**63 - 1, "kind": "key", "code": "KeyW", "value": 1}) + "\n")
        self.bad(folder, 2, "events.jsonl:", "no time in field", "do")
        folder = self.capture(ticks_jsonl=lambda t: t.replace(
            "\n", "\n" + t.splitlines()[0] + "\n", 1))
        self.bad(folder, 2, "ticks.jsonl:2", "the tick is given twice", "do")
        folder = self.capture(capture_json=lambda t: t.replace(
            '"name": "lives"', '"name": "livse"', 1))
        self.bad(folder, 2, "ticks.jsonl", 'no row has the column "livse"',
                 '"lives"?', "do")

    def test_telemetry_that_ends_early_is_said(self):
        folder = self.capture(
            ticks_jsonl=lambda t: "".join(t.splitlines(True)[:200]))
        capture, _ = self.good_import([folder], self.dir / "set")
        self.assertTrue(any("telemetry: ends at" in n for n in capture["notes"]),
                        capture["notes"])

    def test_links_that_lead_round(self):
        folder = self.dir / "folder"
        folder.mkdir()
        (folder / "loop").symlink_to("loop")
        self.small_video("folder/v.mp4")
        self.good_import([folder], self.dir / "set")
        shutil.rmtree(self.dir / "set")
        (folder / "loop.mp4").symlink_to("loop.mp4")
        self.bad(folder, 3, folder / "loop.mp4", "symbolic links", "do")
        (folder / "loop.mp4").unlink()
        (folder / "self").symlink_to(".")
        self.bad(folder, 2, "folders too deep", "expected")

    def test_a_name_that_is_no_text(self):
        folder = self.dir / "folder"
        folder.mkdir()
        self.small_video("folder/v.mp4").rename(
            folder / os.fsdecode(b"\xff\n.mp4"))
        capture, _ = self.good_import([folder], self.dir / "set")
        self.assertIn("\ufffd\n.mp4", capture["source"])
        self.assertEqual(penstock("verify", self.dir / "set").returncode, 0)

    def test_a_sidecar_that_leaves_the_folder(self):
        folder = self.capture(
            capture_json=lambda t: t.replace('"events.jsonl"', '"../events.jsonl"'))
        self.bad(folder, 2, folder / "capture.json", "leaves", "do")

    def test_bad_ones_are_left_out_only_when_asked(self):
        good = self.small_video("good.mp4")
        text = self.dir / "text.mp4"
        text.write_text("hello")
        run = penstock("import", good, text, "--out", self.dir / "set")
        self.refused(run, 2, text, "nothing was imported", "--skip-bad")
        capture, total = self.good_import([good, text], self.dir / "set",
                                          "--skip-bad", code=4)
        self.assertEqual(capture["frames"], 50)
        self.assertEqual((total["captures"], total["left_out"]), (1, 1))
        shutil.rmtree(self.dir / "set")
        folder = self.capture(capture_json=lambda t: "{")
        (self.dir / "pipe.mp4").unlink(missing_ok=True)
        os.mkfifo(self.dir / "pipe.mp4")
        run = penstock("import", good, folder, self.dir / "pipe.mp4", "--out",
                       self.dir / "set")
        self.refused(run, 2, folder / "capture.json", "pipe.mp4", "--skip-bad")
        self.assertNotIn("[1/", run.stderr)  # before anything is decoded
        capture, total = self.good_import(
            [good, folder, self.dir / "pipe.mp4"], self.dir / "set", "--skip-bad",
            code=4)
        self.assertEqual((total["captures"], total["left_out"]), (1, 2))
        self.refused(penstock("import", folder, "--dry-run"), 2,
                     folder / "capture.json", "is not JSON", "do")

    def test_no_out_is_said(self):
        self.refused(penstock("import", COMMITTED), 2, "--out")


if __name__ == "__main__":
    BIN = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=2)
