#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hard tests are to meet user-level threads: a program that imports a function for whose sake bosk gives each member a kernel thread
of its own tests something else, in silence. Those that are meant to are listed here.

modes.py BUILD SUSPECTS: the folder of the build, src/context/suspects.cpp."""

import json
import os
import re
import subprocess
import sys

# Programs that are about such a function.
MEANT = {
    "calls_by_number": ["syscall"],
    "collector": ["pthread_kill"],
    "coroutine_stacks_signal_2": ["sigaltstack"],
    "forked_names": ["pthread_getname_np", "pthread_getschedparam"],
    "gs_base": ["arch_prctl"],
    "handover_kill_masked_nested": ["pthread_kill"],
    "kernel_mutexes": ["pthread_mutexattr_setprotocol", "pthread_mutexattr_setrobust"],
    "late_yields_inner_timer_alone": ["timer_create"],
    "launch": ["prctl", "unshare"],  # uses no OpenMP
    "masks_kill_flat": ["pthread_kill"],
    "outside_signals": ["pthread_kill"],
    "own_stacks": ["sigaltstack"],
    "yields_alternate": ["sigaltstack"],
}


def programs(build):
    listed = subprocess.run(["ctest", "--test-dir", build, "-L", "^hard$", "--show-only=json-v1"],
                            check=True, capture_output=True, text=True).stdout
    folder = os.path.join(build, "tests", "programs")
    return sorted({word for test in json.loads(listed)["tests"] for word in test.get("command", [])
                   if os.path.dirname(word) == folder})


def imports(program):
    listed = subprocess.run(["nm", "-D", "--undefined-only", program], capture_output=True, text=True)
    return {line.split()[-1].split("@")[0] for line in listed.stdout.splitlines() if line.strip()}


def main():
    build, source = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        suspects = set(re.findall(r'\{"(\w+)", [^}]*\bk(?:KernelThread|ByCall)\b', file.read()))
    found = programs(os.path.abspath(build))
    if len(suspects) < 20 or len(found) < 20:
        sys.exit(f"modes: {len(suspects)} names, {len(found)} programs: is this the right folder?")
    bad = [f"{os.path.basename(program)} imports {name}" for program in found
           for name in sorted(imports(program) & suspects)
           if name not in MEANT.get(os.path.basename(program), [])]
    if bad:
        sys.exit("modes: bosk would give each member a kernel thread:\n  " + "\n  ".join(bad))
    print(f"modes: {len(found)} programs")


if __name__ == "__main__":
    main()
