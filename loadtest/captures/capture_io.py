"""Writing one recording: lossless spool of frames and sound, the sidecars, the final encode."""

import json
import pathlib
import subprocess
import wave
from fractions import Fraction

# USB HID usages, page << 16 | usage, for every control the bots touch.
USAGES = {
    "KeyA": 0x00070004, "KeyD": 0x00070007, "KeyE": 0x00070008, "KeyS": 0x00070016,
    "KeyW": 0x0007001A, "ShiftLeft": 0x000700E1, "Space": 0x0007002C,
    "ArrowRight": 0x0007004F, "ArrowLeft": 0x00070050,
    "ArrowDown": 0x00070051, "ArrowUp": 0x00070052,
    "MouseLeft": 0x00090001, "Wheel": 0x00010038,
}

SIZE_LIMIT = 2_000_000  # bytes for one recording's folder, sidecars included


def run(args):
    done = subprocess.run([str(a) for a in args], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{args[0]} failed:\n{done.stderr[-3000:]}")
    return done.stdout


class Spool:
    """Takes raw RGB frames and 16-bit stereo sound while the game runs; keeps both lossless."""

    def __init__(self, folder, width, height, fps, sample_rate):
        self.folder = pathlib.Path(folder)
        self.width, self.height, self.fps = width, height, Fraction(fps)
        self.sample_rate = sample_rate
        self.frames = 0
        self.video_path = self.folder / "spool.mkv"
        self.audio_path = self.folder / "spool.wav"
        self.pipe = subprocess.Popen(
            ["ffmpeg", "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24",
             "-s", f"{width}x{height}", "-r", str(self.fps), "-i", "-",
             "-c:v", "ffv1", "-level", "3", "-g", "1", "-pix_fmt", "bgr0", str(self.video_path)],
            stdin=subprocess.PIPE)
        self.sound = wave.open(str(self.audio_path), "wb")
        self.sound.setnchannels(2)
        self.sound.setsampwidth(2)
        self.sound.setframerate(sample_rate)

    def frame(self, rgb):
        assert rgb.shape == (self.height, self.width, 3), rgb.shape
        self.pipe.stdin.write(rgb.tobytes())
        self.frames += 1

    def samples(self, pcm):
        self.sound.writeframes(pcm.tobytes())

    def close(self):
        self.sound.close()
        self.pipe.stdin.close()
        if self.pipe.wait():
            raise RuntimeError("the spooling ffmpeg failed")


class Inputs:
    """The event list and what is held.  Every time is in ns from the first frame's time."""

    def __init__(self, fps):
        self.fps = Fraction(fps)
        self.events = []
        self.held = {}
        self.held_at_start = []

    def frame_ns(self, index):
        return round(Fraction(10**9 * index) / self.fps)

    def key(self, t_ns, code, value):
        if bool(self.held.get(code)) == bool(value):
            return
        self.held[code] = value
        mouse = code.startswith("Mouse")
        self.events.append({
            "t_ns": int(t_ns), "device": "mouse0" if mouse else "keyboard0",
            "kind": "button" if mouse else "key", "code": code,
            "usage": USAGES[code], "value": int(value)})

    def motion(self, t_ns, dx, dy=0):
        self.events.append({"t_ns": int(t_ns), "device": "mouse0", "kind": "mouse_rel",
                            "dx": int(dx), "dy": int(dy)})

    def wheel(self, t_ns, clicks):
        self.events.append({"t_ns": int(t_ns), "device": "mouse0", "kind": "wheel",
                            "code": "Wheel", "usage": USAGES["Wheel"], "value": int(clicks)})

    def start_recording(self):
        """Called at frame 0: what was pressed before it is held, not an event."""
        self.held_at_start = [USAGES[c] for c, v in self.held.items() if v]
        self.events.clear()

    def lines(self):
        ordered = sorted(self.events, key=lambda e: e["t_ns"])
        return [{"held_at_start": self.held_at_start}] + ordered


def write_jsonl(path, rows):
    with open(path, "w", encoding="utf-8") as out:
        for row in rows:
            out.write(json.dumps(row, separators=(",", ":")) + "\n")


def video_args(codec, gop, open_gop, crf, matrix):
    args = ["-vf", f"scale=out_color_matrix={matrix}:out_range=tv,format=yuv420p",
            "-colorspace", matrix, "-color_primaries", matrix, "-color_trc", matrix,
            "-color_range", "tv", "-g", str(gop), "-bf", "2", "-crf", str(crf), "-threads", "2"]
    if codec == "h264":
        return args + ["-c:v", "libx264", "-preset", "slow", "-profile:v", "high",
                       "-x264-params", f"open-gop={int(open_gop)}:b-pyramid=normal"]
    if codec == "hevc":
        return args + ["-c:v", "libx265", "-preset", "medium", "-tag:v", "hvc1",
                       "-x265-params", f"open-gop={int(open_gop)}:bframes=2:keyint={gop}:"
                       f"min-keyint=10:pools=2:frame-threads=1:log-level=error"]
    raise ValueError(codec)


def encode(spool, target, codec, gop, open_gop, audio, matrix, budget, crf):
    """Encodes at the lowest CRF, in steps of 1, whose file fits into `budget` bytes."""
    sound = {"aac": ["-c:a", "aac", "-b:a", "64k"],
             "opus": ["-c:a", "libopus", "-b:a", "48k"]}[audio]
    while True:
        run(["ffmpeg", "-y", "-loglevel", "error", "-i", spool.video_path, "-i", spool.audio_path,
             "-map", "0:v", "-map", "1:a", "-map_metadata", "-1", "-fflags", "+bitexact",
             "-flags:v", "+bitexact", "-flags:a", "+bitexact",
             *video_args(codec, gop, open_gop, crf, matrix), *sound,
             *(["-movflags", "+faststart"] if target.suffix == ".mp4" else []), target])
        size = target.stat().st_size
        print(f"  crf {crf}: {size} bytes of {budget}", flush=True)
        if size <= budget:
            return crf
        crf += 1 if size < 1.3 * budget else 2 if size < 1.6 * budget else 4
        if crf > 44:
            raise RuntimeError("does not fit at any sensible quality; record fewer frames")


def columns(spec):
    return [{"name": name, "type": kind, "unit": unit} for name, kind, unit in spec]


def write_recording(folder, plan, result, spool):
    """Writes the folder of one recording.  `plan` is the entry of record.py, `result` the game's."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    rate = f"{spool.fps.numerator}/{spool.fps.denominator}"
    video = folder / plan["file"]
    write_jsonl(folder / "events.jsonl", result["inputs"].lines())
    write_jsonl(folder / "ticks.jsonl", result["ticks"])
    write_jsonl(folder / "actions.jsonl", result["actions"])
    capture = {
        "penstock_capture": 1,
        "title": plan["title"], "session": plan["session"], "player": plan["player"],
        "source": result["source"], "licence": plan["licence"],
        "conditions": plan["conditions"],
        "pairing_note": result["pairing_note"],
        "video": {"file": plan["file"]},
        "tracks": [
            {"name": "input", "kind": "events", "file": "events.jsonl",
             "clock": {"field": "t_ns", "unit": "ns", "zero": "first_frame"},
             "source": "injected"},
            {"name": "telemetry", "kind": "ticks", "file": "ticks.jsonl", "tick_rate": rate,
             "tick_field": "tick", "first_tick": 0, "first_tick_ns": 0,
             "columns": columns(result["tick_columns"])},
            {"name": "actions", "kind": "frames", "file": "actions.jsonl", "frame_field": "frame",
             "columns": columns(result["action_columns"])},
        ],
        "text": [{"start_ns": a, "end_ns": b, "language": "en", "author": "script", "text": t}
                 for a, b, t in plan["text"]],
    }
    (folder / "capture.json").write_text(json.dumps(capture, indent=2) + "\n", encoding="utf-8")
    used = sum(p.stat().st_size for p in folder.iterdir() if p != video)
    crf = encode(spool, video, plan["codec"], plan["gop"], plan["open_gop"], plan["audio"],
                 plan["matrix"], SIZE_LIMIT - used - 5_000, plan["crf"])
    print(f"{folder.name}: {spool.frames} frames, crf {crf}, "
          f"{sum(p.stat().st_size for p in folder.iterdir())} bytes", flush=True)
