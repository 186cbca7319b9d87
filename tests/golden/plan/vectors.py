"""Golden vectors as files: one object, its keys on lines of their own."""
import json
import pathlib
import sys


def compact(value):
    return json.dumps(value, separators=(",", ":"))


def write_or_check(name, vectors):
    """Writes {key: text of its value} beside this file; --check compares instead
    and exits 1 on a difference."""
    text = "{\n" + ",\n".join(f"{json.dumps(k)}: {v}" for k, v in vectors.items())
    text += "\n}\n"
    path = pathlib.Path(__file__).with_name(name)
    if "--check" in sys.argv:
        sys.exit(0 if path.read_text() == text else f"{path} differs")
    path.write_text(text)
