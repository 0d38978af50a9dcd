#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check_locality.py BOSK PART [PROGRAM]: what `bosk lab --locality` counts, against what is known.

known PROGRAM     known_matrix (its path) says what every cell must be: accesses, accesses to pages that
                  move, and lines past caches
words             options that cannot be meant; nothing is started
ends              a command that fails, one that is not there, one that is killed; results of each counting
like XML          the caches of a machine that hwloc saw
stream N PROGRAM  nested-stream on N nodes: what its vectors' memory is to its threads, bound by bosk, and
                  under libgomp with nothing set. Prints the table of docs/locality.md.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from locality_counts import local_share

SKIPPED = 77
bosk = os.path.realpath(sys.argv[1])
failures = []


def check(holds, text):
    if not holds:
        failures.append(text)
        print("check_locality:", text, flush=True)


def lab(*words, env=None):
    """Runs bosk lab; returns its status, output and error."""
    done = subprocess.run([bosk, "lab", *words], text=True, capture_output=True, check=False,
                          stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})})
    return done.returncode, done.stdout, done.stderr


def result(folder, run=1):
    name = "locality.json" if run == 1 else f"locality-{run}.json"
    return json.loads((pathlib.Path(folder) / name).read_text())


def compare(kind, found, expected, absolute, relative):
    """Every cell may be larger by what the C library and starting threads add, and no smaller."""
    for row, (found_row, expected_row) in enumerate(zip(found, expected, strict=True)):
        for column, (got, want) in enumerate(zip(found_row, expected_row, strict=True)):
            more = absolute + relative * want
            check(want * (1 - relative) <= got <= want + more,
                  f"{kind}: CPUs of node {row}, memory {column}: {got}, expected {want}")


def check_nodes(counted, nodes):
    checks = [node["check"] for node in counted["nodes"]]
    check(checks == ["right"] * nodes, f"the plugin's own check of the nodes: {checks}")


def known(program):
    shape = ["--nodes", "4", "--cpus-per-node", "1,3,2,2", "--mem", "768M,512M,1G,1536M"]
    with tempfile.TemporaryDirectory() as folder:
        for part in ("accesses", "moves"):
            # Nobody but the program moves pages.
            status, out, err = lab(*shape, "--append", "numa_balancing=disable", "--locality", "--output",
                                   folder, "--", program, part)
            check(status == 0, f"known_matrix {part}: status {status}: {err}")
            expected, counted = json.loads(out), result(folder)
            check_nodes(counted, 4)
            # One access more or less is an error, but for 5,000 of the C library and of threads that start.
            for kind in ("loads", "stores"):
                compare(f"{part}, {kind}", counted[kind]["times"], expected[kind], absolute=5000, relative=0)
            check(counted["unit"] == "accesses" and counted["caches"] is None and counted["complete"],
                  "what was counted")
            lines = [line for line in err.splitlines() if line.startswith("local:")]
            check(len(lines) == 1, f"no line with the share: {err}")

        # With other results in the folder: they are replaced.
        sizes = ["64", "65536", "524288"]
        status, out, err = lab(*shape, "--locality", "--caches", "64K/8,512K/16", "--output", folder,
                               "--", program, "caches", *sizes)
        check(status == 0, f"known_matrix caches: status {status}: {err}")
        expected, counted = json.loads(out), result(folder)
        check_nodes(counted, 4)
        # Stacks and the C library share the caches with the arrays: 2 % and some lines.
        for kind in ("loads", "stores", "write_backs"):
            compare(kind, counted[kind]["times"], expected[kind], absolute=700, relative=0.02)
        check(counted["unit"] == "lines" and counted["caches"]["shared"]["bytes"] == 524288,
              "what was counted")


def words():
    cases = [
        (["--caches", "1M/8,8M/16"], "--caches needs --locality"),
        (["--locality=bytes"], "locality=bytes: there are accesses, caches and objects"),
        (["--locality", "--caches", "1M"], "not SIZE/WAYS,SIZE/WAYS"),
        (["--locality", "--caches", "1M/8,8M/0"], "1 to 64 ways"),
        (["--locality", "--caches", "1000/8,8M/16"], "not whole sets"),
        (["--locality", "--caches", "1M/8,5G/16"], "4G at most"),
    ]
    for options, says in cases:
        status, out, err = lab(*options, "--", "true")
        check(status == 2 and err.startswith("bosk: ") and says in err and err.count("\n") == 1,
              f"{options}: status {status}: {out}{err}")


def ends():
    small = ["--nodes", "2", "--cpus-per-node", "1", "--mem", "512M", "--locality"]
    with tempfile.TemporaryDirectory() as folder:
        # Two countings by hand in one start; the launcher is where BOSK_LAB_COUNT says.
        script = '"$BOSK_LAB_COUNT" true; "$BOSK_LAB_COUNT" sh -c "kill -9 \\$\\$"; test $? = 137; exit $?'
        status, _, err = lab(*small, "--output", folder, "--", "bash", "-c", script)
        check(status == 0, f"two countings: status {status}: {err}")
        check(sorted(os.listdir(folder)) == ["locality-2.json", "locality-2.txt", "locality.json",
                                             "locality.txt"], f"files: {os.listdir(folder)}")
        for run in (1, 2):
            counted = result(folder, run)
            check(counted["run"] == run and counted["complete"], f"run {run}: {counted}")
            total = sum(map(sum, counted["loads"]["times"]))
            check(5000 < total < 10_000_000, f"run {run}: {total} loads by a small program")
        check(err.count("local:") == 2, f"two results: {err}")

        status, _, err = lab(*small, "--output", folder, "--", "false")
        check(status == 1, f"false: status {status}: {err}")
        check(sorted(os.listdir(folder)) == ["locality.json", "locality.txt"], "old results are left")
    status, _, err = lab(*small, "--", "no-such-command")
    check(status == 127 and "no-such-command" in err, f"no command: status {status}: {err}")
    left = [name for name in os.listdir(tempfile.gettempdir()) if name.startswith("bosk-locality.")]
    check(not left or os.environ.get("CTEST_PARALLEL_LEVEL"), f"left behind: {left}")


