#!/usr/bin/python3
"""Restates common/layout/README.md with numpy; writes the golden vectors.

    /usr/bin/python3 tests/golden/layout/restate.py [--check]

Written from the README's words, not from the C++ code. XXH3-128 comes from the
reference library through ctypes. Writes transform.json, transform.bin (the
outputs, back to back) and digest.json beside itself; with --check it compares
them instead and exits 1 where they differ.
"""
import ctypes
import json
import pathlib
import sys
from fractions import Fraction
from math import floor

import numpy as np

HERE = pathlib.Path(__file__).parent


# --- sources: any bytes both sides can make ---------------------------------
def source_bytes(count, seed):
    x, out = (seed * 2654435761 + 12345) % 2**32, []
    for _ in range(count):
        x = (x * 1664525 + 1013904223) % 2**32
        out.append(x >> 24)
    return np.array(out, dtype=np.int64)


# --- README step 1 ----------------------------------------------------------
def picture_size(case):
    a, b = case["src_width"], case["src_height"]
    big_w, big_h = case["width"], case["height"]
    if case["rotation"] % 1000 in (90, 270):
        a, b = b, a
    if case["resize"] == "bilinear":
        return big_w, big_h
    if big_w * b <= big_h * a:
        return big_w, min(max((2 * big_w * b + a) // (2 * a), 1), big_h)
    return min(max((2 * big_h * a + b) // (2 * b), 1), big_w), big_h


# --- README step 2: a dense matrix, outputs x samples -----------------------
def weights(n, m, kind):
    samples = n if kind == "luma" else (n + 1) // 2
    d = 2 * m if kind == "luma" else 4 * m
    r = max(d, 2 * n)
    matrix = np.zeros((m, samples), dtype=np.int64)
    for o in range(m):
        p = (2 * o + 1) * n - (2 * m if kind == "between" else m)
        t = [max(0, r - abs(i * d - p)) for i in range(samples)]
        q = [v * 16384 // sum(t) for v in t]
        q[t.index(max(t))] += 16384 - sum(q)
        matrix[o] = q
    return matrix


# --- README step 3 ----------------------------------------------------------
def resize(plane, rows, columns):
    t = (rows @ plane + 128) >> 8
    return (t @ columns.T + 8192) >> 14


# --- README step 4, coefficients from the standards' constants --------------
KR_KB = {1: ("0.2126", "0.0722"), 5: ("0.299", "0.114"),
         6: ("0.299", "0.114"), 9: ("0.2627", "0.0593")}


def coefficients(matrix, full):
    kr, kb = (Fraction(v) for v in KR_KB[matrix])
    kg = 1 - kr - kb
    luma = Fraction(1) if full else Fraction(255, 219)
    chroma = Fraction(1) if full else Fraction(255, 224)

    def q(x):
        return floor(8192 * x + Fraction(1, 2))

    return (q(luma), 0 if full else 16 * 64, q(2 * (1 - kr) * chroma),
            q(2 * (1 - kb) * kb / kg * chroma),
            q(2 * (1 - kr) * kr / kg * chroma), q(2 * (1 - kb) * chroma))


def transform(case):
    w, h = case["src_width"], case["src_height"]
    cw, ch = (w + 1) // 2, (h + 1) // 2
    data = source_bytes(w * h + 2 * cw * ch, case["seed"])
    y = data[:w * h].reshape(h, w)
    u = data[w * h:w * h + cw * ch].reshape(ch, cw)
    v = data[w * h + cw * ch:].reshape(ch, cw)

    shown_w, shown_h = picture_size(case)
    turned = case["rotation"] % 1000 in (90, 270)
    mw, mh = (shown_h, shown_w) if turned else (shown_w, shown_h)
    across = "between" if case["siting"] == "centre" else "cosited"
    down = "cosited" if case["siting"] == "top_left" else "between"
    py = resize(y, weights(h, mh, "luma"), weights(w, mw, "luma"))
    pu = resize(u, weights(h, mh, down), weights(w, mw, across))
    pv = resize(v, weights(h, mh, down), weights(w, mw, across))

    cy, y0, crv, cgu, cgv, cbu = coefficients(case["matrix"], case["full_range"])
    l, b, r = cy * (py - y0) + 2**18, pu - 8192, pv - 8192
    if case["colour"] == "gray":
        colours = [l]
    else:
        colours = [l + crv * r, l - cgu * b - cgv * r, l + cbu * b]
    picture = np.stack([np.clip(c >> 19, 0, 255) for c in colours], axis=-1)

    if case["rotation"] >= 1000:
        picture = picture[:, ::-1]
    picture = np.rot90(picture, k=-(case["rotation"] % 1000 // 90))
    out = np.zeros((case["height"], case["width"], len(colours)), dtype=np.uint8)
    top = (case["height"] - shown_h) // 2
    left = (case["width"] - shown_w) // 2
    out[top:top + shown_h, left:left + shown_w] = picture
    if case["layout"] == "tchw":
        out = out.transpose(2, 0, 1)
    return np.ascontiguousarray(out).tobytes()


def cases():
    base = dict(src_width=48, src_height=27, siting="left", matrix=1,
                full_range=False, rotation=0, width=16, height=9,
                layout="tchw", colour="rgb", resize="bilinear")
    changes = [
        {}, {"layout": "thwc"}, {"colour": "gray"},
        {"colour": "gray", "layout": "thwc"},
        {"matrix": 6}, {"matrix": 5}, {"matrix": 9}, {"full_range": True},
        {"matrix": 6, "full_range": True}, {"matrix": 9, "full_range": True},
        {"siting": "centre"}, {"siting": "top_left"},
        {"width": 48, "height": 27}, {"width": 48, "height": 10},
        {"width": 11, "height": 27}, {"width": 100, "height": 61},
        {"width": 1, "height": 1}, {"src_width": 1, "src_height": 1},
        {"src_width": 3, "src_height": 2, "width": 7, "height": 5},
        {"src_width": 131, "src_height": 67, "width": 13, "height": 9},
        {"src_width": 160, "src_height": 120, "width": 32, "height": 18},
        {"src_width": 640, "src_height": 48, "width": 5, "height": 40},
        {"resize": "letterbox", "width": 20, "height": 20},
        {"resize": "letterbox", "width": 30, "height": 9},
        {"resize": "letterbox", "width": 21, "height": 40, "layout": "thwc"},
        {"resize": "letterbox", "width": 20, "height": 20, "rotation": 90},
        {"resize": "letterbox", "width": 8, "height": 3, "src_width": 2,
         "src_height": 300},
    ]
    for rotation in (0, 90, 180, 270):
        for mirror in (0, 1000):
            for layout in ("tchw", "thwc"):
                changes.append({"rotation": rotation + mirror, "width": 9,
                                "height": 12, "layout": layout})
    return [{**base, **c, "seed": i + 1} for i, c in enumerate(changes)]


# --- README "Digests" -------------------------------------------------------
class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


def xxh3_128(data):
    lib = ctypes.CDLL("libxxhash.so.0")
    lib.XXH3_128bits.restype = Hash128
    lib.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    h = lib.XXH3_128bits(data, len(data))
    return h.high.to_bytes(8, "big") + h.low.to_bytes(8, "big")


def digests():
    """Two items of a video tensor (3 frames of 1000 bytes) and a table."""
    result = {"frame_bytes": 1000, "frames": 3, "items": []}
    item_digests = b""
    for seed, table_bytes in ((1, 0), (2, 65536), (3, 65537), (4, 150000)):
        video = source_bytes(3000, seed).astype(np.uint8).tobytes()
        table = source_bytes(table_bytes, seed + 100).astype(np.uint8).tobytes()
        chunks = [video[i:i + 1000] for i in range(0, 3000, 1000)]
        chunks += [table[i:i + 65536] for i in range(0, table_bytes, 65536)]
        item = xxh3_128(b"".join(xxh3_128(c) for c in chunks))
        item_digests += item
        result["items"].append({"seed": seed, "table_bytes": table_bytes,
                                "chunks": len(chunks), "digest": item.hex()})
    result["batch_digest"] = xxh3_128(item_digests).hex()
    return result


def main():
    all_cases, blob = cases(), b""
    for case in all_cases:
        out = transform(case)
        case["offset"], case["bytes"] = len(blob), len(out)
        blob += out
    text = ",\n".join(json.dumps(c) for c in all_cases)
    files = {"transform.json": f"[\n{text}\n]\n".encode(),
             "transform.bin": blob,
             "digest.json": (json.dumps(digests(), indent=1) + "\n").encode()}
    for name, content in files.items():
        if "--check" not in sys.argv:
            (HERE / name).write_bytes(content)
        elif (HERE / name).read_bytes() != content:
            sys.exit(f"{name} is not what this restatement makes")
    print(f"{len(all_cases)} transforms, {len(blob)} bytes")


if __name__ == "__main__":
    main()
