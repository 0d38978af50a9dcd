#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""compare_exports.py BUILT STOCK: does BUILT export all that STOCK does, in the same version nodes?

A program that was linked against libgomp finds a name only under the node it was linked with, and
only as default version if the linker is to find it too. Names in nodes of later GCCs may come on top.
"""
import re
import subprocess
import sys
from pathlib import Path

# Names of later GCCs, by node, and what each node follows.
LATER = {
    ("OMP_5.1.1", "OMP_5.1"): "omp_get_mapped_ptr omp_target_is_accessible "
    "omp_target_memcpy_async omp_target_memcpy_rect_async",
    ("OMP_5.2", "OMP_5.1.1"): "omp_in_explicit_task omp_in_explicit_task_",
    ("OMP_6.0", "OMP_5.2"): "omp_control_tool omp_control_tool_ omp_control_tool_8_",
    ("OMP_6.1", "OMP_6.0"): "omp_get_device_distances omp_get_num_teams_dim "
    "omp_get_num_threads_dim omp_get_team_num_dim omp_get_thread_num_dim omp_get_thread_limit_dim "
    "omp_get_supported_teams_dim omp_get_supported_threads_dim "
    "omp_get_supported_active_league_dims omp_get_supported_active_league_dims_ "
    "omp_get_supported_active_team_dims omp_get_supported_active_team_dims_",
    ("GOMP_5.1.1", "GOMP_5.1"): "GOMP_taskwait_depend_nowait",
    ("GOMP_5.1.2", "GOMP_5.1.1"): "GOMP_add_alloc GOMP_is_alloc GOMP_target_map_indirect_ptr",
    ("GOMP_5.1.3", "GOMP_5.1.2"): "GOMP_interop omp_get_num_interop_properties "
    "omp_get_interop_int omp_get_interop_ptr omp_get_interop_str omp_get_interop_name "
    "omp_get_interop_type_desc omp_get_interop_rc_desc omp_get_interop_str_ omp_get_interop_name_ "
    "omp_get_interop_type_desc_ omp_get_interop_rc_desc_",
    ("GOMP_6.0", "GOMP_5.1.3"): "omp_get_device_from_uid omp_get_device_from_uid_ "
    "omp_get_uid_from_device omp_get_uid_from_device_ omp_get_uid_from_device_8_",
    ("GOMP_6.0.1", "GOMP_6.0"): "omp_target_memset omp_target_memset_async",
    ("GOMP_6.0.2", "GOMP_6.0.1"): "GOMP_barrier_ext GOMP_barrier_cancel_ext "
    "GOMP_has_masked_thread_num GOMP_loop_static_worksharing GOMP_distribute_static_worksharing",
    ("OACC_2.6.1", "OACC_2.6"): "acc_memcpy_device acc_memcpy_device_async "
    "acc_copyout_finalize_async_32_h_ acc_delete_finalize_async_32_h_ "
    "acc_copyout_finalize_async_64_h_ acc_delete_finalize_async_64_h_ "
    "acc_copyout_finalize_async_array_h_ acc_delete_finalize_async_array_h_",
    ("GOMP_PLUGIN_1.4", "GOMP_PLUGIN_1.3"): "GOMP_PLUGIN_target_rev",
}


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
    later = {f"{name}@@{node}" for (node, _), names in LATER.items() for name in names.split()}
    bad |= report("of later GCCs missing", later - ours)
    bad |= report("C++ names exported", {n for n in ours if n.startswith("_Z")})
    # Names of libc that we wrap have none, so that programs linked with us start on others (tests/install/check_library.sh).
    names = Path(__file__).resolve().parents[2] / "src" / "abi" / "libc" / "names.txt"
    wrapped = set(names.read_text(encoding="ascii").split())
    bad |= report("exported without a version", {n for n in ours - wrapped if "@" not in n})

    # The chain decides what `name@OMP_3.0` is compatible with; the base node has the file's name.
    our_nodes, their_nodes = node_parents(built), node_parents(stock)
    bad |= report("version nodes that are missing", their_nodes.keys() - our_nodes.keys())
    bad |= report("version nodes with another parent",
                  {n for n in their_nodes.keys() & our_nodes.keys()
                   if their_nodes[n] != our_nodes[n]})
    bad |= report("later version nodes that are missing or follow another",
                  {node for node, parent in LATER if our_nodes.get(node) != parent})
    if bad:
        return 1
    print(f"{len(theirs)} names of {stock} in {len(their_nodes) - 1} nodes, {len(ours - theirs)} more")
    return 0


if __name__ == "__main__":
    sys.exit(main())
