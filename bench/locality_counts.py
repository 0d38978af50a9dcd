# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What locality.json of `bosk lab --locality=objects` says in sum (docs/locality.md)."""


def local_share(counted: dict, prefix: str) -> float:
    """Local accesses in per cent of all, to the objects whose names begin so."""
    local = total = 0
    for each in counted["objects"]:
        if not (each["name"] or "").startswith(prefix):
            continue
        for kind in ("loads", "stores"):
            matrix = each[kind]["times"]
            total += sum(map(sum, matrix))
            local += sum(row[i] for i, row in enumerate(matrix))
    if total == 0:
        raise SystemExit(f"no access to an object named {prefix}… was counted")
    return 100 * local / total
