#!/usr/bin/python3
"""Reads small.pshard and small.pidx from common/format/README.md's words.

    /usr/bin/python3 tests/golden/format/restate.py [--check]

Written from the README, not from the C++ code. Checks every checksum, bound and
padding, and that the values are the ones below; without --check it also prints
them. format_test checks that today's encoder gives the two files.
"""
import json
import pathlib
import struct
import sys

HERE = pathlib.Path(__file__).parent


def crc32c(data):
    table = []
    for n in range(256):
        for _ in range(8):
            n = (n >> 1) ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    crc = 0xFFFFFFFF
    for b in data:
        crc = (crc >> 8) ^ table[(crc ^ b) & 255]
    return crc ^ 0xFFFFFFFF


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        assert self.at + n <= len(self.data), "cut off"
        self.at += n
        return self.data[self.at - n:self.at]

    def get(self, code):
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))

    def u32(self):
        return self.get("I")[0]

    def sized(self):
        return self.take(self.u32())


def row(fields, data):
    """fields: 'name:code' words; a code of 32s is a digest in hex."""
    names = [w.split(":")[0] for w in fields.split()]
    codes = "<" + "".join(w.split(":")[1] for w in fields.split())
    assert struct.calcsize(codes) == len(data), (struct.calcsize(codes), len(data))
    values = [v.hex() if isinstance(v, bytes) else v
              for v in struct.unpack(codes, data)]
    return dict(zip(names, values))


ROWS = {
    "captures": (88, "id:32s first_track:I track_count:I first_extent:Q "
                     "extent_count:Q duration_ns:q reserved:24s"),
    "tracks": (120, "capture:I ordinal:H kind:B bit_depth:B chroma:B matrix:B "
                    "transfer:B primaries:B flags:H rotation:H tb_num:I tb_den:I "
                    "width:I height:I rate_num:I rate_den:I rows:Q origin_ns:q "
                    "first_ns:q end_ns:q first_gop:Q gop_count:Q first_segment:Q "
                    "segment_count:Q first_run:Q run_count:Q"),
    "gops": (96, "track:I flags:H codec:H shard:I preroll:I offset:Q bytes:I "
                 "block_count:I first_ns:q end_ns:q first_frame:Q frame_count:I "
                 "lead_count:I events_before:Q tokens_before:Q cost_before:Q "
                 "frames_hash:Q"),
    "runs": (24, "track:I ended_by:I begin_frame:Q end_frame:Q"),
    "extents": (40, "capture:I shard:I offset:Q bytes:Q begin_ns:q end_ns:q"),
    "segments": (48, "track:I shard:I offset:Q bytes:I rows:I first_ns:q end_ns:q "
                     "rows_before:Q"),
    "shards": (40, "sha256:32s bytes:Q"),
}
TABLES = {
    1: (48, "pts:q dts:q duration:q offset:I bytes:I frame:I flags:I hash:Q"),
    3: (32, "t_ns:q usage:I code:I value:i value_y:i kind:B source:B device:H "
            "flags:I"),
    4: (16, "t_ns:q index:q"),
    6: (40, "start_ns:q end_ns:q text_at:I text_bytes:I language_at:I "
            "language_bytes:I author_at:I author_bytes:I"),
}


def read_rows(name, data, count):
    size, fields = ROWS[name]
    assert len(data) == size * count
    return [row(fields, data[i * size:(i + 1) * size]) for i in range(count)]


