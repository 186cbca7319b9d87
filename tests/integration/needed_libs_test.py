#!/usr/bin/python3
"""What each program is linked with and what each library exports."""
import subprocess
import sys

BIN = sys.argv[1]


def needed(name):
    """DT_NEEDED of a file, with those of its own libraries (ldd)."""
    text = subprocess.run(["ldd", f"{BIN}/{name}"], capture_output=True,
                          text=True, check=True).stdout
    return [line.split()[0].split("/")[-1] for line in text.splitlines()]


def exported(name):
    text = subprocess.run(["nm", "-D", "--defined-only", f"{BIN}/{name}"],
                          capture_output=True, text=True, check=True).stdout
    names = [line.split()[-1].split("@")[0] for line in text.splitlines()]
    return [n for n in names if not n.startswith("PENSTOCK_")]


def main():
    faults = []
    forbidden = {
        "penstock-decoder": ["libavformat", "libgrpc", "libprotobuf", "libsqlite"],
        "penstockd": ["libav", "libsw"],
        "libpenstock.so": ["libgrpc", "libprotobuf", "libabsl"],
        "penstock": ["libcuda.so", "libnvcuvid"],
        "libpenstock_grpc.so": ["libcuda.so", "libav"],
    }
    for name, prefixes in forbidden.items():
        libraries = needed(name)
        if not libraries:
            faults.append(f"{name}: ldd gave nothing")
        faults += [f"{name}: needs {lib}" for lib in libraries
                   for prefix in prefixes if lib.startswith(prefix)]
    for name, good in (("libpenstock.so", lambda n: n.startswith("ps_")),
                       ("libpenstock_grpc.so", lambda n: n == "psg_get_api")):
        names = exported(name)
        if not names:
            faults.append(f"{name}: exports nothing")
        faults += [f"{name}: exports {n}" for n in names if not good(n)]
    print("\n".join(faults) or "ok")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
