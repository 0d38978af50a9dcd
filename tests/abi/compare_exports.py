#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""compare_exports.py BUILT STOCK: does BUILT export all that STOCK does, in the same version nodes?

A program that was linked against libgomp finds a name only under the node it was linked with, and
only as default version if the linker is to find it too. Names in nodes of later GCCs may come on top.
"""
import re
import subprocess
import sys


def readelf(*arguments):
    return subprocess.run(["readelf", "-W", *arguments], check=True, capture_output=True,
                          text=True).stdout


def exports(library):
    """name@node (old version) and name@@node (default version) of every symbol, and plain names."""
    found = set()
    for line in readelf("--dyn-syms", library).splitlines():
        field = line.split()
        if len(field) < 8 or not field[0].rstrip(":").isdigit() or field[4] == "LOCAL":
            continue
        index, name = field[6], field[7]
        # ABS symbols are the version nodes themselves, with older linkers.
        if index not in ("UND", "ABS"):
            found.add(name)
    return found


def node_parents(library):
    """Version node → the node that it follows."""
    parents = {}
    node = None
    for line in readelf("-V", library).splitlines():
        if "Version needs section" in line:
            break
        if match := re.search(r"Rev: \d+ .* Cnt: \d+\s+Name: (\S+)", line):
            node = match[1]
            parents[node] = None
        elif (match := re.search(r"Parent \d+: (\S+)", line)) and node:
            parents[node] = match[1]
    return parents


def report(what, names):
    if names:
        print(f"{len(names)} {what}:")
        for name in sorted(names):
            print(f"  {name}")
    return bool(names)


def main():
    built, stock = sys.argv[1:3]
    ours, theirs = exports(built), exports(stock)
    if len(theirs) < 400:
        sys.exit(f"compare_exports: {stock} exports {len(theirs)} names only; is it GCC's libgomp?")
    bad = report("missing", theirs - ours)
    bad |= report("C++ names exported", {n for n in ours if n.startswith("_Z")})
    bad |= report("exported without a version", {n for n in ours if "@" not in n})

    # The chain decides what `name@OMP_3.0` is compatible with; the base node has the file's name.
    our_nodes, their_nodes = node_parents(built), node_parents(stock)
    bad |= report("version nodes that are missing", their_nodes.keys() - our_nodes.keys())
    bad |= report("version nodes with another parent",
                  {n for n in their_nodes.keys() & our_nodes.keys()
                   if their_nodes[n] != our_nodes[n]})
    if bad:
        return 1
    print(f"{len(theirs)} names of {stock} in {len(their_nodes) - 1} nodes, {len(ours - theirs)} more")
    return 0


if __name__ == "__main__":
    sys.exit(main())