def read_block(data, at):
    assert at % 64 == 0
    head = data[at:at + 64]
    (magic, version, kind, flags, capture, track, sequence, part, parts, entries,
     table_bytes, payload_bytes) = struct.unpack("<IHBBIIIHHIII", head[:36])
    assert magic == 0x4B4C4250 and version == 1 and head[36:60] == bytes(24)
    total = -(-(64 + table_bytes + payload_bytes) // 64) * 64
    block = data[at:at + total]
    assert crc32c(block[:60] + bytes(4) + block[64:]) == \
        struct.unpack("<I", head[60:])[0], "block crc"
    size, fields = TABLES[kind]
    assert table_bytes == entries * size
    table = [row(fields, block[64 + i * size:64 + (i + 1) * size])
             for i in range(entries)]
    end = 64 + table_bytes + payload_bytes
    assert block[end:] == bytes(total - end)
    payload = block[64 + table_bytes:end]
    out = {"kind": kind, "flags": flags, "capture": capture, "track": track,
           "sequence": sequence, "part": [part, parts], "table": table}
    if kind == 4:
        width = 9 * entries
        out["columns"] = [
            {"bits": list(struct.unpack(f"<{entries}q",
                                        payload[c:c + 8 * entries])),
             "known": list(payload[c + 8 * entries:c + width])}
            for c in range(0, len(payload), width)]
    elif kind == 6:
        out["texts"] = [[payload[r[f"{f}_at"]:r[f"{f}_at"] + r[f"{f}_bytes"]].decode()
                         for f in ("text", "language", "author")] for r in table]
    elif kind == 1:
        out["packets"] = [payload[r["offset"]:r["offset"] + r["bytes"]].decode()
                          for r in table]
    return out, total


def read_shard(data):
    header = data[:4096]
    assert header[:16] == b"PSHARD\x1a\n" + struct.pack("<II", 1, 4096)
    assert header[16:4092] == bytes(4076)
    assert struct.unpack("<I", header[4092:])[0] == crc32c(header[:4092])
    offset, size, crc, version, own = struct.unpack("<QIIII", data[-32:-8])
    assert data[-8:] == b"PSHEND\x1a\n" and version == 1
    assert own == crc32c(data[-32:-12]) and offset + size + 32 == len(data)
    assert crc == crc32c(data[offset:offset + size])
    r = Reader(data[offset:offset + size])
    out = {"codecs": [], "captures": [], "tracks": []}
    for _ in range(r.u32()):
        codec, pixels, extra = r.sized(), r.sized(), r.sized()
        out["codecs"].append([codec.decode(), pixels.decode(), extra.hex(),
                              *r.get("iiIIIIIII")])
    for _ in range(r.u32()):
        out["captures"].append([r.take(32).hex(), r.sized().decode(),
                                *r.get("II")])
    for _ in range(r.u32()):
        out["tracks"].append({"row": row(ROWS["tracks"][1], r.take(120)),
                              "name": r.sized().decode(),
                              "schema": r.sized().decode()})
    for name in ("gops", "segments", "extents"):
        count = r.u32()
        out[name] = read_rows(name, r.take(count * ROWS[name][0]), count)
    assert r.at == size
    out["blocks"] = []
    for e in out["extents"]:
        assert e["offset"] % 4096 == 0 and e["bytes"] % 4096 == 0
    places = [(g["offset"], g["bytes"]) for g in out["gops"] + out["segments"]]
    for at, size in places:
        while size > 0:
            block, total = read_block(data, at)
            out["blocks"].append(block)
            at, size = at + total, size - total
        assert size == 0
    return out


def read_index(data):
    assert data[:16] == b"PSPIDX\x1a\n" + struct.pack("<II", 1, 7)
    assert struct.unpack("<I", data[252:256])[0] == crc32c(data[:252])
    assert data[16 + 7 * 24:252] == bytes(252 - 16 - 7 * 24)
    out, end = {}, 256
    for i, name in enumerate(ROWS):
        size, crc, offset, count = struct.unpack(
            "<IIQQ", data[16 + 24 * i:40 + 24 * i])
        assert size == ROWS[name][0] and offset == end
        rows = data[offset:offset + size * count]
        assert crc == crc32c(rows), name
        out[name] = read_rows(name, rows, count)
        end = -(-(offset + len(rows)) // 64) * 64
        assert data[offset + len(rows):end] == bytes(end - offset - len(rows))
    assert end == len(data)
    return out


def expect(shard, index):
    """What tests/unit/format/samples.h puts in, said again."""
    ident = bytes(range(1, 33)).hex()
    assert shard["codecs"] == [["h264", "yuv420p", "0164001f", 100, 31, 64, 48,
                                0, 0, 0, 0, 0]]
    assert shard["captures"] == [[ident, "solarwolf", 0, 4]]
    assert [t["name"] for t in shard["tracks"]] == ["video", "input", "ticks",
                                                     "caption"]
    video, events, ticks, text = shard["blocks"]
    assert [b["kind"] for b in shard["blocks"]] == [1, 3, 4, 6]
    assert video["packets"] == ["IIIII", "PPP", "BBB"]
    assert [p["pts"] for p in video["table"]] == [0, 1024, 512]
    assert [p["dts"] for p in video["table"]] == [-512, 0, 512]
    assert [p["frame"] for p in video["table"]] == [0, 2, 1]
    assert [p["flags"] for p in video["table"]] == [3, 32, 16]
    assert [p["hash"] for p in video["table"]] == [0x1122334455667788,
                                                   0x99AABBCCDDEEFF00, 0]
    assert [e["t_ns"] for e in events["table"]] == [-1, 20_000_000, 40_000_000]
    assert [e["flags"] for e in events["table"]] == [1, 0, 0]
    assert [(e["value"], e["value_y"]) for e in events["table"]] == [
        (1, 0), (-7, 9), (0, 0)]
    assert ticks["columns"] == [{"bits": [100, -3], "known": [1, 1]},
                                {"bits": [0x3FF8000000000000, 0], "known": [1, 0]}]
    assert text["texts"] == [["go aheadx", "en", ""]]
    assert text["table"][0]["end_ns"] == 2**63 - 1
    assert len(index["captures"]) == 1 and index["captures"][0]["id"] == ident
    assert index["captures"][0]["duration_ns"] == 100_000_000
    assert [t["kind"] for t in index["tracks"]] == [1, 3, 4, 6]
    assert index["tracks"][0]["tb_den"] == 15360
    assert index["tracks"][0]["run_count"] == 1
    assert index["gops"] == shard["gops"] and index["segments"] == shard["segments"]
    assert index["gops"][0]["frames_hash"] == 42 and index["gops"][0]["flags"] == 2
    assert index["runs"] == [{"track": 0, "ended_by": 0, "begin_frame": 0,
                              "end_frame": 2}]
    assert index["shards"][0]["sha256"] == bytes(range(7, 39)).hex()


def main():
    shard_bytes = (HERE / "small.pshard").read_bytes()
    shard = read_shard(shard_bytes)
    index = read_index((HERE / "small.pidx").read_bytes())
    expect(shard, index)
    assert index["shards"][0]["bytes"] == len(shard_bytes)
    if "--check" not in sys.argv:
        print(json.dumps({"shard": shard, "index": index}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
