#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check_policies.py BOSK PART PROGRAM…: what policies do on a machine of several nodes, against `null`.

bubbles PROGRAM   bubble_pairs: pairs of threads that share data, as bubbles of bosk/bosk.h
teams PROGRAM     pairs: the same as nested teams of OpenMP
gangs PROGRAM     gangs: bubbles that take turns, all threads of each at the same time, no processor idle
team-gangs PROGRAM  team_gangs: the same with nested teams of OpenMP
stream PROGRAM    nested_stream: what memory the threads of teams use that touched it first, nobody being bound

Prints the table of docs/policies.md. Everything is counted, nothing timed.
"""
import os
import re
import shutil
import statistics
import subprocess
import sys

SKIPPED = 77
FOUR_NODES = ["--nodes", "4", "--cpus-per-node", "2", "--distances", "mesh"]
TWO_NODES = ["--nodes", "2", "--cpus-per-node", "2"]
bosk = os.path.realpath(sys.argv[1])
failures = []


def check(holds, text):
    if not holds:
        failures.append(text)
        print("check_policies:", text, flush=True)


def figures(machine, script, name):
    """Runs the lines in one start of the machine; returns the figures of each, that it prints as `name: N this, N that`; or
    nothing. Waiting threads sleep: those that poll take the one host thread from those that work."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "BOSK_"))}
    # Programs of the tests end themselves when they hang; here everything takes long.
    kept.update(OMP_WAIT_POLICY="passive", BOSK_TEST_ALARM="600")
    done = subprocess.run([bosk, "lab", *machine, "--mem", "512M", "--append", "numa_balancing=disable",
                           "--env", "BOSK_TEST_ALARM", "--", "sh", "-c", "\n".join(["set -e", *script])],
                          text=True, capture_output=True, check=False, stdin=subprocess.DEVNULL, env=kept)
    check(done.returncode == 0, f"status {done.returncode}: {done.stdout}{done.stderr}")
    if done.returncode != 0:
        return []
    found = [{word: int(number) for number, word in re.findall(r"(\d+) (\w+)", line)}
             for line in done.stdout.splitlines() if line.startswith(name + ":")]
    check(len(found) == len(script), f"{len(found)} lines of figures, not {len(script)}: {done.stdout}")
    return found if len(found) == len(script) else []


def share(part, whole):
    return 100 * part / whole if whole else 0.0


def bubbles(program):
    # Three threads a processor: enough to choose from, and each node could keep its own busy.
    policies = ("null", "cache", "spread")
    script = [f"bosk run --policy {policy} {program} 12 36" for policy in policies]
    found = figures(FOUR_NODES, script, "pairs")
    if not found:
        return
    print(f"{'% of rounds':16}{'together':>10}{'at home':>10}{'distance':>10}")
    rows = {}
    for policy, each in zip(policies, found):
        rows[policy] = (share(each["together"], each["samples"]), share(each["local"], each["samples"]),
                        each["apart"] / each["samples"])
        print(f"{policy:16}" + "".join(f"{value:10.2f}" for value in rows[policy]), flush=True)
    null = rows["null"]
    for policy in policies[1:]:
        together, home, distance = rows[policy]
        check(together >= null[0] + 20, f"{policy}: {together:.1f} % together, under null {null[0]:.1f} %")
        check(home >= null[1] + 10, f"{policy}: {home:.1f} % at home, under null {null[1]:.1f} %")
        check(distance <= 0.75 * null[2], f"{policy}: distance {distance:.2f}, under null {null[2]:.2f}")


TEAM_POLICIES = ("null", "spread", "cache", "spread@machine,cache@node")


def teams(program):
    # As many threads as processors, and no thread is bound: where they are is for the policy to say. On a busy host a tick
    # of 10 ms comes after some thousand instructions: then all threads are preempted all the time.
    script = [f"bosk run --preempt 1s --policy {policy} {program} 8 200" for policy in TEAM_POLICIES]
    found = figures(["--nodes", "4", "--cpus-per-node", "4"], script, "pairs")
    if not found:
        return
    # The last two are also the kernel's doing, which moves threads that are not bound.
    print(f"{'% of rounds':28}{'cache':>10}{'node':>10}{'home':>10}")
    rows = {}
    for policy, each in zip(TEAM_POLICIES, found):
        rows[policy] = [share(each[word], each["samples"]) for word in ("cache", "together", "local")]
        print(f"{policy:28}" + "".join(f"{value:10.2f}" for value in rows[policy]), flush=True)
    null = rows["null"][0]
    for policy in TEAM_POLICIES[1:]:
        check(rows[policy][0] >= null + 15,
              f"{policy}: {rows[policy][0]:.1f} % under one cache, under null {null:.1f} %")


