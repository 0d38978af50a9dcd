#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs one program on the system's libgomp and on bosk under the same environment, and compares
what both print: OMP_DISPLAY_ENV, the omp_get_* routines, the error texts.

  compare_env.py PROGRAM BOSK_DIR [STOCK_DIR]

PROGRAM is show_env.c, compiled with gcc -fopenmp; the folders hold a libgomp.so.1 (default for the
second: wherever the loader finds it). STOCK_DIR must be a GCC 12 one: later ones print more.
"""
import os
import re
import subprocess
import sys

BASE = {k: v for k, v in os.environ.items()
        if not k.startswith(("OMP_", "GOMP_", "KMP_", "BOSK_")) and k != "LD_LIBRARY_PATH"}

NUMBERS = ["1", "4", " 4 ", "+4", "04", "0", "-1", "x", "", " ", "4x", "4 5", "0x4", "4.5",
           "99999999999999999999"]
BOOLEANS = ["true", "false", "TRUE", " tRuE ", "\ttrue\n", "1", "yes", "", " ", ".true."]

# Variable → values. Both runtimes must print the same for each.
SAME = {
    "OMP_DYNAMIC": BOOLEANS,
    "OMP_NESTED": BOOLEANS,
    "OMP_CANCELLATION": BOOLEANS,
    "OMP_DISPLAY_AFFINITY": BOOLEANS,
    "OMP_DISPLAY_ENV": ["true", "false", "verbose", "VERBOSE", " true ", "x", "", "1"],
    "OMP_MAX_ACTIVE_LEVELS": NUMBERS + ["255", "256", "1000"],
    "OMP_NUM_THREADS": NUMBERS + [
        "4,2", "4 , 2", "4,,2", ",4", "4,", "1,0", "1,x", "1,-1", "2147483647",
        ",".join(str(i) for i in range(1, 40))],
    "OMP_THREAD_LIMIT": NUMBERS + ["2147483647", "2147483648", "4294967296"],
    "OMP_NUM_TEAMS": NUMBERS + ["2147483647", "2147483648"],
    "OMP_TEAMS_THREAD_LIMIT": NUMBERS,
    "OMP_DEFAULT_DEVICE": NUMBERS + ["2147483648"],
    "OMP_MAX_TASK_PRIORITY": NUMBERS + ["2147483648"],
    "GOMP_DEBUG": ["0", "x", "", "-1", "2147483648"],
    "OMP_SCHEDULE": [
        "static", "dynamic", "guided", "auto", "STATIC", "static,0", "static,4", "dynamic,0",
        "dynamic,1", "dynamic,2", "guided,0", "guided,5", "auto,1", "auto,5", "static, 4",
        "static ,4", " static , 4 ", "monotonic:static", "nonmonotonic:static", "monotonic:dynamic",
        "nonmonotonic:dynamic", "monotonic : dynamic", "MONOTONIC:guided", "nonmonotonic:guided,4",
        "monotonic:auto", "nonmonotonic:auto", "monotonic:static,3", "static,2147483647",
        "monotonic", "monotonic:", "monotonic:monotonic:static", "", "  ", "runtime", "dynamicx,2",
        "dynamic,2x", "dynamic,", "dynamic,+2", "dynamic,2147483648"],
    "OMP_PROC_BIND": [
        "true", "false", "TRUE", "master", "primary", "close", "spread", "close,spread",
        " close , spread ", "Primary,MASTER", "true,false", "close,true", "true,close", "close,",
        ",close", "close spread", "closex", "close,x", "x", "", " ",
        ",".join(["close"] * 35 + ["spread"])],
    "OMP_WAIT_POLICY": ["active", "passive", "ACTIVE", " active ", "x", "", "active x"],
    "OMP_AFFINITY_FORMAT": ["", "abc", "%A", "%", "%05n", "a'b", "%{foo}"],
    "OMP_TARGET_OFFLOAD": ["disabled", "default", " disabled ", "x", "", "disabled x"],
    "OMP_ALLOCATOR": [
        "omp_default_mem_alloc", "omp_large_cap_mem_alloc", "omp_const_mem_alloc",
        "omp_high_bw_mem_alloc", "omp_low_lat_mem_alloc", "omp_cgroup_mem_alloc",
        "omp_pteam_mem_alloc", "omp_thread_mem_alloc", "OMP_thread_mem_alloc", "omp_null_allocator",
        " omp_thread_mem_alloc ", "omp_thread_mem_allocx", "0", "5", "x", "",
        "omp_thread_mem_alloc:pinned=true", "omp_default_mem_space:", "omp_default_mem_spacex",
        "omp_default_mem_space:pinned", "omp_default_mem_space:alignment=24",
        "omp_default_mem_space:partition=x", "omp_default_mem_space:fallback=allocator_fb"],
    "OMP_STACKSIZE": [
        "16", "17", "100", "3M", "3 M", " 3M ", "3m", "65536B", "65536b", "20000k", "2G", "0B", "0",
        "1T", "-1", "x", "", "3MB", "3M x", "99999999999999999999", "18014398509481984", "1.5M",
        "+100", "0100", "16384B", "16385B"],
    "GOMP_STACKSIZE": ["100", "x", ""],
    "GOMP_SPINCOUNT": [
        "100", "1k", "1K", "1M", "1m", "1G", "1T", "1b", "infinite", "infinity", "INFINITE",
        "infin", "0", "x", "", "1 k", " 1k ", "1kx", "99999999999999999999", "18446744073709551615",
        "18446744073709T", "18446744T", "18446745T", "infinite x"],
    "OMP_PLACES": [
        "threads", "cores", "sockets", "ll_caches", "numa_domains", "THREADS", "threads(1)",
        "threads(2)", "threads(5)", "threads( 1 )", "threads (1)", "threads(x)", "threads(1",
        "threads(1)x", "cores(1) ", " cores ", "thread", "threadsx", "threads,cores", "threads()",
        "cores(99999999999999999999)", "", "  ", "0,1", "0", "{0}", "{0,1}", "{0:2}", "{0}:2",
        "{0}:2:1", "{1}:2:-1", "{0},{1}", "{1},{0}", "{0},{0}", "{0:2:1}", "{1:2:-1}", "{0:2:-1}",
        "{0:0}", "{0}:0", "{0}:-1", "{5}", "{0},{5}", "{0,5}", "{0:8}", "{0}:8", "{0:2},!{0:2}",
        "{0},{1},!{0}", "{0},{1},!{5}", "{0},!{1}", "!{0}", "{0,1,!1}", "{!0,0}", "{!1,0,1}",
        "{0,!0}", "{!0}", "{0,!5}", "{0:2,!0:1}", "{0,1}:2:0", "{0}:2:0", "{",
        " { 0 , 1 } , { 1 } ", "{0}}", "{}", "{0,}", "{0},", "{x}", "{0} {1}",
        "{99999999999999999999}", "{1024}", "{100000}", "{0}:99999", "{0:99999}", "{0}:99999:0",
        "0:2", "0:2:1", "!0", "0,1,!0", "0,!0", "0:2,!1", "{0},1", "{0}:1:x", "{0}:", "{0:}",
        "{0:1:}", "+0", "{+0}", "0 1", "{0:1:0}", "{0:2:0}", "{0}:2147483647", "{0}:2:-1",
        "{1}:3:-1", "{0}:70", "{0}:64", "{0:4}:20:4", "{0:4}:20:3", "{0:4}:22:3", "{0:4}:16:4",
        "{0:65}", "{0:64}", "{0:33:2}", "{0:32:2}", "!{0}:2", "{0}:2,!{0}:1", "{1:3:-1}",
        "{1}:2:9223372036854775807", "{1:2:9223372036854775807}", "{1:2:-9223372036854775808}",
        "{1:2:99999999999999999999}", "{0,5},{1},!{0}", "{0,!0,0}", "{0,!0,!0}", "{0:2}:2:2",
        "{0,1},!{0:2},{1}", "{0:2,0}", "{0 : 2}:1", "{ 0:2 } : 1 : 1", "0-1", "{0}:1,", "{0},,{1}",
        "{5,!5}", "{0,!1,1}", "{64}", "{63}", "{64},x", "{0},{1},{0},!{0}", "{0:1:-1}",
        "{0},{1},{0},{1},!{0},!{1},{0}", "{!64,0}", "{!5,64}", "{0}:1:-5", "{99}:2", "!{99}",
        "{0},!{0},{1}", "0,{0},!0"],
    "GOMP_CPU_AFFINITY": [
        "0", "1", "0 1", "0,1", "1 0", "0-1", "0-1:1", "1-0", "0-1:0", "0-1:-1", "0-1:2", "0:2",
        " 0 , 1 ", "0,,1", "0  1", ", 0", "0,", "", "x", "0x", "0-", "0-1:", "-1", "65536",
        "99999999999999999999", "0 0 0", "0-99999", "0-1 1 0-1:1", "{0}", "+1", "0 - 1", "0- 1",
        "0 -1", "0-1 :1", "0-1: 1", "0\t1", "0-0:0", "0-0:5", "0x1", "0X0-0x1:0x1", "00 01",
        "0x1-0"],
    "KMP_AFFINITY": ["verbose,compact", "x"],
    "KMP_BLOCKTIME": ["0", "x"],
    "OMP_DYNAMIC_DEV": ["x"],
    "OMP_NUM_THREADS_DEV_0": ["x"],
}

ALL = ("OMP_DYNAMIC OMP_NESTED OMP_NUM_THREADS OMP_SCHEDULE OMP_PROC_BIND OMP_PLACES OMP_STACKSIZE "
       "GOMP_STACKSIZE OMP_WAIT_POLICY OMP_THREAD_LIMIT OMP_MAX_ACTIVE_LEVELS OMP_NUM_TEAMS "
       "OMP_TEAMS_THREAD_LIMIT OMP_CANCELLATION OMP_DEFAULT_DEVICE OMP_MAX_TASK_PRIORITY "
       "OMP_DISPLAY_AFFINITY OMP_ALLOCATOR OMP_TARGET_OFFLOAD GOMP_CPU_AFFINITY GOMP_SPINCOUNT "
       "GOMP_DEBUG").split()

# Several variables at once.
TOGETHER = [
    {name: "?" for name in ALL},
    {"OMP_TARGET_OFFLOAD": "mandatory", "OMP_DEFAULT_DEVICE": "0"},
    {"OMP_TARGET_OFFLOAD": " MANDATORY ", "OMP_DEFAULT_DEVICE": "3"},
    {"OMP_NESTED": "true", "OMP_MAX_ACTIVE_LEVELS": "3"},
    {"OMP_NESTED": "false", "OMP_MAX_ACTIVE_LEVELS": "3"},
    {"OMP_NESTED": "true", "OMP_MAX_ACTIVE_LEVELS": "x"},
    {"OMP_NESTED": "x", "OMP_MAX_ACTIVE_LEVELS": "3"},
    {"OMP_NESTED": "false", "OMP_NUM_THREADS": "3,2"},
    {"OMP_NESTED": "x", "OMP_NUM_THREADS": "3,2"},
    {"OMP_NESTED": "false", "OMP_PROC_BIND": "close,spread"},
    {"OMP_MAX_ACTIVE_LEVELS": "1", "OMP_NUM_THREADS": "3,2"},
    {"OMP_STACKSIZE": "x", "GOMP_STACKSIZE": "200"},
    {"OMP_STACKSIZE": "300", "GOMP_STACKSIZE": "200"},
    {"OMP_STACKSIZE": "300", "GOMP_STACKSIZE": "x"},
    {"OMP_WAIT_POLICY": "active", "GOMP_SPINCOUNT": "5"},
    {"OMP_WAIT_POLICY": "active", "GOMP_SPINCOUNT": "x"},
    {"OMP_THREAD_LIMIT": "3", "OMP_NUM_THREADS": "8"},
    {"OMP_PLACES": "{1}", "GOMP_CPU_AFFINITY": "0"},
    {"OMP_PLACES": "{1}", "GOMP_CPU_AFFINITY": "x"},
    {"OMP_PLACES": "x", "GOMP_CPU_AFFINITY": "0 1"},
    {"OMP_PLACES": "x", "GOMP_CPU_AFFINITY": "x"},
]
for kind in ("false", "true", "close", "master", "x"):
    for rest in ({"OMP_PLACES": "{1}"}, {"OMP_PLACES": "{5}"}, {"OMP_PLACES": "{64}"},
                 {"OMP_PLACES": "x"}, {"GOMP_CPU_AFFINITY": "1 0"}, {"GOMP_CPU_AFFINITY": "x"},
                 {"OMP_PLACES": "x", "GOMP_CPU_AFFINITY": "1"}):
        TOGETHER.append({"OMP_PROC_BIND": kind, **rest})

FORMATS = [
    "%n", "%5n|", "%.5n|", "%0.5n|", "%05n|", "%0n", "%.n", "%0.n", "%-5n", "%5", "%", "abc%", "%%",
    "%5%", "%x", "%{", "%{n", "%{foo}", "%{n}", "%{thread_num}", "%5{thread_num}|",
    "%0.5{thread_num}|", "%{team_num}", "%{num_teams}", "%{nesting_level}", "%{num_threads}",
    "%{ancestor_tnum}", "%{host}", "%30H|", "%.30H|", "%0.30H|", "%2H|", "%.2H|", "%5A|", "%.5A|",
    "%0.5A|", "%1A|", "%{thread_affinity}", "%a", "%0.5a", "%.5a", "%5a", "%0.1a", "%.0n|",
    "%0.0n|", "%00.5n|", "%0.05n|", "%.05n|", "%.0.5n", "%99999999999n", "%200n|", "%2147483648n",
    "a%nb%nc", "%{thread_num", "%{THREAD_NUM}", "%.10{host}|", "%n%", "%..5n", "%5.5n", "%.x",
    "%0.5x", "%0.5", "%l", "%0.3n|%0.1n", "%.5T|%.5t", "%i", "%20i|", "%.20i|",
    "%0.20i|",
]

# What bosk does otherwise on purpose: docs/environment.md, "Where bosk differs". Here both must
# differ, so that the list stays true.
DIFFERENT = [
    {"OMP_DYNAMIC": "true x"}, {"OMP_DISPLAY_ENV": "true x"},
    {"OMP_SCHEDULE": "static,x"}, {"OMP_SCHEDULE": "static,-1"}, {"OMP_SCHEDULE": "staticx"},
    {"OMP_NUM_THREADS": "99999999999"}, {"OMP_NUM_THREADS": "4294967296"},
    {"OMP_STACKSIZE": "1"}, {"OMP_STACKSIZE": "18014398509481983"},
    {"GOMP_SPINCOUNT": "-1"},
    {"OMP_PLACES": "threads(0)"}, {"OMP_PLACES": "threads(-1)"},
    {"OMP_PLACES": "{-1}"}, {"OMP_PLACES": "{0:-1}"},
    {"GOMP_CPU_AFFINITY": "0 1000"}, {"GOMP_CPU_AFFINITY": "1024"},
    {"OMP_NUM_THREADS_ALL": "3"}, {"OMP_TARGET_OFFLOAD": "mandatory"},
    {"OMP_ALLOCATOR": "omp_default_mem_space"},
    {"OMP_ALLOCATOR": "omp_large_cap_mem_space:alignment=64,partition=nearest"},
]


def run(program, folder, env, prefix=(), args=()):
    full = dict(BASE)
    if folder:
        full["LD_LIBRARY_PATH"] = folder
    full.update({"OMP_DISPLAY_ENV": "verbose"})
    full.update(env)
    done = subprocess.run([*prefix, program, *args], env=full, capture_output=True, timeout=60)
    return done.returncode, normal(done.stdout), normal(done.stderr)


def normal(text):
    """Without what differs from run to run: thread identifiers."""
    text = text.decode("utf-8", "replace")
    return re.sub(r"\b0x[0-9a-f]{8,}\b", "0xID", text)


def cases():
    for name, values in SAME.items():
        for value in values:
            yield {name: value}, (), ()
    for env in TOGETHER:
        yield env, (), ()
    for text in FORMATS:
        yield {"OMP_DISPLAY_ENV": "false"}, (), (text,)
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) > 1:
        one = ("taskset", "-c", str(cpus[1]))
        yield {}, one, ()
        for value in ("threads", "cores", "sockets", "ll_caches", "numa_domains",
                      "{%d}" % cpus[0], "{%d},{%d}" % (cpus[0], cpus[1])):
            yield {"OMP_PLACES": value}, one, ()
        yield {"OMP_PROC_BIND": "true"}, one, ()


def show(label, result):
    print(f"  {label}: exit {result[0]}")
    for stream in result[1:]:
        for line in stream.splitlines():
            print(f"    {line}")


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    program, bosk = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    stock = os.path.abspath(sys.argv[3]) if len(sys.argv) == 4 else ""
    if not os.path.exists(os.path.join(bosk, "libgomp.so.1")):
        sys.exit(f"compare_env.py: {bosk} holds no libgomp.so.1")
    bad = same = 0
    for env, prefix, args in cases():
        theirs = run(program, stock, env, prefix, args)
        ours = run(program, bosk, env, prefix, args)
        if theirs == ours:
            same += 1
            continue
        bad += 1
        print("differs:", env, *prefix, *args)
        show("libgomp", theirs)
        show("bosk", ours)
    for env in DIFFERENT:
        theirs, ours = run(program, stock, env), run(program, bosk, env)
        if theirs == ours:
            bad += 1
            print("no longer differs, take it off the list:", env)
    print(f"{same} settings alike, {len(DIFFERENT)} differ on purpose, {bad} wrong")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
