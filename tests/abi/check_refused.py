#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check_refused.py LIBRARY REFUSED_INC: every refused entry point says its name and exits with 70, and
none of them is a program's: only offloading plug-ins are refused."""
import ctypes
import os
import re
import sys


def call(library, name):
    """Exit status and standard error of a child that calls the entry point."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(write_end, 2)
        os.close(read_end)
        getattr(library, name)()
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        said = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


def main():
    library = ctypes.CDLL(sys.argv[1])
    with open(sys.argv[2], encoding="ascii") as source:
        names = re.findall(r"\bR\((\w+)\)", source.read())
    if not names:
        sys.exit(f"check_refused: no R(name) in {sys.argv[2]}")
    bad = 0
    for name in names:
        if not name.startswith("GOMP_PLUGIN_"):
            print(f"{name}: OpenMP's and OpenACC's entry points run on the host, they are not refused")
            bad += 1
        status, said = call(library, name)
        if (status, said) != (70, f"bosk: {name} is not supported yet\n"):
            print(f"{name}: exit status {status}, said {said!r}")
            bad += 1
    print(f"{len(names)} refused entry points, {bad} wrong")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