def like(machine):
    """The caches are those of the machine: the L2 of its cores, the L3s of its nodes."""
    levels, count = {"L2Cache": [], "L3Cache": []}, 0
    for each in xml.etree.ElementTree.parse(machine).iter("object"):
        count += each.get("type") == "NUMANode"
        if each.get("type") in levels:
            levels[each.get("type")].append(int(each.get("cache_size")))
    with tempfile.TemporaryDirectory() as folder:
        status, _, err = lab("--like", machine, "--mem", "512M", "--locality=caches", "--output", folder,
                             "--", "true")
        check(status == 0, f"--like: status {status}: {err}")
        caches = result(folder)["caches"]
        check(caches["private"]["bytes"] == (levels["L2Cache"] or [512 << 10])[0], f"L2: {caches}")
        check(caches["shared"]["bytes"] == (sum(levels["L3Cache"]) // count or 16 << 20), f"L3: {caches}")


def homes(counted):
    """The nodes that most accesses to a domain's vectors went to."""
    found = set()
    for each in counted["objects"]:
        if (each["name"] or "").startswith("domain "):
            columns = [sum(column) for column in zip(*each["loads"]["times"])]
            found.add(columns.index(max(columns)))
    return found


def stream(nodes, program):
    elements, repeats = 30000, 25
    arguments = f"{elements} {repeats} {nodes} 4"
    # Waiting threads sleep: those that poll take the one host thread from those that work.
    runs = [
        ("bosk run --bind", "bosk run --bind"),
        ("bosk run --bind=spread,close", "bosk run --bind=spread,close"),
        ("libgomp, nothing set", ""),
    ]
    # Vectors of several domains lie in the same 2 MiB, touched before these could become a huge page. khugepaged
    # joins such pages after some 10 s, on the node that has the most of them: it is kept from moving pages, as
    # the kernel's balancing is. (docs/locality.md has what it does.)
    lines = ["set -e", "echo 3600000 > /sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs"]
    for _, prefix in runs:
        lines.append('rm -f "$BOSK_LAB_OBJECTS"')
        lines.append(f'"$BOSK_LAB_COUNT" {prefix} {program} {arguments}')
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")}
    os.environ.clear()
    os.environ.update(environment, OMP_WAIT_POLICY="passive")
    with tempfile.TemporaryDirectory() as folder:
        # The kernel's own balancing would move pages after their threads: under libgomp, and to the first
        # thread when it looks at the result.
        status, out, err = lab("--nodes", str(nodes), "--mem", "512M", "--append",
                               "numa_balancing=disable", "--locality=objects", "--output", folder, "--",
                               "bash", "-c", "\n".join(lines))
        check(status == 0, f"nested-stream on {nodes} nodes: status {status}: {out}{err}")
        check(out.count("checksum:") == len(runs), out)
        found = []
        print(f"nested-stream, {nodes} nodes of 4 CPUs: {elements} elements, {repeats} repeats,",
              f"{nodes} domains of 4 threads")
        print(f"{'local, % of accesses':34}{'vectors':>10}{'all':>10}")
        for run, (title, _) in enumerate(runs, 1):
            counted = result(folder, run)
            check_nodes(counted, nodes)
            everything, vectors = 100 * counted["local_share"], local_share(counted, "domain ")
            found.append(vectors)
            print(f"{title:34}{vectors:10.2f}{everything:10.2f}", flush=True)
            # Four kernels read `a` twice for each element and repeat; then two passes look at the result.
            loads = {each["name"]: sum(map(sum, each["loads"]["times"])) for each in counted["objects"]}
            for domain in range(1, nodes + 1):
                got, want = loads.get(f"domain {domain} a", 0), 2 * elements * (repeats + 1)
                check(abs(got - want) <= 0.01 * want, f"{title}: domain {domain} a: {got} loads, not {want}")
        check(len(homes(result(folder, 2))) == nodes, "bound with spread,close: not all nodes are used")
        check(found[0] >= 95 and found[1] >= 95, "bosk bound: less than 95 % of the vectors are local")
        check(found[2] < 80, "libgomp unbound: as local as if it were bound; is the comparison one?")


def main():
    if shutil.which("qemu-system-x86_64") is None:
        print("check_locality: skipped: there is no qemu-system-x86_64")
        return SKIPPED
    part = sys.argv[2]
    if part == "known":
        known(os.path.realpath(sys.argv[3]))
    elif part == "words":
        words()
    elif part == "ends":
        ends()
    elif part == "like":
        like(os.path.realpath(sys.argv[3]))
    elif part == "stream":
        stream(int(sys.argv[3]), os.path.realpath(sys.argv[4]))
    else:
        sys.exit(__doc__)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
