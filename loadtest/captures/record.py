#!/usr/bin/env python3
"""Records real games played by scripted bots, as test captures.  See README.md.

    record.py --out ../../tests/data/captures            all recordings
    record.py --out DIR freedoom2-map01 solarwolf-l9     some of them
"""

import argparse
import importlib
import pathlib
import tempfile

import capture_io

FREEDOOM = ("BSD-3-Clause, as the Freedoom data whose art and sound it shows, by the contributors "
            "to the Freedoom project (text: LICENSE.freedoom beside the recordings). "
            "Engine: ViZDoom, MIT, with ZDoom's own terms for its parts.")
SOLARWOLF = ("GPL-2, as the strictest of what it shows: SolarWolf by Pete Shinners, LGPL-2.1, and "
             "graphics by Eero Tamminen, GPL-2 (Debian's copyright file of solarwolf 1.5+dfsg1-6).")

RECORDINGS = {
    "freedoom2-map01": dict(
        game="doom_game", wad="freedoom2.wad", map="MAP01", skill=2, seed=11, boldness=1.3,
        size=(640, 480), frames=735, warm_up=0, file="video.mp4", codec="h264", gop=48,
        open_gop=False, audio="aac", matrix="smpte170m", crf=32,
        title="freedoom2", session="fd2-map01-s11", player="bot-explorer", licence=FREEDOOM,
        conditions={"map": "MAP01", "difficulty": "2"},
        text=[(0, None, "Explore the level, pick up ammunition and shoot what attacks you.")]),
    "freedoom1-e1m1": dict(
        game="doom_game", wad="freedoom1.wad", map="E1M1", skill=3, seed=5, boldness=0.7,
        size=(640, 480), frames=770, warm_up=20, file="video.mkv", codec="hevc", gop=60,
        open_gop=True, audio="opus", matrix="bt709", crf=31,
        title="freedoom1", session="fd1-e1m1-s5", player="bot-hunter", licence=FREEDOOM,
        conditions={"map": "E1M1", "difficulty": "3"},
        text=[(0, None, "Hunt the monsters of the level and stay alive.")]),
    "freedoom2-map02": dict(
        game="doom_game", wad="freedoom2.wad", map="MAP02", skill=3, seed=8, boldness=0.7,
        size=(800, 600), frames=710, warm_up=12, file="video.mp4", codec="h264", gop=35,
        open_gop=False, audio="aac", matrix="bt709", crf=32,
        title="freedoom2", session="fd2-map02-s8", player="bot-hunter", licence=FREEDOOM,
        conditions={"map": "MAP02", "difficulty": "3"},
        text=[(0, 8_000_000_000, "Clear the rooms around the start of the level."),
              (8_000_000_000, None, "Go on to places that you have not seen yet.")]),
    "solarwolf-l9": dict(
        game="wolf_game", level=9, seed=4, size=(800, 600), frames=920, file="video.mp4",
        codec="h264", gop=80, open_gop=True, audio="aac", matrix="bt709", crf=28,
        title="solarwolf", session="sw-l9-s4", player="bot-collector", licence=SOLARWOLF,
        conditions={"level": "9"},
        text=[(0, None, "Collect all power cubes and keep clear of the guardians' shots.")]),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--seed", type=int, help="another seed than the committed one")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(RECORDINGS))
    options = parser.parse_args()
    for name in options.names or RECORDINGS:
        plan = dict(RECORDINGS[name])
        if options.seed is not None:
            plan["seed"] = options.seed
        out = (options.out / name).resolve()
        with tempfile.TemporaryDirectory(prefix="penstock-capture-") as folder:
            result, spool = importlib.import_module(plan["game"]).record(plan, folder)
            capture_io.write_recording(out, plan, result, spool)


if __name__ == "__main__":
    main()
