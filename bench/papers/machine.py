# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The machine, as far as this process may use it."""

import os
import platform
import re
from pathlib import Path

from run import cpu_name

from .model import Machine

NODES = Path("/sys/devices/system/node")


def numbers(text: str) -> list[int]:
    """Of a list such as 0-3,8."""
    found: list[int] = []
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            found += range(int(first), int(last or first) + 1)
    return found


def cpus_by_node(folder: Path, allowed: set[int]) -> tuple[int, ...]:
    """How many CPUs we may use on each node that has any and has memory."""
    with_memory = folder / "has_memory"
    nodes = []
    for node in numbers(with_memory.read_text(encoding="ascii")) if with_memory.exists() else []:
        cpus = numbers((folder / f"node{node}" / "cpulist").read_text(encoding="ascii"))
        nodes.append(len(allowed.intersection(cpus)))
    return tuple(count for count in nodes if count) or (len(allowed),)


def this_machine() -> Machine:
    allowed = os.sched_getaffinity(0)
    memory = Path("/proc/meminfo").read_text(encoding="ascii")
    available = re.search(r"MemAvailable:\s*(\d+)", memory)
    name = cpu_name()
    # The lab says so, other emulators' processors do.
    emulated = "BOSK_LAB" in os.environ or "TCG" in name
    return Machine(len(allowed), cpus_by_node(NODES, allowed), int(available.group(1)) // 1024 if available else 1024,
                   name, platform.release(), emulated)


def in_words(machine: Machine) -> str:
    nodes = f"{len(machine.nodes)} NUMA node{'s' if len(machine.nodes) > 1 else ''}"
    emulated = " (emulated: its times mean nothing)" if machine.emulated else ""
    return f"{machine.name}{emulated}, {machine.cpus} CPU{'s' if machine.cpus > 1 else ''} on {nodes}, Linux {machine.kernel}"