STREAM_RUNS = 5


def stream(program):
    # In turn, so that a busy host meets all alike. Long ticks: see teams().
    script = [f"bosk run --preempt 1s --policy {policy} {program} 4 4 4096 16" for policy in TEAM_POLICIES]
    found = figures(["--nodes", "4", "--cpus-per-node", "4"], STREAM_RUNS * script, "stream")
    if not found:
        return
    print(f"{'local, % of parts':28}{'median':>10}{'from':>10}{'to':>10}")
    medians = {}
    for at, policy in enumerate(TEAM_POLICIES):
        shares = sorted(share(each["local"], each["samples"]) for each in found[at::len(TEAM_POLICIES)])
        medians[policy] = statistics.median(shares)
        print(f"{policy:28}{medians[policy]:10.2f}{shares[0]:10.2f}{shares[-1]:10.2f}", flush=True)
    for policy in TEAM_POLICIES[1:]:
        check(medians[policy] >= medians["null"] + 30,
              f"{policy}: {medians[policy]:.1f} % local, under null {medians['null']:.1f} %")


def gangs(program):
    # Ten threads on four processors. Slices of half a second: on a busy host the guest sees less of each. With shorter ones an emulated
    # processor that is woken may miss much of one while it waits for its turn on the host's: of three runs the median is judged.
    runs = [("policy gang:50", "--policy gang:50 --preempt 10ms", "policy", 3),
            ("relation gang, policy null", "--policy null --preempt 500ms", "relation", 1),
            ("relation gang, policy spread", "--policy spread --preempt 500ms", "relation", 1),
            ("policy null", "--policy null --preempt 10ms", "policy", 1)]
    script = [f"bosk run {options} {program} {how} 2,2,3,1,2 3000" for _, options, how, times in runs for _ in range(times)]
    found = figures(TWO_NODES, script, "gangs")
    if not found:
        return
    print(f"{'% of the time that gangs run':32}{'whole':>10}{'wasted':>10}{'turns':>10}")
    rows = []
    left = iter(found)
    for title, _, _, times in runs:
        mine = [next(left) for _ in range(times)]
        rows.append(tuple(statistics.median(share(each[word], each["samples"]) for each in mine) for word in ("whole", "wasted")))
        turns = min(each["turns"] for each in mine)
        print(f"{title:32}{rows[-1][0]:10.2f}{rows[-1][1]:10.2f}{turns:10}", flush=True)
        check(turns > 0, f"{title}: nobody took turns")
    for (title, *_), (whole, wasted) in zip(runs[:-1], rows):
        check(whole >= 95, f"{title}: gangs are whole for {whole:.1f} % of their time")
        check(wasted <= 8, f"{title}: for {wasted:.1f} % of it one waits for which there are idle processors")
    check(rows[-1][0] <= 70, f"null: gangs are whole for {rows[-1][0]:.1f} % of their time")


def team_gangs(program):
    # As gangs(). BOSK_RELATION says of a program what it does not say itself.
    runs = [("relation gang", "--policy spread --preempt 500ms", "relation"),
            ("policy gang", "--policy gang --preempt 500ms", "policy"),
            ("BOSK_RELATION=2:gang", "--preempt 500ms", "policy"),
            ("neither", "--preempt 10ms", "policy")]
    script = [f"{'BOSK_RELATION=2:gang ' if title.startswith('BOSK') else ''}bosk run {options} {program} {how} 2,2,3,1,2 3000"
              for title, options, how in runs]
    found = figures(TWO_NODES, script, "team gangs")
    if not found:
        return
    print(f"{'% of the time that teams run':32}{'whole':>10}{'turns':>10}")
    rows = []
    for (title, *_), each in zip(runs, found):
        rows.append(share(each["whole"], each["samples"]))
        print(f"{title:32}{rows[-1]:10.2f}{each['turns']:10}", flush=True)
        check(each["turns"] > 0, f"{title}: nobody took turns")
    for (title, *_), whole in zip(runs[:-1], rows):
        check(whole >= 95, f"{title}: teams are whole for {whole:.1f} % of their time")
    check(rows[-1] <= 90, f"neither: teams are whole for {rows[-1]:.1f} % of their time")


def main():
    if shutil.which("qemu-system-x86_64") is None:
        print("check_policies: skipped: there is no qemu-system-x86_64")
        return SKIPPED
    parts = {"bubbles": bubbles, "teams": teams, "gangs": gangs, "team-gangs": team_gangs, "stream": stream}
    if len(sys.argv) != 4 or sys.argv[2] not in parts:
        sys.exit(__doc__)
    parts[sys.argv[2]](os.path.realpath(sys.argv[3]))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
