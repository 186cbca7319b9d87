#!/usr/bin/env python3
"""Checks every `#include` of common/, server/, client/ against STYLE.md.

Names each broken edge as file:line, the included header and the rule. With
--self-test it first shows that each rule can break.
"""
import pathlib
import re
import sys

CORE = {"types", "status", "random", "hash", "plan", "job", "format", "layout"}
SUFFIXES = {".h", ".hpp", ".cc", ".cu"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')

# (what, pattern of the header, folders that may include it).
HOMES = [
    ("liburing", r"liburing(\.h|/)", {"server/io"}),
    ("FFmpeg", r"lib(av|sw)[a-z]+/", {"server/demux", "server/decode",
                                      "server/import", "server/worker"}),
    ("libavformat", r"libavformat/", {"server/demux", "server/import"}),
    ("SQLite", r"sqlite3", {"server/dataset", "server/store"}),
    ("gRPC", r"(grpc|grpcpp|grpc\+\+)/|.*\.grpc\.pb\.h$",
     {"server/transport", "server/store", "server/cli", "client/session"}),
    ("xxHash and libcrypto", r"xxh(ash|3)|openssl/", {"common/hash"}),
    ("yaml-cpp", r"yaml-cpp/", {"common/config"}),
    ("spdlog and prometheus-cpp", r"(spdlog|prometheus)/", {"common/telemetry"}),
    ("CUDA", r"(cuda|cuda_[a-z0-9_]+|cuda_runtime|nvcuvid|cuviddec)(\.h|/)",
     {"server/decode", "client/placement"}),
    ("NCCL", r"nccl", {"client/collective"}),
    ("libcurl", r"curl/", {"server/storage"}),
    ("pybind11", r"pybind11/|Python\.h", {"client/python"}),
]

# Standard headers that core modules leave alone: threads, clocks, environment.
NOT_IN_CORE = {
    "thread", "mutex", "shared_mutex", "condition_variable", "future",
    "stop_token", "semaphore", "latch", "barrier", "chrono", "ctime", "time.h",
    "iostream", "fstream", "filesystem", "csignal", "unistd.h", "random",
}
CORE_ABSL = re.compile(r"absl/(status|strings|types|base)/")


def folder(path):
    """'common/plan/x.h' -> 'common/plan'."""
    return "/".join(path.split("/")[:2])


def broken(path, header, quoted):
    """The rules that `path` breaks by including `header`."""
    here = folder(path)
    top, module = (here.split("/") + [""])[:2]
    name = path.split("/")[-1]
    out = []
    for what, pattern, homes in HOMES:
        if re.match(pattern, header) and here not in homes:
            out.append(f"{what} lives in {', '.join(sorted(homes))}")
    if header.split("/")[0] in ("tests", "loadtest"):
        out.append("shipped code never includes tests or loadtest")
    if header.endswith(".pb.h") and not (
            re.search(r"_proto\.(cc|h)$", name)
            or here in ("server/transport", "client/session", "common/config")
            or here in ("server/cli", "server/app")):
        out.append("generated messages stop at *_proto.cc converters")

    to = folder(header)
    to_top = header.split("/")[0]
    if to_top == "server" and top != "server":
        out.append(f"{top} never includes server")
    if (to_top == "client" or header.startswith("penstock/client")) and (
            top == "common" or (top == "server" and not (
                here == "server/cli" and (to == "client/api" or
                                          header.startswith("penstock/client"))))):
        out.append("client is included by client, and client/api by server/cli")
    if to in ("server/app", "server/cli") and to != here:
        out.append("nobody includes server/app or server/cli")

    if top == "common" and module in CORE:
        if to_top == "common" and to.split("/")[1] not in CORE:
            out.append("core modules include only each other")
        if header.startswith("absl/") and not CORE_ABSL.match(header):
            out.append("of Abseil, core modules include values only")
        if header in NOT_IN_CORE:
            out.append("no threads, clocks, files or environment in the core")
        if "/" in header and to_top not in ("common", "absl") and \
                not any(re.match(p, header) for _, p, _ in HOMES):
            out.append("core modules include the standard library and Abseil")
    elif top == "common" and to_top == "common" and to != here and \
            to.split("/")[1] not in CORE:
        out.append("the rest of common may include the core, no other module")
    if quoted and not header.startswith(
            ("common/", "server/", "client/", "absl/", "penstock/", "tests/",
             "loadtest/")):
        out.append("project headers are included by their path from the root")
    return out


def scan(root):
    edges = 0
    errors = []
    for top in ("common", "server", "client"):
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in SUFFIXES:
                continue
            path = file.relative_to(root).as_posix()
            for number, line in enumerate(
                    file.read_text(encoding="utf-8").splitlines(), 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                edges += 1
                for rule in broken(path, match[2], match[1] == '"'):
                    errors.append(f"{path}:{number}: includes {match[2]}: {rule}")
    return edges, errors


BREAKS = [
    ("common/plan/a.cc", "server/dataset/dataset.h"),
    ("common/plan/a.cc", "common/shm/arena.h"),
    ("common/plan/a.cc", "thread"),
    ("common/plan/a.cc", "absl/synchronization/mutex.h"),
    ("common/job/a.cc", "nlohmann/json.hpp"),
    ("common/sync/a.h", "common/shm/arena.h"),
    ("server/pipeline/a.cc", "liburing.h"),
    ("server/pipeline/a.cc", "libavcodec/avcodec.h"),
    ("server/worker/a.cc", "libavformat/avformat.h"),
    ("server/pipeline/a.cc", "sqlite3.h"),
    ("server/pipeline/a.cc", "grpcpp/grpcpp.h"),
    ("server/pipeline/a.cc", "penstock/v1/feed.pb.h"),
    ("server/pipeline/a.cc", "penstock/client.h"),
    ("server/pipeline/a.cc", "client/capi/feed.h"),
    ("server/pipeline/a.cc", "server/app/daemon_config.h"),
    ("server/dataset/a.cc", "openssl/evp.h"),
    ("server/dataset/a.cc", "xxhash.h"),
    ("server/app/a.cc", "yaml-cpp/yaml.h"),
    ("server/app/a.cc", "spdlog/spdlog.h"),
    ("client/capi/a.cc", "server/io/read_engine.h"),
    ("client/capi/a.cc", "cuda_runtime.h"),
    ("client/capi/a.cc", "tests/support/seed.h"),
    ("server/io/a.cc", "loadtest/measure/bench.h"),
]
HOLDS = [
    ("common/plan/a.cc", "common/format/block.h"),
    ("common/plan/a.cc", "absl/strings/str_cat.h"),
    ("server/cli/a.cc", "penstock/client.h"),
    ("server/app/a.cc", "server/transport/grpc_server.h"),
    ("server/io/a.cc", "liburing.h"),
    ("client/placement/a.cu", "cuda_runtime.h"),
    ("common/config/feed_proto.cc", "penstock/v1/feed.pb.h"),
]


def self_test():
    wrong = [f"{p} may include {h}?" for p, h in BREAKS if not broken(p, h, False)]
    wrong += [f"{p} may not include {h}? {broken(p, h, False)}"
              for p, h in HOLDS if broken(p, h, False)]
    return wrong


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    errors = self_test() if "--self-test" in sys.argv else []
    edges, found = scan(root)
    errors += found
    for error in errors:
        print(error)
    print(f"{edges} includes, {len(errors)} broken")
    if edges < 500:
        print("too few includes: the scan looked at the wrong folder")
        return 1
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
