#!/usr/bin/python3
"""Every Problem that the sources write down has what, found, expected and action.

    check_problems.py [--self-test]

The faults of a feed or configuration are collected with their field; where they
are reported a missing action becomes a general one: there it may be left out.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS = ("found", "expected", "action")
START = re.compile(r"\{\s*\.(?:where|what) =")
# Collected faults; some carry a message that has the parts already.
COLLECTED = re.compile(r"common/(plan/(check_.*|cost|decimal)|config/.*)\.(cc|h)$")


def literal(text, begin):
    """The braces that open at `begin`, strings skipped."""
    depth, at = 0, begin
    while at < len(text):
        c = text[at]
        if c == '"':
            at += 1
            while text[at] != '"':
                at += 2 if text[at] == "\\" else 1
        elif c == "{":
            depth += 1
        elif c == "}":
            depth -= 1
            if depth == 0:
                return text[begin:at + 1]
        at += 1
    return text[begin:]


def faults(name, text):
    out = []
    for m in START.finditer(text):
        body = literal(text, m.start())
        missing = [p for p in PARTS if f".{p} =" not in body]
        if COLLECTED.search(name):
            missing = []
        if missing:
            line = text.count("\n", 0, m.start()) + 1
            out.append(f"{name}:{line}: no {', '.join(missing)}")
    return out


def self_test():
    good = 'f({.where = w, .what = "a {b}", .found = x, .expected = y, .action = z})'
    bad = 'f({.where = w,\n.what = "found .found =",\n.found = x, .action = z})'
    assert faults("server/a.cc", good) == []
    assert faults("server/a.cc", bad) == ["server/a.cc:1: no expected"]
    assert faults("common/plan/check_feed.cc", bad) == []


def main():
    if "--self-test" in sys.argv:
        self_test()
    found = []
    count = 0
    for folder in ("common", "server", "client"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".cc", ".h"):
                text = path.read_text()
                count += len(START.findall(text))
                found += faults(str(path.relative_to(ROOT)), text)
    print("\n".join(found + [f"{count} problems, {len(found)} without all parts"]))
    sys.exit(1 if found or count < 100 else 0)


if __name__ == "__main__":
    main()
